"""QQSim: how similar two questions are, by the vectors of a language model; and its encoders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt
import torch

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import distinct_queries
from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr.explain import AskedError, Explanation, QueryRow
from pyterrier_mathamr.model.encoder.batching import batches_by_size
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.model.transformers import Columns, DocEncoder, PostRows, QueryEncoder, Side

from .networks import (
    TOKENS,
    Epoch,
    FitOptions,
    InMixedPrecision,
    Pair,
    PairLosses,
    TwoStepModel,
    load_network,
    random_batches,
    read_description,
)
from .texts import Form, Row, View, question_text

_TEXTS = {"raw": ("title", "body", "html", "query"), "mathamr": ("query_graph", "graph")}


class QuestionPosts(PostRows):
    """Reads the questions of a frame, and encodes each to one vector, float32 ``[1, d]``."""

    label = "QQSim"
    batch_size = 256

    def __init__(self, qqsim: QQSim, verbose: bool) -> None:
        self.qqsim, self.verbose = qqsim, verbose

    def check(self, frame: pd.DataFrame, side: Side, stage: pt.Transformer) -> None:
        """Refuse a frame without any of the columns that the model reads."""
        with pt.validate.any(frame, context=stage) as validation:
            for name in _TEXTS[self.qqsim.form]:
                validation.columns(includes=["docno" if side == "documents" else "qid", name])

    def queries(self, frame: pd.DataFrame) -> Columns:
        """Encode topics; one without words has no row, float32 ``[0, d]``."""
        topics = distinct_queries(frame)
        rows = zip(topics["qid"], self._encode(topics), strict=True)
        found = {qid: row[None][: int(np.any(row))] for qid, row in rows}
        return {"query_embs": [found[qid] for qid in frame["qid"]], "query_model": self.qqsim.identity()}

    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        """Encode questions; one without words is similar to none."""
        return {"doc_embs": list(self._encode(frame)[:, None]), "doc_model": self.qqsim.identity()}

    def explain(self, query: QueryRow, docno: str | None) -> Explanation:
        """Refuse: a cosine of vectors has no parts."""
        raise AskedError(self.label, "a cosine of vectors has no parts", "Explain the ranking of an index.")

    def _encode(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        texts = [self.qqsim.text(row) for row in frame.to_dict("records")]
        return self.qqsim.encode(texts, verbose=self.verbose)


_LENGTHS: dict[View, int] = {"title": 128, "head": 128, "tail": 128, "whole": 256}
_BUDGET = 8_192  # tokens of a batch
_TOLD = {"view": one_of(*get_args(View)), "form": one_of(*get_args(Form)), "max_length": TOKENS}


class QQSim(TwoStepModel):
    """A bi-encoder of questions: one vector of unit length for the title, or the head or tail of the body.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1. There the
    figure shows a cross-encoder; but a million questions are ranked, and the losses are those of bi-encoders, so this
    is one, and the similarity is the cosine. Title, head and tail are three models, each trained from the one of
    :meth:`fit` on whole questions, and their rankings are fused by :class:`~pyterrier_mathamr.fusion.ModifiedRRF`.

    Args:
        network: a ``SentenceTransformer``; :meth:`new` and :meth:`from_pretrained` load one.
        view: what of a question it reads: ``title``, ``head`` or ``tail`` of the body, or ``whole``: both.
        form: ``raw`` text with LaTeX, or linearised ``mathamr`` graphs.

    Raises:
        ConfigError: the view or the form is unknown.

    Example::

        titles = QQSim.new("all-MiniLM-L6-v2", view="title")
        (titles.doc_encoder() >> index.indexer()).index([{"docno": "q1", "title": "Roots of $x^2$", "body": "How?"}])
        pipeline = titles.query_encoder() >> index.single_vector()
    """

    def __init__(self, network: Any, view: View = "title", form: Form = "raw") -> None:
        one_of(*get_args(View)).check("view", view)
        one_of(*get_args(Form)).check("form", form)
        super().__init__(network, form)
        self.form: Form = form
        self.view = view
        network.tokenizer.truncation_side = "left" if view == "tail" else "right"

    @classmethod
    def new(
        cls,
        backbone: str | Path = "all-MiniLM-L6-v2",
        view: View = "title",
        form: Form = "raw",
        *,
        max_length: int | None = None,
        device: str | None = None,
    ) -> QQSim:
        """Begin with a pretrained language model.

        Args:
            backbone: a folder, such as that of another model of questions, or a name. The paper's is the Sentence-BERT
                ``hf:sentence-transformers/distilbert-base-nli-stsb-quora-ranking``.
            view: see the class.
            form: likewise.
            max_length: tokens; ``None`` for 128, of whole questions 256 (265 is printed).
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.

        Raises:
            ModelNotFoundError: there is no such model.
        """
        one_of(*get_args(View)).check("view", view)
        return cls(load_network(backbone, "bi", max_length or _LENGTHS[view], device), view, form)

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, device: str | None = None) -> QQSim:
        """Load a model that :meth:`save` wrote; ``ModelFileError`` where the folder has none."""
        told = read_description(folder, cls.__name__, _TOLD)
        return cls(load_network(folder, "bi", told["max_length"], device), told["view"], told["form"])

    def _described(self) -> dict[str, Any]:
        return {"view": self.view, "form": self.form, "max_length": int(self.network.max_seq_length)}

    def text(self, row: Row) -> str:
        """Write what the model reads of a question; see :func:`~.texts.question_text`."""
        return question_text(row, self.view, self.form)

    def fit(
        self,
        pairs: Sequence[Pair],
        options: FitOptions | None = None,
        *,
        known: Collection[Pair] = (),
        validation: Sequence[Pair] = (),
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        save_every: float = 600.0,
        verbose: bool = False,
    ) -> list[Epoch]:
        """Train on pairs of similar questions, with as many pairs of random ones as negatives.

        The two losses take turns, a batch each: ``OnlineContrastiveLoss(margin=0.5)`` on the batch's pairs and its
        negatives, and ``MultipleNegativesRankingLoss(scale=20)`` on the pairs. (The formulas that are printed lack a
        logarithm and the positive pair of the denominator, and have a_i for a_j.)

        Args:
            pairs: texts, as :meth:`text` writes them; those with an empty text are left out.
            options: of the training; by default 20 epochs in batches of 64, as published.
            known: pairs that are similar though not in ``pairs``: no negatives.
            validation: held-out pairs; the best epoch by their ranking loss is kept.
            checkpoint: a folder for the state of training, from which the same call resumes after an interruption.
            fresh: discard a run that was interrupted at ``checkpoint``.
            save_every: seconds after which the state is also saved within an epoch.
            verbose: show progress.

        Returns:
            The losses of each epoch.

        Raises:
            TrainingError: there is no pair.
            UnfinishedJobError: ``checkpoint`` has the state of another run.
        """
        options = options or FitOptions(epochs=20)
        useful = [pair for pair in pairs if all(map(str.strip, pair))]
        if not useful:
            raise TrainingError("no pair of questions has two texts to train on")
        losses = PairLosses(self.network)
        batches = partial(random_batches, useful, {*pairs, *known}, options.batch_size)
        held_out = [pair for pair in validation if all(map(str.strip, pair))]
        validate = partial(losses.held_out, held_out, options.batch_size) if held_out else None
        return self._train(
            batches,
            losses.of_batch,
            validate,
            options,
            (useful, sorted({*pairs, *known}), held_out),
            checkpoint=checkpoint,
            fresh=fresh,
            save_every=save_every,
            verbose=verbose,
        )

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
        tokens = network.tokenizer([texts[i] for i in written], truncation=True, max_length=network.max_seq_length)
        sizes = list(map(len, tokens["input_ids"]))
        for members in progress(batches_by_size(sizes, _BUDGET), self.view, "batches", verbose=verbose):
            places = [written[member] for member in members]
            with torch.inference_mode():
                vectors = model.vectors([texts[i] for i in places])
            found[places] = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()
        return found

    def post_rows(self, *, device: str | None = None, verbose: bool = False) -> QuestionPosts:
        """Return how the transformers encode the questions of a frame with this model."""
        return QuestionPosts(self, verbose)

    def query_encoder(self, *, verbose: bool = False) -> QueryEncoder:
        """Return the transformer that adds ``query_embs``, float32 ``[1, d]``, and ``query_model`` to topics."""
        return QueryEncoder(self, verbose=verbose)

    def doc_encoder(self, *, batch_size: int | None = None, verbose: bool = False) -> DocEncoder:
        """Return the transformer that adds ``doc_embs``, float32 ``[1, d]``, and ``doc_model`` to questions."""
        return DocEncoder(self, batch_size=batch_size, verbose=verbose)
