"""Searching a Tangent index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.parameters import FRACTION, Rule
from pyterrier_mathamr.explain import Explanation, Part, QueryRow
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.sparse.expressions import FormulaRetriever, asked_formula, formula_trees

from .content import dice
from .pairs import pair_terms

if TYPE_CHECKING:
    from .index import TangentIndex, TangentSnapshot


class TangentRetriever(FormulaRetriever):
    """Ranks formulas by the symbol pairs that they share with the query's formula; the text around it is not used.

    The score is w · D(layout trees) + (1 - w) · D(operator trees), D the harmonic mean of recall and precision of
    symbol pairs; a query that has one tree only is scored by that. Formulas of the same score are in order of their
    ids. A query is ``latex``, or ``query`` that is one formula in LaTeX, with or without dollars. What is no formula
    (blank text, prose, braces that do not pair) finds nothing, with a warning.

    Args:
        tangent_index: the index.
        num_results: the number of formulas for each query; those without a common symbol pair are left out.
        slt_weight: w, 0 to 1.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = TangentIndex("formulas.tangent").retriever(num_results=100)
    """

    label, help_url = "Tangent", "https://doi.org/10.1145/3077136.3080748"
    checks: ClassVar[Mapping[str, Rule]] = {**FormulaRetriever.checks, "slt_weight": FRACTION}

    def __init__(
        self,
        tangent_index: TangentIndex,
        num_results: int = 1000,
        *,
        slt_weight: float = 0.5,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.tangent_index, self.num_results, self.slt_weight = tangent_index, num_results, slt_weight
        self.store, self.verbose = store, verbose

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id."""
        snapshot = self.tangent_index.snapshot()
        return self.rank_scores(queries, snapshot, lambda pair: self.scores(snapshot, pair))

    def scores(self, snapshot: TangentSnapshot, pair: FormulaPair) -> npt.NDArray[np.float64]:
        """Score all expressions of the index for one formula.

        Args:
            snapshot: the index.
            pair: its trees.

        Returns:
            float64 ``[x]``, 0 to 1.
        """
        total = np.zeros(len(snapshot.expressions.payload.slt.lengths), dtype=np.float64)
        for _, weight, similarities in self._terms(snapshot, pair):
            total += weight * similarities
        return total

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what the two trees of a formula contribute to its score.

        Args:
            query: a row with ``latex`` or ``query``, or a frame of one query. With the ``graph`` of the post the parts
                name the formula that is found.
            docno: the id of any formula of the index; by default the ``docno`` of the row.

        Raises:
            AskedError: the row has no query, or no formula is named.
            UnknownIdError: the index does not hold the formula.
        """
        (asked, formula), snapshot = asked_formula(query, docno, self.label), self.tangent_index.snapshot()
        expression = snapshot.expressions_of([asked.docno])[0]
        row, latex = asked.formula()
        parts = [
            Part(self.label, tree, formula.latex, "formula", latex, similarity, weight, weight * similarity, 0, row)
            for tree, weight, similarities in self._terms(snapshot, formula_trees([formula], self.store)[0])
            for similarity in [float(similarities[expression])]
        ]
        return asked.explained(parts)

    def _terms(
        self, snapshot: TangentSnapshot, pair: FormulaPair
    ) -> Iterator[tuple[str, float, npt.NDArray[np.float64]]]:
        """Compute the terms of the score: the name and weight of each tree, and its similarity with all expressions."""
        content = snapshot.expressions.payload
        weights = (self.slt_weight if pair.slt else 0.0, 1 - self.slt_weight if pair.opt else 0.0)
        trees = zip(("layout tree", "operator tree"), pair, (content.slt, content.opt), weights, strict=True)
        for name, tree, postings, weight in trees:
            if weight:
                terms = Counter(pair_terms(tree, snapshot.pairs))
                yield name, weight / sum(weights), dice(postings, terms)
