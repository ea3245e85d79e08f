"""Ranking formulas anew by the edit distance of their trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import empty_output, ordered_by_score
from pyterrier_mathamr._common.parameters import COUNT, FRACTION, Rule, one_of
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.fusion import reciprocal_ranks
from pyterrier_mathamr.sparse.expressions import asked_formula, formula_trees, query_trees

from .distance import UNIT_COSTS, EditCosts, tree_edit_distances

if TYPE_CHECKING:
    from pyterrier_mathamr.store import Rows
    from pyterrier_mathamr.systems.formula_trees import FormulaTrees

Combine = Literal["rrf", "weighted"]
CostNames = Literal["printed", "swapped", "unit"]

EDIT_COSTS: dict[CostNames, dict[Packed, EditCosts]] = {
    "printed": {"slt": EditCosts(0.85, 0.54, 0.15), "opt": EditCosts(0.28, 0.225, 0.185)},
    "swapped": {"slt": EditCosts(0.85, 0.15, 0.54), "opt": EditCosts(0.28, 0.185, 0.225)},
    "unit": {"slt": UNIT_COSTS, "opt": UNIT_COSTS},
}
"""Costs by name and kind of tree. As printed for CFTED; with insertion and renaming swapped, the order in which the
library that it used takes them, and better on the judgments of both years; and 1."""

_NAMES = ("layout tree", "operator tree")


class EditDistanceReranker(Leaf, Transformer):
    r"""Ranks the formulas of a ranking anew by how little must be changed to make the query's trees of theirs.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 4.3: the
    similarity of two trees is 1 / (d + 1) of their edit distance d. CFTED adds that of layout and operator trees,
    weighted (equation 4.5); CFT2TED fuses two rankings by modified reciprocal rank fusion, the sum of similarity /
    (60 + rank). A formula that lacks a tree has similarity 0 there. Rows come back by query, descending score,
    ascending docno, with all their columns.

    Args:
        formula_trees: the trees of the formulas that are ranked.
        combine: ``"rrf"`` as in CFT2TED, ``"weighted"`` as in CFTED.
        costs: see :data:`EDIT_COSTS`.
        slt_weight: of layout trees where the sum is weighted, 0 to 1.
        max_nodes: trees of more nodes are compared by their labels alone.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        tangent, trees = TangentIndex("formulas.tangent"), FormulaTrees("formulas.trees")
        pipeline = tangent.retriever() >> EditDistanceReranker(trees)
    """

    label = "Tree edit distance"
    checks: ClassVar[Mapping[str, Rule]] = {
        "combine": one_of(*get_args(Combine)),
        "costs": one_of(*get_args(CostNames)),
        "slt_weight": FRACTION,
        "max_nodes": COUNT,
    }

    def __init__(
        self,
        formula_trees: FormulaTrees,
        *,
        combine: Combine = "rrf",
        costs: CostNames = "swapped",
        slt_weight: float = 0.95,
        max_nodes: int = 400,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.formula_trees, self.combine, self.costs, self.slt_weight = formula_trees, combine, costs, slt_weight
        self.max_nodes, self.store, self.verbose = max_nodes, store, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking of formulas.

        Args:
            inp: ``qid``, ``docno`` (ids of formulas), and ``latex`` or ``query`` that is one formula.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.

        Raises:
            UnknownIdError: ``formula_trees`` does not hold some of the formulas; it names them.
        """
        with pt.validate.any(inp, context=self) as validation:
            validation.result_frame(extra_columns=["latex"])
            validation.result_frame(extra_columns=["query"])
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        docnos = inp["docno"].astype(str).to_numpy(dtype=object)
        rows = self.formula_trees.snapshot().expressions_of(docnos.tolist())
        codes, _ = pd.factorize(inp["qid"])
        pairs = query_trees(inp.drop_duplicates("qid"), self.store)
        scores = np.zeros(len(inp))
        for number, pair in enumerate(progress(pairs, self.label, "query", verbose=self.verbose)):
            places = np.flatnonzero(codes == number)
            similarities = self.similarities(pair, rows[places])
            scores[places] = (similarities * self._weights(similarities, docnos[places])).sum(axis=1)
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what the similarity of either tree contributes to the score of a formula.

        Args:
            query: the ranking of one query, as :meth:`transform` takes it; where the similarities are weighted, which
                no other formula changes, also a row with ``latex`` or ``query``.
            docno: a formula of the ranking; by default the ``docno`` of the row.

        Raises:
            AskedError: the row has no query, no formula is named, or it is in no ranking, among which it has a rank.
            UnknownIdError: ``formula_trees`` does not hold the formula.
        """
        asked, formula = asked_formula(query, docno, self.label)
        if isinstance(query, pd.DataFrame) and "docno" in query.columns:
            docnos = query["docno"].astype(str).to_numpy(dtype=object)
        else:
            docnos = np.array([asked.docno] if self.combine == "weighted" else [], dtype=object)
        places = np.flatnonzero(docnos == asked.docno)
        if not len(places):
            why = f"{asked.docno!r} is not in a ranking of the query, among which it has a rank"
            raise AskedError(self.label, why, "Give the frame that is ranked, or use explain.explain_score.")
        row, latex = asked.formula()
        rows = self.formula_trees.snapshot().expressions_of(docnos.tolist())
        similarities = self.similarities(formula_trees([formula], self.store)[0], rows)
        values = zip(_NAMES, similarities[places[0]], self._weights(similarities, docnos)[places[0]], strict=True)
        parts = [
            Part(self.label, name, formula.latex, "formula", latex, value, weight, value * weight, 0, row)
            for name, value, weight in ((name, float(value), float(weight)) for name, value, weight in values)
        ]
        return asked.explained(parts)

    def similarities(self, pair: FormulaPair, expressions: Rows) -> npt.NDArray[np.float64]:
        """Compare a formula with some expressions.

        Args:
            pair: the formula's trees.
            expressions: int64 ``[y]``, as ``formula_trees`` numbers them.

        Returns:
            float64 ``[y, 2]``, of layout and of operator trees: 0 without a tree, else at most 1.
        """
        payload, found = self.formula_trees.snapshot().expressions.payload, np.zeros((len(expressions), 2))
        distinct, back = np.unique(expressions, return_inverse=True)
        for column, (kind, query) in enumerate(zip(get_args(Packed), pair, strict=True)):
            if query is not None:
                trees = getattr(payload, kind)
                distances = tree_edit_distances(query, trees, distinct, EDIT_COSTS[self.costs][kind], self.max_nodes)
                there = trees.offsets[distinct + 1] > trees.offsets[distinct]
                found[:, column] = np.where(there, 1 / (distances + 1), 0.0)[back]
        return found

    def _weights(
        self, similarities: npt.NDArray[np.float64], docnos: npt.NDArray[np.object_]
    ) -> npt.NDArray[np.float64]:
        """Return what the similarities are multiplied by: float64 ``[y, 2]``."""
        if self.combine == "weighted":
            return np.full(similarities.shape, (self.slt_weight, 1 - self.slt_weight))
        return np.stack([reciprocal_ranks(column, docnos) for column in similarities.T], axis=1)
