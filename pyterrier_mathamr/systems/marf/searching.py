"""Searching a MaRF index: documents by the mean of MaxSim over all of their views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import distinct_queries, empty_output, ranking_frame
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr.explain import Explanation, QueryRow, read_asked
from pyterrier_mathamr.index.protocols import ExactScores, Numbers, Scores
from pyterrier_mathamr.index.search.exact import QUERY_ROWS
from pyterrier_mathamr.index.search.maxsim import float32_error, scan
from pyterrier_mathamr.index.search.queries import QueryBatch, query_batch
from pyterrier_mathamr.index.search.ranking import NO_HITS, Hits, exact_scores
from pyterrier_mathamr.index.transformers.options import IndexTransformer
from pyterrier_mathamr.index.transformers.scorer import MaxSimScorer
from pyterrier_mathamr.systems.errors import TooManyDocumentsError

from .transformers import view_parts

if TYPE_CHECKING:
    from .index import MaRFIndex, MaRFSnapshot

MOST_DOCUMENTS = 20_000
"""Documents that a retriever scans for each query; of more, a first stage finds the candidates of the scorer."""


class _Explained:
    """A system that says what each view contributes."""

    index: Any
    label: ClassVar[str]

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each view of a document contributes to its score."""
        asked = read_asked(query, docno, self.label, ["query_embs"])
        snapshot = self.index.snapshot()
        numbers = snapshot.find([asked.docno])
        batch = query_batch(asked.frame(), snapshot)
        readings = asked.query_reading(), asked.document_reading()
        if not len(batch):  # a blank query
            return Explanation.of(asked.docno, [], *readings)
        views, _ = snapshot.views(numbers)
        scores = _exact(snapshot, batch, views)
        return Explanation.of(asked.docno, view_parts(self.label, scores, snapshot.formulas(views)), *readings)


class MaRFScorer(_Explained, MaxSimScorer):
    """Scores each document of a ranking by the mean of exact MaxSim over its views, all of them.

    ``index.scorer()`` constructs one; the options are those of :class:`~pyterrier_mathamr.index.MaxSimScorer`.

    Example::

        bm25 >> marf.query_encoder() >> marf_index.scorer()
    """

    label = "MaRF index scorer"

    def document_scores(self, snapshot: MaRFSnapshot, query: QueryBatch, numbers: Numbers) -> ExactScores:
        """Score documents for one query by all of their views: float64 ``[m]``."""
        return document_scores(snapshot, query, numbers)


class MaRFRetriever(_Explained, IndexTransformer):
    """Ranks all documents by the mean of MaxSim over their views, exactly.

    Every view is scanned for every query: for at most 20,000 documents; of more, put a first stage before
    ``index.scorer()``. ``index.retriever()`` constructs one.

    Args:
        index: the index.
        num_results: documents for each query at most.
        verbose: show a progress bar.

    Example::

        marf.query_encoder() >> marf_index.retriever(num_results=100)
    """

    label = "MaRF retriever"
    checks: ClassVar[Mapping[str, Rule]] = {"num_results": COUNT}

    def __init__(self, index: MaRFIndex, num_results: int = 1000, *, verbose: bool = False) -> None:
        super().__init__(index)
        self.num_results, self.verbose = num_results, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank documents for each distinct query."""
        pt.validate.query_frame(inp, extra_columns=["query_embs"], context=self)
        columns = ["docno", "score", "rank"]
        queries = distinct_queries(inp, columns)
        if queries.empty:
            return empty_output(queries, columns)
        snapshot: MaRFSnapshot = self.index.snapshot()
        if len(snapshot.table[1]) - 1 > MOST_DOCUMENTS:
            raise TooManyDocumentsError(self.index.path, len(snapshot.table[1]) - 1, MOST_DOCUMENTS)
        batch = query_batch(queries, snapshot)
        hits: dict[str, Hits] = {}
        groups = list(batch.of_rows(QUERY_ROWS))
        for group in progress(groups, self.label, "batches", verbose=self.verbose):
            hits |= zip(group.qids, self._find(snapshot, group), strict=True)
        found = [hits.get(qid, NO_HITS) for qid in queries["qid"]]
        return ranking_frame(queries, [(of.numbers, of.scores) for of in found], docno=snapshot.docnos)

    def _find(self, snapshot: MaRFSnapshot, queries: QueryBatch) -> list[Hits]:
        """Find the best documents of each query: by a scan of known error, then by exact scores."""
        views, offsets = snapshot.table
        if not len(views):
            return [NO_HITS] * len(queries)
        scanned: Scores = np.concatenate([scan(*shard.field("all"), queries) for shard in snapshot.shards], axis=1)
        counts = np.diff(offsets)
        means = np.add.reduceat(scanned[:, views].astype(np.float64), offsets[:-1], axis=1) / counts
        errors = float32_error(queries, snapshot.max_norm, snapshot.meta.dimensions)
        numbers, found = views[offsets[:-1]], []
        for i, of_query in enumerate(means):
            kept = np.arange(len(numbers))
            if len(numbers) > self.num_results:
                floor = np.partition(of_query, -self.num_results)[-self.num_results]
                kept = np.flatnonzero(of_query >= floor - 2 * errors[i] - 1e-6 * abs(floor))
            found.append(self._ranked(snapshot, queries.one(i), numbers[kept]))
        return found

    def _ranked(self, snapshot: MaRFSnapshot, query: QueryBatch, numbers: Numbers) -> Hits:
        scores = document_scores(snapshot, query, numbers)
        docnos = np.array(snapshot.docnos(numbers), dtype=object)
        order = sorted(range(len(numbers)), key=lambda i: (-scores[i], docnos[i]))[: self.num_results]
        return Hits(numbers[order], scores[order])


def document_scores(snapshot: MaRFSnapshot, query: QueryBatch, numbers: Numbers) -> ExactScores:
    """Score documents by the mean over all of their views, rounded to float32 precision: float64 ``[m]``."""
    views, offsets = snapshot.views(numbers)
    if not len(numbers):
        return np.empty(0)
    means = np.add.reduceat(_exact(snapshot, query, views), offsets[:-1]) / np.diff(offsets)
    return means.astype(np.float32).astype(np.float64)


def _exact(snapshot: MaRFSnapshot, query: QueryBatch, views: Numbers) -> ExactScores:
    """Score views exactly, read in the order of the file."""
    order = np.argsort(views)
    scores = np.empty(len(views))
    scores[order] = exact_scores(snapshot, query, views[order])
    return scores
