"""Code shared by systems over pretrained language models: a model's folder, its precision, options, the texts of rows.

Of a ranking, ``title`` and ``body`` are the topic's texts, ``html``, ``text`` and ``markdown`` the document's. Where
``title`` or ``body`` differ within a query that has a ``query``, they are the documents' (``_common.frames``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import pyterrier as pt
import torch

from pyterrier_mathamr.explain import Asked, AskedError, Explanation, Part, QueryRow, Reading, read_asked
from pyterrier_mathamr.extending import (
    HUB,
    SAFE_FILES,
    TOPIC_FORMS,
    PostRows,
    SavedModel,
    Side,
    distinct_queries,
    document_or_empty,
    fetched,
    has_bfloat16,
    is_missing,
    local_model,
    one_of,
    without_bars,
)
from pyterrier_mathamr.model import DocEncoder, ModelNotFoundError, QueryEncoder, TextScorer
from pyterrier_mathamr.posts import DOCUMENT_COLUMNS, MathPost, query_post

EncoderPrecision = Literal["auto", "float32", "bfloat16"]
"""The number type of a language model; ``auto`` is bfloat16 if the processor multiplies in it."""

ModelPreset = Literal["published", "mini"]
"""The settings of a paper, or ours for a CPU."""

TEXT_COLUMNS = ("html", "text", "markdown")
"""Where the text of a document is, in order of preference."""


def mixed(device: torch.device, precision: EncoderPrecision = "auto") -> AbstractContextManager[Any]:
    """Return a context in which a language model computes in bfloat16, if it should."""
    if precision == "float32" or (precision == "auto" and not has_bfloat16(device)):
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def linear_rate(step: int, steps: int, rise: int) -> float:
    """Return the share of the learning rate in a step, from 0: a linear rise in so many steps, then a fall to 0."""
    return min((step + 1) / max(1, rise), (steps - step) / max(1, steps - rise))


def find_checkpoint(name: str | Path, *, subfolder: str | None = None, revision: str | None = None) -> Path:
    """Find the folder of a checkpoint or backbone: bundled, on disk, or on the hub, without pickled weights."""
    if str(name).startswith(HUB):
        inside = f"{subfolder}/" if subfolder else ""
        folder = fetched(str(name), [inside + kind for kind in (*SAFE_FILES, "*.metadata")], revision=revision)
    else:
        folder = Path(local_model(str(name)))
    folder = folder / subfolder if subfolder else folder
    if not folder.is_dir():
        reason = f"{folder} is not a folder. Give one, or hf:organization/name for a model on the hub"
        raise ModelNotFoundError(str(name), reason)
    return folder


@contextmanager
def loading(name: str | Path) -> Iterator[None]:
    """Load a backbone without bars; where transformers cannot, raise our error with the first line of its reason."""
    try:
        with without_bars():
            yield
    except (OSError, ValueError, RuntimeError) as error:
        problem = str(error).strip().partition("\n")[0]
        reason = f"it cannot be loaded ({problem}). Give a model of transformers, its weights in safetensors"
        raise ModelNotFoundError(str(name), reason) from error


def check_texts(frame: pd.DataFrame, side: Side, stage: pt.Transformer) -> None:
    """Raise an error for a frame without texts of its topics, documents or both, on behalf of ``stage``."""
    with pt.validate.any(frame, context=stage) as validation:
        if side == "documents":
            for name in DOCUMENT_COLUMNS:
                validation.columns(includes=[name])
        elif side == "queries":
            for columns in TOPIC_FORMS:
                validation.columns(includes=["qid", *columns])
        else:
            for columns in TOPIC_FORMS:
                for name in TEXT_COLUMNS:
                    validation.result_frame(extra_columns=[*columns, name])


def read_texts(query: QueryRow, docno: str | None, label: str) -> Asked:
    """Read the query and document, with their texts, that an explanation is about."""
    asked = read_asked(query, docno, label)
    if all(asked.row.get(name) is None for name in TEXT_COLUMNS):
        raise AskedError(label, "the row has no text of the document", "Give it `html` or `text`.")
    return asked


def text_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a row of a ranking, for :func:`~pyterrier_mathamr.posts.document_post`."""
    name = next((name for name in TEXT_COLUMNS if not is_missing(row.get(name))), "")
    return {"docno": str(row["docno"]), **({name: row[name]} if name else {})}


class TokenModel(SavedModel):
    """A model of token rows of texts."""

    @abstractmethod
    def post_rows(
        self, *, device: str | None = None, precision: EncoderPrecision = "auto", verbose: bool = False
    ) -> TokenPosts:
        """Return how the transformers encode the texts of a frame with this model."""

    def doc_encoder(
        self,
        *,
        device: str | None = None,
        batch_size: int | None = None,
        precision: EncoderPrecision = "auto",
        verbose: bool = False,
    ) -> DocEncoder:
        """Return the transformer that encodes documents.

        Args:
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            batch_size: how many documents an indexing pipeline encodes together.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
            verbose: show progress.
        """
        return DocEncoder(self, device=device, batch_size=batch_size, verbose=verbose, precision=precision)

    def query_encoder(
        self, *, device: str | None = None, precision: EncoderPrecision = "auto", verbose: bool = False
    ) -> QueryEncoder:
        """Return the transformer that encodes queries.

        Args:
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
            verbose: show progress.
        """
        return QueryEncoder(self, device=device, verbose=verbose, precision=precision)

    def text_scorer(
        self, *, device: str | None = None, precision: EncoderPrecision = "auto", verbose: bool = False
    ) -> TextScorer:
        """Return the transformer that scores the texts of a ranking without an index.

        Args:
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            precision: ``auto`` is bfloat16 if the processor multiplies in it.
            verbose: show progress.
        """
        return TextScorer(self, device=device, verbose=verbose, precision=precision)


class TokenPosts(PostRows):
    """Reads the posts of a frame for a model of token rows."""

    model: TokenModel

    def __init__(self, device: str | None, precision: EncoderPrecision, verbose: bool) -> None:
        one_of(*get_args(EncoderPrecision)).check("precision", precision)
        self.options: dict[str, Any] = {"device": device, "precision": precision, "verbose": verbose}

    def check(self, frame: pd.DataFrame, side: Side, stage: pt.Transformer) -> None:
        check_texts(frame, side, stage)

    def read_queries(self, frame: pd.DataFrame) -> dict[Any, MathPost]:
        rows: list[dict[str, Any]] = distinct_queries(frame).to_dict("records")  # type: ignore[assignment]
        return {row["qid"]: query_post(row) for row in rows}

    def key(self, queries: Sequence[MathPost]) -> Hashable:
        return self.model.identity, self.options["device"], self.options["precision"], tuple(queries)

    def document_posts(self, frame: pd.DataFrame, of_ranking: bool) -> tuple[list[Any], dict[Any, MathPost]]:
        """Read each distinct document, by docno, and list the docno of each row."""
        if of_ranking:  # without the columns of the query
            frame = frame[[name for name in ("docno", *TEXT_COLUMNS) if name in frame.columns]]
        names: list[Any] = frame["docno"].tolist() if "docno" in frame.columns else list(range(len(frame)))
        posts: dict[Any, MathPost] = {}
        for name, row in zip(names, frame.to_dict("records"), strict=True):
            if name not in posts:
                posts[name] = document_or_empty(row)
        return names, posts

    def explain(self, query: QueryRow, docno: str | None) -> Explanation:
        label = f"{self.label} scorer"
        asked = read_texts(query, docno, label)
        frame = pd.DataFrame([{**asked.row, "qid": "explained"}])
        document = document_or_empty({name: asked.row[name] for name in ("docno", *TEXT_COLUMNS) if name in asked.row})
        return Explanation.of(
            asked.docno, self.parts(label, frame), Reading(query_post(asked.query_row())), Reading(document)
        )

    @abstractmethod
    def parts(self, label: str, frame: pd.DataFrame) -> list[Part]:
        """List the parts of the score of the document in a frame of one row; none for a blank query."""
