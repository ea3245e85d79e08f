"""Searching an In+Out index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, get_args

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.parameters import Rule, one_of
from pyterrier_mathamr.explain import Explanation, Part, QueryRow
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.sparse.expressions import FormulaRetriever, asked_formula, formula_trees

from .combining import Combine, Scale, combined, parts
from .node_rows import Grid, Scores, on_grid
from .payload import NodeEncoder, NodeVectors

if TYPE_CHECKING:
    from .index import InOutIndex

_NAMES: dict[Packed, str] = {"slt": "layout graph", "opt": "operator graph"}


class InOutRetriever(FormulaRetriever):
    """Ranks formulas by how well the nodes of the query's graphs are found among theirs.

    For each of the two graphs the score is S(Q, C) = Σᵢ maxⱼ cos(qᵢ, cⱼ), over the nodes i of the query and j of the
    candidate (In+Out, equation 4), computed of all formulas; a candidate that lacks a graph has 0 there. A query that
    has one tree only, or a model of one kind of graph, is scored by that. Formulas of the same score are in order of
    their ids. A query is ``latex``, or ``query`` that is one formula in LaTeX, with or without dollars. What is no
    formula (blank text, prose, braces that do not pair) finds nothing, with a warning.

    Args:
        in_out_index: the index, with the model that built it.
        num_results: the number of formulas for each query.
        combine: of both scores the greater one, ``max``; the mean, ``avg``; the harmonic mean, ``f1``, 0 where one is
            not above 0; or ``rrf``, the sum of 1 / (60 + rank), the constant of which the paper does not print.
        scale: ``sum`` as printed; ``mean`` divides each score by the nodes of the query's graph, of which the operator
            graph usually has more.
        store: official trees of the queries' formulas, looked up by ``formula_id`` where queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = InOutIndex("formulas.inout", model).retriever(combine="max", num_results=100)
    """

    label, help_url = "In+Out", "https://doi.org/10.1145/3731120.3744589"
    checks: ClassVar[Mapping[str, Rule]] = {
        **FormulaRetriever.checks,
        "combine": one_of(*get_args(Combine)),
        "scale": one_of(*get_args(Scale)),
    }

    def __init__(
        self,
        in_out_index: InOutIndex,
        num_results: int = 1000,
        *,
        combine: Combine = "max",
        scale: Scale = "sum",
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.in_out_index, self.num_results, self.combine, self.scale = in_out_index, num_results, combine, scale
        self.store, self.verbose = store, verbose

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row; ``docno`` is the formula's id."""
        snapshot, model = self.in_out_index.asked()
        vectors = snapshot.expressions.payload
        return self.rank_scores(queries, snapshot, lambda pair: self.scores(vectors, model, pair), above=-np.inf)

    def scores(self, vectors: NodeVectors, model: NodeEncoder, pair: FormulaPair) -> Scores:
        """Score all expressions for one formula.

        Args:
            vectors: of the expressions.
            model: the encoder.
            pair: the formula's trees.

        Returns:
            float64 ``[x]``; minus infinity where the formula has no graph.
        """
        each = self._each([(kind, rows) for kind, _, rows in _graphs(model, pair)], vectors)
        if not len(each):
            return np.full(len(vectors), -np.inf)
        return combined(self.combine, each) if len(each) > 1 else each[0]

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each node of the query's graphs contributes to the score of a formula.

        With reciprocal rank fusion, which knows no nodes, the parts are the ranks by both graphs.

        Args:
            query: a row with ``latex`` or ``query``, or a frame of one query. With the ``graph`` of the post the parts
                name the formula that is found.
            docno: the id of any formula of the index; by default the ``docno`` of the row.

        Raises:
            AskedError: the row has no query, or no formula is named.
            UnknownIdError: the index does not hold the formula.
        """
        (asked, formula), (snapshot, model) = asked_formula(query, docno, self.label), self.in_out_index.asked()
        vectors, expression = snapshot.expressions.payload, int(snapshot.expressions_of([asked.docno])[0])
        graphs = _graphs(model, formula_trees([formula], self.store)[0])
        each = self._each([(kind, rows) for kind, _, rows in graphs], vectors)
        weights, values = parts(self.combine, each) if len(graphs) > 1 else (np.ones_like(each), each)
        row, latex = asked.formula()
        found = []
        for place, (kind, tree, rows) in enumerate(graphs):
            factor, name = float(weights[place, expression]), _NAMES[kind]
            met: list[tuple[str, float]] = [(formula.latex, float(values[place, expression]))]
            if self.combine != "rrf" or len(graphs) == 1:
                factor *= self._factor(rows)
                own = getattr(vectors, kind).only(expression)
                met = [(label, float(own.maxsim(node[None])[0])) for label, node in zip(tree.nodes, rows, strict=True)]
            found += [
                Part(self.label, name, text, "formula", latex, value, factor, factor * value, 0, row)
                for text, value in met
            ]
        return asked.explained(found)

    def _each(self, graphs: Sequence[tuple[Packed, Grid]], vectors: NodeVectors) -> Scores:
        """Score all expressions by each graph of a query: float64 ``[graphs, x]``."""
        return np.array([getattr(vectors, kind).maxsim(rows) * self._factor(rows) for kind, rows in graphs])

    def _factor(self, rows: Grid) -> float:
        return 1 / len(rows) if self.scale == "mean" else 1.0


def _graphs(model: NodeEncoder, pair: FormulaPair) -> list[tuple[Packed, FormulaTree, Grid]]:
    """Encode the graphs of a formula that there are."""
    there = [(kind, tree) for kind, tree in zip(get_args(Packed), pair, strict=True) if tree and kind in model.kinds]
    return [(kind, tree, on_grid(model.encode([tree], kind, distinct=False)[0])) for kind, tree in there]
