"""What every retriever of formulas does: it reads queries, ranks for each, and names what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import ranking_frame
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.sparse.ranking import Found, SparseRetriever

from .index import ExpressionSnapshot
from .queries import query_trees

Q = TypeVar("Q")
"""What a query is to a system: its trees, or what is made of them."""


class FormulaRetriever(SparseRetriever):
    """Ranks the formulas of an index of expressions for the formula of each query."""

    inputs = (("latex",), ("query",))
    outputs = ("docno", "post_id", "visual_id", "score", "rank")
    num_results: int
    store: FormulaStore | None
    verbose: bool

    def rank_scores(
        self,
        queries: pd.DataFrame,
        snapshot: ExpressionSnapshot[Any],
        score: Callable[[FormulaPair], npt.NDArray[np.float64]],
        *,
        above: float = 0.0,
    ) -> pd.DataFrame:
        """Rank by the scores that all expressions have for the trees of each query, those above a bound."""

        def find(pair: FormulaPair) -> Found:
            return snapshot.expressions.best(score(pair), self.num_results, snapshot.formula_ids, above=above)

        return self.rank_each(queries, query_trees(queries, self.store), snapshot, find)

    def rank_each(
        self, queries: pd.DataFrame, read: Sequence[Q], snapshot: ExpressionSnapshot[Any], find: Callable[[Q], Found]
    ) -> pd.DataFrame:
        """Rank for what was read of each query.

        Args:
            queries: at least one.
            read: what was read of each.
            snapshot: the index.
            find: returns the formulas that one of them finds.

        Returns:
            The queries with :attr:`outputs`; ``docno`` is the formula's id.
        """
        found = [find(each) for each in progress(read, self.label, "queries", verbose=self.verbose)]
        names = {"docno": snapshot.formula_ids, "post_id": snapshot.post_ids, "visual_id": snapshot.visual_ids}
        return ranking_frame(queries, found, **names)
