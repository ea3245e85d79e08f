"""The score of Approach Zero of given formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import empty_output, ordered_by_score
from pyterrier_mathamr._common.parameters import Rule
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.explain import Explanation, QueryRow
from pyterrier_mathamr.formula import FormulaStore

from .explanation import CONSTANTS, asked_paths, explain_paths
from .query import path_query
from .scoring import Constants, score_expressions

if TYPE_CHECKING:
    from .index import ApproachZeroIndex


class ApproachZeroScorer(Leaf, Transformer):
    """Ranks the formulas of a ranking anew by the score of Approach Zero, whatever found them.

    The rows come back by query (as they come), descending score, ascending docno, with all their columns. A formula
    without a common path scores 0.

    Args:
        approach_zero_index: the index.
        eta: see :class:`ApproachZeroRetriever`.
        b1: likewise.
        b2: likewise.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        TangentIndex("formulas.tangent").retriever() >> ApproachZeroIndex("formulas.a0").scorer()
    """

    label, help_url = "Approach Zero", "https://doi.org/10.1007/978-3-030-45439-5_47"
    checks: ClassVar[Mapping[str, Rule]] = CONSTANTS

    def __init__(
        self,
        approach_zero_index: ApproachZeroIndex,
        *,
        eta: float = 0.3,
        b1: float = 0.94,
        b2: float = 0.9,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.approach_zero_index, self.eta, self.b1, self.b2 = approach_zero_index, eta, b1, b2
        self.store, self.verbose = store, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking of formulas.

        Args:
            inp: ``qid``, ``docno`` (ids of formulas), and ``latex`` or ``query`` that is one formula.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.

        Raises:
            UnknownIdError: the index does not hold some of the formulas; it names them.
        """
        with pt.validate.any(inp, context=self) as validation:
            validation.result_frame(extra_columns=["latex"])
            validation.result_frame(extra_columns=["query"])
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot, constants = self.approach_zero_index.snapshot(), Constants(self.eta, self.b1, self.b2)
        index, rows = snapshot.expressions.payload, snapshot.expressions_of(inp["docno"].astype(str).tolist())
        penalties = constants.penalties(index.of.leaves)
        codes, _ = pd.factorize(inp["qid"])
        queries = asked_paths(inp.drop_duplicates("qid"), self.store)
        scores = np.zeros(len(inp))
        for number, paths in enumerate(progress(queries, self.label, "queries", verbose=self.verbose)):
            places = np.flatnonzero(codes == number)
            found = score_expressions(path_query(paths, index), index.of, rows[places], constants)
            scores[places] = found.structure * found.symbols * penalties[rows[places]]
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each path of a formula contributes to its score; see :meth:`ApproachZeroRetriever.explain`."""
        constants = Constants(self.eta, self.b1, self.b2)
        return explain_paths(self.approach_zero_index, self.store, constants, self.label, query, docno)
