"""Searching a Tangent-CFT index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.parameters import COUNT, Rule, one_of
from pyterrier_mathamr.explain import Explanation, Part, QueryRow
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.fusion import reciprocal_ranks
from pyterrier_mathamr.sparse.expressions import FormulaRetriever, asked_formula, formula_trees
from pyterrier_mathamr.sparse.ranking import best_first
from pyterrier_mathamr.store import Rows

from .encoder import KEPT, Kept, cosines, quantized
from .words import REPRESENTATIONS

if TYPE_CHECKING:
    from .index import CFTSnapshot, TangentCFT

Mode = Literal["cft", "cft2"]

_NAMES: dict[Kept, str] = {
    "slt": "layout tree",
    "opt": "operator tree",
    "slt_type": "layout tree of types",
    "opt_type": "operator tree of types",
    "sum": "formula",
}
_COMPARED: dict[Mode, tuple[Kept, ...]] = {"cft": ("sum",), "cft2": REPRESENTATIONS}


class _Term(NamedTuple):
    """What one vector contributes to the scores of some expressions: cosine times weight.

    Attributes:
        name: of the vector.
        expressions: int64 ``[y]``.
        cosines: float64 ``[y]``, of them.
        weights: float64 ``[y]``.
    """

    name: Kept
    expressions: Rows
    cosines: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]


class TangentCFTRetriever(FormulaRetriever):
    r"""Ranks formulas by the cosine of their vectors with the query's.

    Tangent-CFT compares the sum of three vectors, those of layout tree, operator tree and layout tree of types; a
    formula without a layout tree is not found. Tangent-CFT2 ranks by each of four vectors, and fuses the rankings by
    modified reciprocal rank fusion, Σ cosine / (60 + rank) (Mansouri, "Leveraging Formulae and Text for Improved Math
    Retrieval", 2022, equation 4.2). Expressions are ranked, and each of their formulas has their score; formulas of the
    same score are in order of their ids. The search is exact. A query is ``latex``, or ``query`` that is one formula in
    LaTeX, with or without dollars. What is no formula finds nothing, with a warning.

    Args:
        tangent_cft: the index.
        num_results: the number of formulas for each query; those whose cosine is not above 0 are left out.
        mode: ``"cft"`` or ``"cft2"``.
        candidates: the number of expressions in each ranking that Tangent-CFT2 fuses.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = TangentCFT("formulas.cft").retriever(mode="cft2", num_results=100)
    """

    label, help_url = "Tangent-CFT", "https://doi.org/10.1145/3341981.3344235"
    checks: ClassVar[Mapping[str, Rule]] = {
        **FormulaRetriever.checks,
        "mode": one_of(*get_args(Mode)),
        "candidates": COUNT,
    }

    def __init__(
        self,
        tangent_cft: TangentCFT,
        num_results: int = 1000,
        *,
        mode: Mode = "cft2",
        candidates: int = 1000,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.tangent_cft, self.num_results, self.mode, self.candidates = tangent_cft, num_results, mode, candidates
        self.store, self.verbose = store, verbose

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id."""
        snapshot = self.tangent_cft.snapshot()
        return self.rank_scores(queries, snapshot, lambda pair: self.scores(snapshot, pair))

    def scores(self, snapshot: CFTSnapshot, pair: FormulaPair) -> npt.NDArray[np.float64]:
        """Score all expressions of the index for one formula."""
        total = np.zeros(len(snapshot.expressions.payload.squares))
        for term in self._terms(snapshot, pair):
            total[term.expressions] += term.weights * term.cosines
        return total

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what the cosine of each vector contributes to the score of a formula; its weight is 1 / (60 + rank)."""
        (asked, formula), snapshot = asked_formula(query, docno, self.label), self.tangent_cft.snapshot()
        expression = snapshot.expressions_of([asked.docno])[0]
        row, latex = asked.formula()
        parts = []
        for term in self._terms(snapshot, formula_trees([formula], self.store)[0]):
            for place in np.flatnonzero(term.expressions == expression).tolist():
                cosine, weight = float(term.cosines[place]), float(term.weights[place])
                each = (_NAMES[term.name], formula.latex, "formula", latex, cosine, weight, cosine * weight, 0, row)
                parts.append(Part(self.label, *each))
        return asked.explained(parts)

    def _terms(self, snapshot: CFTSnapshot, pair: FormulaPair) -> Iterator[_Term]:
        """Compute the terms of the score."""
        expressions = snapshot.expressions
        payload = expressions.payload
        if not len(payload.squares):
            return
        query = dict(zip(KEPT, quantized(snapshot.encoder().encode(pair)), strict=True))
        every = np.arange(len(payload.squares))
        for name in _COMPARED[self.mode]:
            found = cosines(payload.rows[name], payload.squares[:, KEPT.index(name)], query[name])
            if self.mode == "cft":
                yield _Term(name, every, found, np.ones(len(found)))
                continue
            above = np.flatnonzero(found > 0)
            best, values = best_first(
                above,
                found[above],
                self.candidates,
                lambda some: snapshot.formula_ids(expressions.firsts[some]),
            )
            yield _Term(name, best, values, reciprocal_ranks(values, np.arange(len(best))))
