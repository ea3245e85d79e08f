"""Further rows of Task 2, ``--systems variants``: systems with other options than those of their own rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import get_args

import numpy as np

from pyterrier_mathamr.experiments.artifacts import TANGENT
from pyterrier_mathamr.experiments.measuring import Way
from pyterrier_mathamr.experiments.search import FORMULA_DEPTH, distinct
from pyterrier_mathamr.experiments.tasks.formulas.parts import FormulaParts, FormulaSystem, Weights
from pyterrier_mathamr.systems import TangentS
from pyterrier_mathamr.systems.edit_distance import Combine, CostNames
from pyterrier_mathamr.systems.in_out import Combine as Together
from pyterrier_mathamr.systems.in_out import Scale

CANDIDATES = 2000
_WEIGHTS = ("constant", *(f"{tree} {of}" for tree in ("slt", "opt") for of in ("MSS", "precision", "exact recall")))


def edit_distance(parts: FormulaParts, combine: Combine = "weighted", costs: CostNames = "swapped") -> Way:
    """Rank candidates by pairs of symbols anew by the edit distance of their trees."""
    reranker = parts.shared.formula_trees.edit_distance(combine=combine, costs=costs, store=parts.trees)
    return Way(distinct(parts.shared.tangent.retriever(CANDIDATES, store=parts.trees) >> reranker))


def _tangent(parts: FormulaParts) -> Way:
    """Rank by pairs of symbols."""
    return Way(distinct(parts.shared.wide_tangent.retriever(FORMULA_DEPTH, store=parts.trees)))


def _system(parts: FormulaParts, complete: bool) -> TangentS:
    """Align the trees of candidates."""
    trees, store = parts.shared.formula_trees, parts.trees
    return TangentS(parts.shared.wide_tangent, trees, num_results=FORMULA_DEPTH, complete=complete, store=store)


def _tangent_s(parts: FormulaParts, complete: bool) -> Way:
    """Align the trees of candidates, and weigh their scores as the authors do or as was fitted."""
    system = _system(parts, complete)
    if parts.weights:
        system.weights = tuple(parts.weights[name] for name in _WEIGHTS)
    return Way(distinct(system))


def _fitted(years: Sequence[FormulaParts], complete: bool) -> Weights:
    """Fit the weights by least squares on each year, and take their mean."""
    found = []
    for parts in years:
        system = _system(parts, complete)
        system.fit(parts.topics, parts.qrels)
        found.append(system.weights)
    return dict(zip(_WEIGHTS, np.mean(found, axis=0).tolist(), strict=True))


def in_out(parts: FormulaParts, combine: Together = "max", scale: Scale = "sum") -> Way:
    """Rank by the nodes of the formula's graphs."""
    system = parts.shared.in_out.retriever(FORMULA_DEPTH, combine=combine, scale=scale, store=parts.trees)
    return Way(distinct(system))


def _in_out_rows() -> dict[str, FormulaSystem]:
    ways: tuple[tuple[Together, Scale], ...] = (
        ("max", "mean"),
        ("avg", "sum"),
        ("avg", "mean"),
        ("f1", "sum"),
        ("rrf", "sum"),
    )
    return {
        f"In+Out ({combine}{'; mean' * (scale == 'mean')})": FormulaSystem(
            partial(in_out, combine=combine, scale=scale)
        )
        for combine, scale in ways
    }


def _tangent_s_rows() -> dict[str, FormulaSystem]:
    rows = {}
    for complete, fitted in product((False, True), (False, True)):
        name = "; ".join(["window 4", *["complete"] * complete, *["fitted"] * fitted])
        make, fit = partial(_tangent_s, complete=complete), partial(_fitted, complete=complete)
        rows[f"Tangent-S ({name})"] = FormulaSystem(make, fit if fitted else None)
    return rows


def _edit_distance_rows() -> dict[str, FormulaSystem]:
    combinations: tuple[Combine, ...] = get_args(Combine)
    of_costs: tuple[CostNames, ...] = get_args(CostNames)
    return {
        f"{TANGENT} % {CANDIDATES} >> edit distance ({combine}; {costs})": FormulaSystem(
            partial(edit_distance, combine=combine, costs=costs)
        )
        for combine, costs in product(combinations, of_costs)
        if (combine, costs) != ("weighted", "swapped")  # has a row of its own
    }


VARIANTS: Mapping[str, FormulaSystem] = MappingProxyType(
    {
        f"{TANGENT} (window 4)": FormulaSystem(_tangent),
        **_tangent_s_rows(),
        **_edit_distance_rows(),
        **_in_out_rows(),
    }
)
"""How each is made. ``fitted`` are weights of the other years."""
