"""What the retriever and the scorer share: the paths of queries, and why a formula has its score."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING

import pandas as pd

from pyterrier_mathamr._common.parameters import FRACTION, Rule
from pyterrier_mathamr.explain import Explanation, Part, QueryRow
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.sparse.expressions import asked_formula, formula_trees, query_trees
from pyterrier_mathamr.sparse.reading import warn_of_queries

from .paths import FormulaPaths, formula_paths, path_names
from .query import path_query
from .scoring import Constants, common_paths, score_expressions
from .tree import canonical_tree

if TYPE_CHECKING:
    from .index import ApproachZeroIndex

CONSTANTS: Mapping[str, Rule] = {"eta": FRACTION, "b1": FRACTION, "b2": FRACTION}
"""The rules of the score's constants."""


def asked_paths(queries: pd.DataFrame, store: FormulaStore | None) -> list[FormulaPaths]:
    """List the paths of the formula of each query (see :func:`query_trees`); a query without operator tree has none."""
    pairs = query_trees(queries, store)
    without = [qid for qid, pair in zip(queries["qid"], pairs, strict=True) if pair.slt is not None and not pair.opt]
    warn_of_queries(without, "they have no operator tree", "Search for them with TangentIndex.")
    return [tree_paths(pair) for pair in pairs]


def tree_paths(pair: FormulaPair) -> FormulaPaths:
    """List the paths of a formula; one without operator tree has none."""
    return FormulaPaths(0, [], {}) if pair.opt is None else formula_paths(canonical_tree(pair.opt))


def explain_paths(
    index: ApproachZeroIndex,
    store: FormulaStore | None,
    constants: Constants,
    system: str,
    query: QueryRow,
    docno: str | None,
) -> Explanation:
    """Say what each path that a formula has in common with the query contributes to its score."""
    (asked, formula), snapshot = asked_formula(query, docno, system), index.snapshot()
    rows = snapshot.expressions_of([asked.docno])
    pair, of = formula_trees([formula], store)[0], snapshot.expressions.payload.of
    sought = path_query(tree_paths(pair), snapshot.expressions.payload)
    scored = score_expressions(sought, of, rows, constants)
    row, latex = asked.formula()
    parts = []
    if pair.opt is not None and scored.ends[0] >= 0:
        factor = float(scored.symbols[0] * constants.penalties(of.leaves[rows])[0])
        gained = common_paths(sought, of, int(scored.roots[0]), int(scored.ends[0]))
        names = path_names(canonical_tree(pair.opt), gained)
        parts = [
            Part(system, f"path {names[key]}", formula.latex, "formula", latex, nan, nan, weight * factor, 0, row)
            for key, weight in gained.items()
        ]
    return asked.explained(parts)
