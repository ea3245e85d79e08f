"""The similarities of a formula's two trees with those of many candidates, by the seven groups of features.

::

    both trees, full and with types as labels ──▶ tuples, nodes, edit distance (unit and weighted)      4 each
    both trees                                ──▶ alignment: MSS                                        2
    counts and shapes of both trees           ──▶ variables, numbers, operators, sizes, depths          7
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.formula.packed_trees import PackedTrees
from pyterrier_mathamr.store import Rows
from pyterrier_mathamr.systems.edit_distance import EditCosts, tree_edit_distances
from pyterrier_mathamr.systems.tangent_s import align

from .matching import Matches, Numbered, match_labels, match_pairs

Matching = Literal["dice", "as-run"]
Costs = Literal["printed", "as-run"]
_Floats = npt.NDArray[np.float64]

TREES = ("SLT", "OPT", "SLT-type", "OPT-type")
_GROUPS = ("tuples", "nodes", "edit distance", "weighted edit distance")
_COUNTED = {"variables": ("V!",), "numbers": ("N!",), "operators": ("U!", "O!")}
_SHAPES = ("OPT size", "SLT size", "OPT depth", "SLT baseline")
COSINES = tuple(f"{tree} cosine" for tree in TREES)
NAMES = (
    *(f"{tree} {group}" for group, tree in product(_GROUPS[:2], TREES)),
    *(f"{tree} MSS" for tree in TREES[:2]),
    *(f"{tree} {group}" for group, tree in product(_GROUPS[2:], TREES)),
    *_COUNTED,
    *_SHAPES,
)
"""The features that need trees only, in their order."""

RANKING_COSTS: dict[Costs, dict[str, EditCosts]] = {
    "printed": {
        "SLT": EditCosts(0.43, 0.41, 0.20),
        "OPT": EditCosts(0.31, 0.29, 0.21),
        "SLT-type": EditCosts(0.37, 0.33, 0.29),
        "OPT-type": EditCosts(0.34, 0.32, 0.25),
    },
    "as-run": {tree: EditCosts(0.4, 0.2, 0.4) if "SLT" in tree else EditCosts(0.3, 0.2, 0.2) for tree in TREES},
}
"""Costs of the weighted edit distance, by name and tree: as printed (there in the order deletion, renaming, insertion),
and those of the authors' program, where insertion and renaming are the other way round."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How trees are compared; see :class:`FormulaFeatures`."""

    tuples: Matching = "dice"
    nodes: Matching = "dice"
    costs: Costs = "printed"
    max_nodes: int = 400

    def values(self, query: FormulaPair, slt: PackedTrees, opt: PackedTrees) -> _Floats:
        """Compare a formula with some candidates."""
        found: dict[str, _Floats] = {}
        for tree, trees in zip(query, (slt, opt), strict=True):
            if tree is not None:
                one = self._of_kind(tree, trees)
                missing = trees.sizes == 0
                found |= {name: np.where(missing, np.nan, values) for name, values in one.items()}
        nothing = np.full(len(slt), np.nan)
        return np.stack([found.get(name, nothing) for name in NAMES], axis=1)

    def _of_kind(self, query: FormulaTree, trees: PackedTrees) -> dict[str, _Floats]:
        """Compare the trees of one kind, by the names of features."""
        kind, rows = trees.kind.upper(), np.arange(len(trees))
        mss, precision, exact = align(query, trees, rows).T
        found = {f"{kind} MSS": mss}
        both = ((kind, query, trees, exact), (f"{kind}-type", query.unified(), trees.unified(), precision))
        for name, ours, theirs, aligned in both:
            numbered = Numbered.both(ours, theirs)
            pairs = match_pairs(*numbered, places=self.tuples == "as-run")
            found[f"{name} tuples"] = pairs.dice() if self.tuples == "dice" else pairs.as_run()
            found[f"{name} nodes"] = match_labels(*numbered).dice() if self.nodes == "dice" else aligned
            sizes = len(ours.nodes) + theirs.sizes
            for group, costs in zip(_GROUPS[2:], (EditCosts(), RANKING_COSTS[self.costs][name]), strict=True):
                distances = tree_edit_distances(ours, theirs, rows, costs, self.max_nodes)
                found[f"{name} {group}"] = 1 - distances / np.maximum(sizes, 1)
        return found | (_of_operators(query, trees) if trees.kind == "opt" else _of_layout(query, trees))


def _of_operators(query: FormulaTree, trees: PackedTrees) -> dict[str, _Floats]:
    """Compare what operator trees have of each sort of symbol, how many nodes, and how deep they are."""
    found, (ours, theirs) = dict[str, _Floats](), Numbered.both(query, trees)
    for name, types in _COUNTED.items():
        here, there = (_of_types(side, types) for side in (ours, theirs))
        matches = Matches.of(ours.labels[here], theirs.labels[there], trees.owners[there], len(trees))
        most = np.maximum(matches.sizes, matches.times.sum())
        found[name] = matches.shared() / np.maximum(most, 1)
    depths = (_deepest(side, np.ones(len(side.labels), dtype=np.int64)) for side in (ours.trees, trees))
    return found | {"OPT size": _apart(ours.trees.sizes, trees.sizes), "OPT depth": _apart(*depths)}


def _of_layout(query: FormulaTree, trees: PackedTrees) -> dict[str, _Floats]:
    """Compare how many nodes layout trees have, and how far they go from their baseline."""
    one = PackedTrees.of_trees([query], "slt")
    away = (_deepest(side, (side.edges != ord("n")).astype(np.int64)) for side in (one, trees))
    return {"SLT size": _apart(one.sizes, trees.sizes), "SLT baseline": _apart(*away)}


def _of_types(side: Numbered, types: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Tell which nodes are of some types."""
    of_label = np.array([name.startswith(types) for name in side.trees.names], dtype=np.bool_)
    chosen: npt.NDArray[np.bool_] = of_label[side.trees.labels]
    return chosen


def _deepest(trees: PackedTrees, lengths: Rows) -> Rows:
    """Find the longest way down from each root: int64 ``[trees]``."""
    above, depths = trees.above, np.zeros(len(lengths), dtype=np.int64)
    for level in trees.levels()[1:]:
        depths[level] = depths[above[level]] + lengths[level]
    found = np.zeros(len(trees), dtype=np.int64)
    np.maximum.at(found, trees.owners, depths)
    return found


def _apart(query: Rows, candidates: Rows) -> _Floats:
    """Compute the difference of a number, relative to that of the query: float64 ``[y]``."""
    apart: _Floats = np.abs(candidates - query[0]) / (query[0] + 1)
    return apart
