"""The exact scorer behind any first stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import empty_output
from pyterrier_mathamr._common.parameters import COUNT, Rule, one_of
from pyterrier_mathamr.index.explain import Explaining
from pyterrier_mathamr.index.protocols import ExactScores, Field, Numbers, SearchableIndex, SearchableSnapshot
from pyterrier_mathamr.index.search.queries import QueryBatch, query_batch
from pyterrier_mathamr.index.search.ranking import exact_scores

from .options import IndexTransformer, search_of

Vectors = Literal["all", "document"]
"""What a scorer compares: all rows by MaxSim, or the two VIRTUAL_DOCUMENTs."""


class MaxSimScorer(Explaining, IndexTransformer):
    """Scores each document of a ranking by exact MaxSim (eq. 3.4) with the vectors of the index.

    ``index.scorer()`` constructs one.

    Example::

        bm25 >> graphs >> model.query_encoder() >> index.scorer()

    The rows come back by query (in order of appearance), score descending, docno ascending, with all their columns; a
    docno that occurs twice for a query is scored twice. The documents of a query without rows score 0.

    Args:
        index: the index.
        num_results: documents kept for each query; ``None`` keeps all.
        vectors: ``all``, or ``document`` for the product of the two VIRTUAL_DOCUMENTs alone.
        exact: ``True`` or ``None``.
        search: ``exact`` or ``None``; a scorer knows no approximation.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: no effect, like ``device``: queries are scored one by one on the CPU. Both are there so that one set
            of options serves retrievers and scorers.
        device: ``None``, ``cpu`` or ``cuda``.
    """

    label = "MathAMR scorer"
    needs: ClassVar[tuple[str, ...]] = ("query_embs",)
    checks: ClassVar[Mapping[str, Rule]] = {
        **IndexTransformer.checks,
        "num_results": COUNT.or_none(),
        "search": one_of("exact"),
    }

    def __init__(
        self,
        index: SearchableIndex,
        *,
        num_results: int | None = None,
        vectors: Vectors = "all",
        exact: bool | None = None,
        search: str | None = None,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        super().__init__(index)
        self.num_results, self.vectors, self.normalise = num_results, vectors, normalise
        self._search, self._exact = search_of(exact, search), None
        self.verbose, self.batch_size, self.device = verbose, batch_size, device

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno`` and ``query_embs``; cells of ``query_embs`` may be empty on some rows of a query.

        Returns:
            The rows of ``inp``, ordered, with ``score`` and ``rank``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["query_embs"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot = self.index.snapshot()
        queries, qids = pd.factorize(inp["qid"])
        docnos, distinct = pd.factorize(inp["docno"], use_na_sentinel=False)
        names = [str(docno) for docno in distinct]
        by_name = np.empty(len(names), dtype=np.int64)
        by_name[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        scores = self._scores(inp, snapshot.find(names)[docnos], snapshot)
        order = np.lexsort((by_name[docnos], -scores, queries))
        starts = np.searchsorted(queries[order], np.arange(len(qids)))
        ranks = np.arange(len(order), dtype=np.int64) - starts[queries[order]]
        result = inp.iloc[order].assign(score=scores[order], rank=ranks)
        if self.num_results is not None:
            result = result[result["rank"] < self.num_results]
        ordered: pd.DataFrame = result.reset_index(drop=True)
        return ordered

    @property
    def field(self) -> Field:
        """The vectors that are compared."""
        return "doc" if self.vectors == "document" else "all"

    def read(self, queries: pd.DataFrame, snapshot: SearchableSnapshot) -> QueryBatch:
        """Read the vectors of all distinct queries."""
        return query_batch(queries, snapshot, normalise=self.normalise)

    def document_scores(self, snapshot: Any, query: QueryBatch, numbers: Numbers) -> ExactScores:
        """Score documents for one query: float64 ``[m]``."""
        return exact_scores(snapshot, query, numbers, self.field)

    def _scores(self, inp: pd.DataFrame, numbers: Numbers, snapshot: SearchableSnapshot) -> ExactScores:
        """Score each row of a ranking, whose documents have the given numbers, int64 ``[r]``."""
        batch = self.read(inp, snapshot)
        scores = np.zeros(len(inp))
        rows_of = inp.groupby("qid", sort=False).indices
        for i, qid in enumerate(progress(batch.qids, self.label, "queries", verbose=self.verbose)):
            rows = rows_of[qid]
            distinct, of_row = np.unique(numbers[rows], return_inverse=True)
            scores[rows] = self.document_scores(snapshot, batch.one(i), distinct)[of_row]
        return scores
