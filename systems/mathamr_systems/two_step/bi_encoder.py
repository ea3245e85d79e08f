"""Bi-encoders: one vector of unit length for each text, and the transformers that add it to frames."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt
import torch

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.explain import AskedError, Explanation, QueryRow
from pyterrier_mathamr.model.batching import batches_by_size
from pyterrier_mathamr.model.transformers import Columns, DocEncoder, PostRows, QueryEncoder, Side
from pyterrier_mathamr.posts.topics import distinct_queries

from .networks import InMixedPrecision, TwoStepModel

_BUDGET = 1_024  # tokens of a batch, padding included
_AT_ONCE = 4_096  # texts whose tokens are in memory


class BiEncoderRows(PostRows):
    """Reads a text of each row of a frame, and encodes each distinct text to one vector, float32 ``[1, d]``."""

    batch_size = 256

    def __init__(self, model: BiEncoder, verbose: bool) -> None:
        self.model, self.verbose = model, verbose
        self.label = model.label  # type: ignore[misc]

    def check(self, frame: pd.DataFrame, side: Side, stage: pt.Transformer) -> None:
        with pt.validate.any(frame, context=stage) as validation:
            for name in self.model.text_columns(side):
                validation.columns(includes=["docno" if side == "documents" else "qid", name])

    def read_queries(self, frame: pd.DataFrame) -> dict[Any, str]:
        topics = distinct_queries(frame)
        return dict(zip(topics["qid"], self._texts(topics, "queries"), strict=True))

    def key(self, queries: Sequence[str]) -> Hashable:
        return self.model.identity(), tuple(queries)

    def of_queries(self, queries: Sequence[str]) -> list[dict[str, Any]]:
        """Encode queries; one without words has no row, float32 ``[0, d]``."""
        identity = self.model.identity()
        rows = [row[None][: int(np.any(row))] for row in self._encode(queries)]
        return [{"query_embs": own, "query_model": identity} for own in rows]

    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        """Encode documents; one without words is similar to none."""
        rows = self._encode(self._texts(frame, "documents"))
        return {"doc_embs": list(rows[:, None]), "doc_model": self.model.identity()}

    def explain(self, query: QueryRow, docno: str | None) -> Explanation:
        """Raise an error: a cosine of vectors has no parts."""
        raise AskedError(self.label, "a cosine of vectors has no parts", "Explain the ranking of an index.")

    def _texts(self, frame: pd.DataFrame, side: Side) -> list[str]:
        return [self.model.row_text(row, side) for row in frame.to_dict("records")]

    def _encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return self.model.encode(list(distinct), verbose=self.verbose)[[distinct[text] for text in texts]]


class BiEncoder(TwoStepModel):
    """A ``SentenceTransformer`` that gives one vector of unit length for each text."""

    label: ClassVar[str]
    """Its name in drawings and progress bars."""

    def text_columns(self, side: Side) -> Sequence[str]:
        """List the text columns; a frame needs one of them."""
        raise NotImplementedError

    def row_text(self, row: Mapping[Any, Any], side: Side) -> str:
        """Write the input of the model for a row."""
        raise NotImplementedError

    def encode(self, texts: Sequence[str], *, verbose: bool = False) -> npt.NDArray[np.float32]:
        """Encode texts in batches of similar lengths, in bfloat16 where the processor multiplies in it.

        Args:
            texts: any number.
            verbose: show progress.

        Returns:
            float32 ``[n, d]``, rows of unit length; zeros for a text without words.
        """
        network, model = self.network.eval(), InMixedPrecision(self.network)
        found = np.zeros((len(texts), network.get_embedding_dimension()), np.float32)
        written = [i for i, text in enumerate(texts) if text.strip()]
        if not written:
            return found
        sizes = list[int]()
        for start in range(0, len(written), _AT_ONCE):
            some = [texts[i] for i in written[start : start + _AT_ONCE]]
            tokens = network.tokenizer(some, truncation=True, max_length=network.max_seq_length)
            sizes += map(len, tokens["input_ids"])
        for members in progress(batches_by_size(sizes, _BUDGET), self.label, "batches", verbose=verbose):
            places = [written[member] for member in members]
            with torch.inference_mode():
                vectors = model.vectors([texts[i] for i in places])
            found[places] = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()
        return found

    def post_rows(self, *, device: str | None = None, verbose: bool = False) -> BiEncoderRows:
        """Return how the transformers encode the texts of a frame with this model.

        Args:
            device: no effect: the model stays where it was loaded.
            verbose: show progress.
        """
        return BiEncoderRows(self, verbose)

    def query_encoder(self, *, verbose: bool = False) -> QueryEncoder:
        """Return the transformer that adds ``query_embs``, float32 ``[1, d]``, and ``query_model`` to queries.

        Args:
            verbose: show progress.
        """
        return QueryEncoder(self, verbose=verbose)

    def doc_encoder(self, *, batch_size: int | None = None, verbose: bool = False) -> DocEncoder:
        """Return the transformer that adds ``doc_embs``, float32 ``[1, d]``, and ``doc_model`` to documents.

        Args:
            batch_size: documents that an indexing pipeline encodes together; by default 256.
            verbose: show progress.
        """
        return DocEncoder(self, batch_size=batch_size, verbose=verbose)
