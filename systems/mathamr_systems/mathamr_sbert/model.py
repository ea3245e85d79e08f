"""The sentence encoder: loaded, saved, and trained on judged formulas in context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from mathamr_systems.two_step.bi_encoder import BiEncoder
from mathamr_systems.two_step.networks import Epoch, FitOptions, InMixedPrecision, load_network
from mathamr_systems.two_step.qasim import TARGETS, Example, batches, examples_of
from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.feedback import ignored_warnings
from pyterrier_mathamr.amr import AmrParser
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.model.transformers import Side

from .contexts import REPRESENTATION, WINDOW, FormulaContexts, Representation

_LOSSES = "sentence_transformers.sentence_transformer.losses"
_MARGIN, _SCALE = 0.5, 20.0
_PIECE = 8  # texts of similar lengths that are encoded together
_COLUMNS: Mapping[str, str] = {"queries": "query_formula_text", "documents": "formula_text"}


class TripleLosses:
    """The sum of two losses: contrastive on all triples of a batch, ranking on those with the score 1."""

    def __init__(self, network: Any) -> None:
        library: Any = require(_LOSSES, "answers")
        self.model = InMixedPrecision(network)
        self._contrastive = library.ContrastiveLoss(self.model, margin=_MARGIN)
        self._ranking = library.MultipleNegativesRankingLoss(self.model, scale=_SCALE)

    def of_batch(self, batch: Sequence[Example], step: int) -> Tensor:
        """Compute the loss of a batch; each query contributes to the ranking loss once."""
        texts = sorted({text for triple in batch for text in triple[:2]}, key=lambda text: (len(text), text))
        pieces = [self.model.vectors(texts[start : start + _PIECE]) for start in range(0, len(texts), _PIECE)]
        vectors, place = torch.cat(pieces), {text: number for number, text in enumerate(texts)}
        left = vectors[[place[triple.question] for triple in batch]]
        right = vectors[[place[triple.answer] for triple in batch]]
        scores = torch.tensor([triple.target for triple in batch], device=left.device)
        with ignored_warnings(Warning, "ContrastiveLoss expects binary labels"):  # .5 weights both terms
            loss: Tensor = self._contrastive.compute_loss_from_embeddings([left, right], scores)
        first: dict[str, int] = {}
        for number, triple in enumerate(batch):
            if triple.target == 1:
                first.setdefault(triple.question, number)
        if len(first) > 1:
            rows = list(first.values())
            loss = loss + self._ranking.compute_loss_from_embeddings([left[rows], right[rows]], None)
        return loss


def judged_triples(queries: pd.DataFrame, formulas: pd.DataFrame, qrels: pd.DataFrame) -> list[tuple[str, str, float]]:
    """Make the triples that :meth:`MathAMRSentenceBERT.fit` learns from: query, candidate and score.

    Args:
        queries: ``qid``, ``query_formula_text``.
        formulas: ``docno``, ``formula_text``; judged formulas that are not among them are left out.
        qrels: ``qid``, ``docno`` (the id of a formula), ``label``: 2 and 3 become 1, 1 becomes .5, 0 stays.

    Returns:
        The triples, in the order of the judgments.
    """
    of_query = dict(zip(queries["qid"], queries["query_formula_text"], strict=True))
    of_formula = dict(zip(formulas["docno"], formulas["formula_text"], strict=True))
    rows = zip(qrels["qid"], qrels["docno"], qrels["label"], strict=True)
    return [
        (of_query[qid], of_formula[docno], TARGETS[min(max(int(label), 0), 3)])
        for qid, docno, label in rows
        if of_query.get(qid) and of_formula.get(docno)
    ]


class MathAMRSentenceBERT(BiEncoder):
    """Sentence-BERT of formulas in context: one vector for a formula and the sentences around it.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), sections 4.4.3 and 4.4.4.
    The score of a candidate is the cosine of its vector and the query's. :meth:`contexts` writes the texts, an index
    keeps the vectors of the collection's formulas, and its ``scorer()`` re-ranks the results of another system;
    :class:`~pyterrier_mathamr.fusion.ModifiedRRF` then combines both rankings.

    Args:
        network: a ``SentenceTransformer``; :meth:`new` and :meth:`from_pretrained` load one.
        representation: how formula and context are written: ``opt``, ``amr+opt``, ``amr+latex``, ``text+latex`` or
            ``text+opt``; see :class:`FormulaContexts`.
        window: the number of sentences, odd: the formula's, and equally many before and after it.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        sbert = MathAMRSentenceBERT.new("all-MiniLM-L6-v2", "amr+opt")
        index, posts = MathAMRIndex("formulas.sbert"), [{"docno": "p", "text": "Find $x^n$."}]
        (sbert.contexts() >> sbert.doc_encoder() >> index.indexer()).index(posts)
        rerank = sbert.contexts() >> sbert.query_encoder() >> index.scorer()
        first = TangentIndex("formulas.tangent").retriever(1000)
        pipeline = ModifiedRRF([first, first >> rerank])
    """

    label = "Sentence-BERT"
    OPTIONS = {"representation": REPRESENTATION, "window": WINDOW}  # noqa: RUF012
    representation: Representation
    window: int

    def __init__(self, network: Any, representation: Representation = "amr+opt", window: int = 1) -> None:
        super().__init__(network, representation=representation, window=window)

    @classmethod
    def new(
        cls,
        backbone: str | Path = "all-MiniLM-L6-v2",
        representation: Representation = "amr+opt",
        window: int = 1,
        *,
        max_length: int | None = None,
        device: str | None = None,
    ) -> MathAMRSentenceBERT:
        """Begin with a pretrained language model.

        Args:
            backbone: a folder or a name; the dissertation's is ``hf:sentence-transformers/all-distilroberta-v1``.
            representation: how formula and context are written: ``opt``, ``amr+opt``, ``amr+latex``, ``text+latex`` or
                ``text+opt``; see :class:`FormulaContexts`.
            window: the number of sentences, odd: the formula's, and equally many before and after it.
            max_length: tokens; ``None`` for 128, or 256 with ``text+opt``.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.

        Raises:
            ModelNotFoundError: there is no such model.
        """
        REPRESENTATION.check("representation", representation)
        length = max_length or (256 if representation == "text+opt" else 128)
        return cls(load_network(backbone, "bi", length, device), representation, window)

    def contexts(
        self,
        *,
        parser: str | AmrParser = "dependency",
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> FormulaContexts:
        """Return the transformer that writes the texts that this model reads.

        Args:
            parser: the name of an AMR parser, or a parser.
            store: official formula trees by id; other formulas get their trees from LaTeX.
            verbose: show progress.
        """
        return FormulaContexts(self.representation, self.window, parser=parser, store=store, verbose=verbose)

    def text_columns(self, side: Side) -> Sequence[str]:
        """Name the column that :meth:`contexts` adds."""
        return (_COLUMNS[side],)

    def row_text(self, row: Mapping[Any, Any], side: Side) -> str:
        """Return the text of the ``side`` of a ``row`` that :meth:`contexts` wrote."""
        return str(row[_COLUMNS[side]])

    def fit(
        self,
        triples: Sequence[tuple[str, str, float]],
        options: FitOptions | None = None,
        *,
        folds: int | None = 10,
        fold: int = 0,
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        save_every: float = 600.0,
        verbose: bool = False,
    ) -> list[Epoch]:
        """Train on judged formulas.

        The loss of a batch is the sum of ``ContrastiveLoss(margin=0.5)``, which accepts scores between 0 and 1, and
        ``MultipleNegativesRankingLoss(scale=20)`` on the triples with the score 1. The dissertation does not specify
        how it combines them.

        Args:
            triples: texts of a query and a candidate, and a score 0 to 1; :func:`judged_triples` makes them.
            options: of the training; by default 50 epochs in batches of 16, as published.
            folds: the number of folds of the queries; ``None`` holds none out, and the last epoch is kept.
            fold: the held-out fold, the same in each epoch. The epoch with the highest Spearman correlation of
                cosines and scores is kept.
            checkpoint: a folder for the state of training, from which the same call resumes after an interruption.
            fresh: discard a run that was interrupted at ``checkpoint``.
            save_every: seconds after which the state is also saved within an epoch.
            verbose: show progress.

        Returns:
            The loss of each epoch, and as ``validation`` the negative correlation.

        Raises:
            TrainingError: there is nothing to train on.
            ConfigError: an option is out of its range, or a score is not between 0 and 1.
            UnfinishedJobError: ``checkpoint`` has the state of another run.
        """
        options = options or FitOptions(epochs=50, batch_size=16)
        training, held_out = examples_of(triples, "triples", folds, fold)
        return self._train(
            partial(batches, training, options.batch_size),
            TripleLosses(self.network).of_batch,
            (lambda: -self.correlation(held_out)) if held_out else None,
            options,
            (training, held_out),
            checkpoint=checkpoint,
            fresh=fresh,
            save_every=save_every,
            verbose=verbose,
        )

    def correlation(self, triples: Sequence[tuple[str, str, float]]) -> float:
        """Compute the Spearman correlation of cosines and scores; 0 if either are all equal."""
        left, right = (self.encode([str(triple[side]) for triple in triples]) for side in (0, 1))
        ranks = pd.DataFrame({"cosine": (left * right).sum(axis=1), "score": [triple[2] for triple in triples]}).rank()
        if ranks.nunique().min() < 2:
            return 0.0
        return float(ranks["cosine"].corr(ranks["score"]))
