"""Searching an index of Approach Zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from pyterrier_mathamr._common.parameters import Rule
from pyterrier_mathamr.explain import Explanation, QueryRow
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.sparse.expressions import FormulaRetriever
from pyterrier_mathamr.sparse.ranking import Found

from .explanation import CONSTANTS, asked_paths, explain_paths
from .paths import FormulaPaths
from .query import PathQuery, path_query
from .scoring import Constants
from .search import Search

if TYPE_CHECKING:
    from .index import ApproachZeroIndex, ApproachZeroSnapshot


class ApproachZeroRetriever(FormulaRetriever):
    r"""Ranks formulas by the greatest common sub-structure of operator trees, as Approach Zero.

    The score is w* · S_sym · P (equation 5 of the paper): the PathIDF of the paths that two sub-trees have in common,
    summed for the best two (equation 2); how well their symbols agree (equation 3); a penalty of length (equation 4).
    Formulas of the same score are in order of their ids. A query is ``latex``, or ``query`` that is one formula in
    LaTeX, with or without dollars. What is no formula finds nothing, with a warning.

    The search is exact: lists of paths are left out only where they cannot change the results. The paper is silent
    where several pairs of sub-trees are equally good (the best symbol score counts), and on the order of symbols that
    occur equally often (that of the formula).

    Args:
        approach_zero_index: the index.
        num_results: the number of formulas for each query; those without a common path are left out.
        eta: how much long formulas are penalized, 0 to 1.
        b1: points of two leaves with the same symbol below other operators, 0 to 1.
        b2: points of two leaves with different symbols, 0 to 1.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = ApproachZeroIndex("formulas.a0").retriever(num_results=100)
    """

    label, help_url = "Approach Zero", "https://doi.org/10.1007/978-3-030-45439-5_47"
    checks: ClassVar[Mapping[str, Rule]] = {**FormulaRetriever.checks, **CONSTANTS}

    def __init__(
        self,
        approach_zero_index: ApproachZeroIndex,
        num_results: int = 1000,
        *,
        eta: float = 0.3,
        b1: float = 0.94,
        b2: float = 0.9,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.approach_zero_index, self.num_results = approach_zero_index, num_results
        self.eta, self.b1, self.b2, self.store, self.verbose = eta, b1, b2, store, verbose

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id."""
        snapshot = self.approach_zero_index.snapshot()

        def find(paths: FormulaPaths) -> Found:
            return self.find(snapshot, path_query(paths, snapshot.expressions.payload))

        return self.rank_each(queries, asked_paths(queries, self.store), snapshot, find)

    def find(self, snapshot: ApproachZeroSnapshot, query: PathQuery) -> Found:
        """Find the formulas of an index with the best scores for one query."""
        index, constants = snapshot.expressions.payload, Constants(self.eta, self.b1, self.b2)
        penalties = constants.penalties(index.of.leaves)
        search = Search(query, index, snapshot.sizes, penalties, constants, self.num_results)
        return snapshot.expressions.best(search.run(), self.num_results, snapshot.formula_ids)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each path of a formula contributes to its score.

        Args:
            query: a row with ``latex`` or ``query``, or a frame of one query. With the ``graph`` of the post the parts
                name the formula that is found.
            docno: the id of any formula of the index; by default the ``docno`` of the row.

        Raises:
            AskedError: the row has no query, or no formula is named.
            UnknownIdError: the index does not hold the formula.
        """
        constants = Constants(self.eta, self.b1, self.b2)
        return explain_paths(self.approach_zero_index, self.store, constants, self.label, query, docno)
