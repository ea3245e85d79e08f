"""Formulas compared with a query's: seven groups of similarities of their trees, as features to learn from.

::

    both trees, full and with types as labels ──▶ tuples, nodes, edit distance (unit and weighted)      4 each
    both trees                                ──▶ alignment: MSS                                        2
    counts and shapes of both trees           ──▶ variables, numbers, operators, sizes, depths          7

A symbol pair is an ancestor, a descendant one or two edges below, and the edges between them; the last symbol of each
baseline (in an operator tree: each leaf) has one with the end mark. Symbol pairs become numbers, the candidates' are
looked up among the query's, and a table counts how often each candidate has each of the query's::

                    (x,2,a)  (2,0!,n)  (x,+,n)  …        the query's, with how often it has them
    candidate 0        1        0         2
    candidate 1        0        1         1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems.formula_trees import EditCosts, FormulaTrees, tree_edit_distances
from mathamr_systems.tangent_s import align
from pyterrier_mathamr.extending import COUNT, FormulaReranker, PackedTrees, Rule, one_of, query_trees, with_objects
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, FormulaTree
from pyterrier_mathamr.store import Rows

if TYPE_CHECKING:
    from mathamr_systems.tangent_cft import TangentCFT

_Floats = npt.NDArray[np.float64]
Matching = Literal["dice", "as-run"]
Costs = Literal["printed", "as-run"]


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """How often each of ``y`` candidates has each of a query's ``k`` distinct things."""

    table: Rows  # [y, k]
    times: Rows  # [k], how often the query has each
    sizes: Rows  # [y], all things of each candidate, also if the query lacks them

    @classmethod
    def of(cls, ours: Rows, theirs: Rows, owners: Rows, candidates: int) -> Matches:
        things, times = np.unique(ours, return_counts=True)
        places = np.searchsorted(things, theirs)
        known = places < len(things)
        known[known] = things[places[known]] == theirs[known]
        cells = owners[known] * len(things) + places[known]
        table = np.bincount(cells, minlength=candidates * len(things)).reshape(candidates, len(things))
        return cls(table, times, np.bincount(owners, minlength=candidates))

    def shared(self) -> Rows:
        """Count the common things with multiplicity: int64 ``[y]``."""
        common: Rows = np.minimum(self.table, self.times).sum(axis=1)
        return common

    def dice(self) -> _Floats:
        """Compute the harmonic mean of precision and recall, as Tangent does: float64 ``[y]``, 0 to 1."""
        mean: _Floats = 2 * self.shared() / np.maximum(self.sizes + self.times.sum(), 1)
        return mean

    def as_run(self) -> _Floats:
        """Compute 2PR / (P + R + 1), where a thing is found or not, however often: float64 ``[y]``, 0 to 2/3."""
        matched = (self.table > 0) @ self.times
        recall, precision = matched / max(int(self.times.sum()), 1), matched / np.maximum(self.sizes, 1)
        mean: _Floats = 2 * precision * recall / (precision + recall + 1)
        return mean


class Numbered(NamedTuple):
    """Trees whose labels and edges have the numbers that a query's have."""

    trees: PackedTrees
    labels: Rows
    edges: Rows

    @classmethod
    def both(cls, query: FormulaTree, trees: PackedTrees) -> tuple[Numbered, Numbered]:
        one = PackedTrees.of_trees([query], trees.kind)
        numbers = {name: number for number, name in enumerate(trees.names)}
        of_query = [numbers.setdefault(name, len(numbers)) for name in one.names]
        values, edges = np.unique(np.concatenate([one.edges, trees.edges]), return_inverse=True)
        edges = np.where(values[edges] < 0, -1, edges)
        labels = np.array(of_query, dtype=np.int64)[one.labels]
        here = len(one.labels)
        return cls(one, labels, edges[:here]), cls(trees, trees.labels.astype(np.int64), edges[here:])


def match_labels(query: Numbered, candidates: Numbered) -> Matches:
    return Matches.of(query.labels, candidates.labels, candidates.trees.owners, len(candidates.trees))


def match_pairs(query: Numbered, candidates: Numbered, *, places: bool = False) -> Matches:
    """Count the symbol pairs that a query and each of its candidates have in common, of a window of two edges."""
    both = query, candidates
    labels, edges = (
        1 + max((int(part.max(initial=-1)) for part in parts), default=-1)
        for parts in ((query.labels, candidates.labels), (query.edges, candidates.edges))
    )
    end = np.array([labels, edges])  # one more label and one more edge, for an end mark
    ways = _places(query, candidates) if places else [np.zeros(len(side.labels), dtype=np.int64) for side in both]
    ours, theirs = (_pairs(side, way, end) for side, way in zip(both, ways, strict=True))
    owners = candidates.trees.owners[theirs[0]]
    return Matches.of(ours[1], theirs[1], owners, len(candidates.trees))


def _pairs(side: Numbered, places: Rows, end: Rows) -> tuple[Rows, Rows]:
    nodes, above = np.arange(len(side.labels)), side.trees.above
    below = nodes[above >= 0]
    lower = below[above[above[below]] >= 0]
    goes_on = np.zeros(len(nodes), dtype=np.bool_)
    goes_on[above[above >= 0 if side.trees.kind == "opt" else side.trees.edges == ord("n")]] = True
    last = nodes[~goes_on]  # of their baseline; of operator trees, the leaves
    upper = np.concatenate([above[below], above[above[lower]], last])
    descendants = np.concatenate([side.labels[below], side.labels[lower], np.full(len(last), end[0])])
    first = np.concatenate([side.edges[below], side.edges[above[lower]], np.full(len(last), end[1])])
    second = np.concatenate([np.full(len(below), end[1]), side.edges[lower], np.full(len(last), end[1])])
    number = places[upper]
    for part, size in ((side.labels[upper], end[0]), (descendants, end[0]), (first, end[1]), (second, end[1])):
        number = number * (size + 1) + part
    return upper, np.where(places[upper] < 0, places[upper], number)


def _places(query: Numbered, candidates: Numbered) -> tuple[Rows, Rows]:
    """Number the ways of edges from the root that a query has, as far as a candidate goes; -2 beyond."""
    found = [np.full(len(side.labels), none, dtype=np.int64) for side, none in ((query, -2), (candidates, -1))]
    levels = [side.trees.levels() for side in (query, candidates)]
    for place, level in zip(found, levels, strict=True):
        place[level[0]] = 0
    width, known = 1 + int(max(query.edges.max(initial=0), candidates.edges.max(initial=0))), 1
    for ours, theirs in zip(levels[0][1:], levels[1][1:], strict=False):
        ways = found[0][query.trees.above[ours]] * width + query.edges[ours]
        distinct, numbers = np.unique(ways, return_inverse=True)
        found[0][ours] = known + numbers
        before = found[1][candidates.trees.above[theirs]]
        step = before * width + candidates.edges[theirs]
        at = np.minimum(np.searchsorted(distinct, step), len(distinct) - 1)
        found[1][theirs] = np.where((before >= 0) & (distinct[at] == step), known + at, -1)
        known += len(distinct)
    return found[0], found[1]


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
"""Costs of the weighted edit distance, by name and tree: as printed (in the order deletion, renaming, insertion),
and as in the authors' program, with insertion and renaming swapped."""


@dataclass(frozen=True, slots=True)
class FormulaComparison:
    """How trees are compared; see :class:`FormulaFeatures`."""

    tuples: Matching = "dice"
    nodes: Matching = "dice"
    costs: Costs = "printed"
    max_nodes: int = 400

    def values(self, query: FormulaPair, slt: PackedTrees, opt: PackedTrees) -> _Floats:
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
        if trees.kind == "opt":
            return found | _of_operators(query, trees)
        one = PackedTrees.of_trees([query], "slt")
        away = (_deepest(side, (side.edges != ord("n")).astype(np.int64)) for side in (one, trees))
        return found | {"SLT size": _apart(one.sizes, trees.sizes), "SLT baseline": _apart(*away)}


def _of_operators(query: FormulaTree, trees: PackedTrees) -> dict[str, _Floats]:
    """Compare the counts of each sort of symbol in operator trees, their sizes and their depths."""
    features, (ours, theirs) = dict[str, _Floats](), Numbered.both(query, trees)
    for name, types in _COUNTED.items():
        mine, its = (
            np.array([name.startswith(types) for name in side.trees.names], dtype=np.bool_)[side.trees.labels]
            for side in (ours, theirs)
        )
        matches = Matches.of(ours.labels[mine], theirs.labels[its], trees.owners[its], len(trees))
        most = np.maximum(matches.sizes, matches.times.sum())
        features[name] = matches.shared() / np.maximum(most, 1)
    depths = (_deepest(side, np.ones(len(side.labels), dtype=np.int64)) for side in (ours.trees, trees))
    return features | {"OPT size": _apart(ours.trees.sizes, trees.sizes), "OPT depth": _apart(*depths)}


def _deepest(trees: PackedTrees, lengths: Rows) -> Rows:
    """Find the longest way down from each root: int64 ``[trees]``."""
    above, depths = trees.above, np.zeros(len(lengths), dtype=np.int64)
    for level in trees.levels()[1:]:
        depths[level] = depths[above[level]] + lengths[level]
    deepest = np.zeros(len(trees), dtype=np.int64)
    np.maximum.at(deepest, trees.owners, depths)
    return deepest


def _apart(query: Rows, candidates: Rows) -> _Floats:
    """Compute the difference of a number, relative to that of the query: float64 ``[y]``."""
    apart: _Floats = np.abs(candidates - query[0]) / (query[0] + 1)
    return apart


_OF_COSINES = NAMES.index("variables")  # cosines come before the last group


class FormulaFeatures(FormulaReranker):
    r"""Computes how similar formulas are to the query's formula, in up to 29 ways, as a column ``features``.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 4.3.3; Mansouri,
    Zanibbi and Oard, "Learning to rank for mathematical formula retrieval", SIGIR 2021. For layout trees, operator
    trees, and both with types instead of symbols: common symbol pairs (4 features), common symbols (4), edit distance
    as 1 - distance / nodes of both (4), the same with weighted costs (4), and cosines of Tangent-CFT vectors (4, if
    there are vectors). For layout and operator trees: MSS of Tangent-S' alignment (2). And seven more: the shares of
    common variables, numbers and operators, and the differences of sizes, of the operator trees' depths and of how far
    the layout trees go from their baseline.

    Each feature is scaled to 0 … 1 over the candidates of a query, and is 0 for all if it is the same for all. A
    candidate that lacks the tree of a feature has 0.

    Args:
        formula_trees: the trees of the formulas to rank.
        cft: vectors of the same formulas, such as a Tangent-CFT index; without them there are 25 features.
        tuples: ``"dice"``, the harmonic mean of recall and precision with repetitions, as in Tangent; ``"as-run"``,
            as in the authors' program: 2PR / (P + R + 1), without repetitions, where equal symbol pairs at different
            places in the formula differ.
        nodes: ``"dice"``, the same for symbols; ``"as-run"``, exact recall and (for types) precision of the alignment.
        costs: of the weighted edit distance: ``"printed"``, or ``"as-run"`` in the authors' program.
        max_nodes: in edit distances, larger trees are compared only by their labels.
        store: official trees of the queries' formulas, looked up by ``formula_id`` if queries have it.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        tangent, trees = TangentIndex("formulas.tangent"), FormulaTrees("formulas.trees")
        features = FormulaFeatures(trees)
        learner = PairwiseRanker(names=features.names)
        pipeline = TangentS(tangent, trees) >> features >> pt.ltr.apply_learned_model(learner, form="ltr")
    """

    label, help_url = "formula features", "https://doi.org/10.1145/3404835.3462956"
    added = ("features",)
    checks: ClassVar[Mapping[str, Rule]] = {
        "tuples": one_of(*get_args(Matching)),
        "nodes": one_of(*get_args(Matching)),
        "costs": one_of(*get_args(Costs)),
        "max_nodes": COUNT,
    }

    def __init__(
        self,
        formula_trees: FormulaTrees,
        cft: TangentCFT | None = None,
        *,
        tuples: Matching = "dice",
        nodes: Matching = "dice",
        costs: Costs = "printed",
        max_nodes: int = 400,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.formula_trees, self.cft, self.tuples, self.nodes = formula_trees, cft, tuples, nodes
        self.costs, self.max_nodes, self.store, self.verbose = costs, max_nodes, store, verbose

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature, in the order of the column."""
        return NAMES if self.cft is None else (*NAMES[:_OF_COSINES], *COSINES, *NAMES[_OF_COSINES:])

    def rerank(self, ranking: pd.DataFrame) -> pd.DataFrame:
        """Add ``features``, float64 ``[f]`` in the order of :attr:`names`."""
        docnos = ranking["docno"].astype(str).tolist()
        self.formula_trees.snapshot().expressions_of(docnos)  # report an unknown id before anything is computed
        features = np.zeros((len(ranking), len(self.names)))
        for rows, pair in self.by_query(ranking, query_trees):
            features[rows] = scaled(self.values(pair, [docnos[row] for row in rows.tolist()]))
        return with_objects(ranking, features=list(features))

    def values(self, pair: FormulaPair, formula_ids: Sequence[str]) -> _Floats:
        """Compare the trees ``pair`` of a formula with the formulas ``formula_ids``, without scaling.

        Returns:
            float64 ``[formulas, f]`` in the order of :attr:`names`; NaN where one of two trees is missing.
        """
        snapshot = self.formula_trees.snapshot()
        rows, back = np.unique(snapshot.expressions_of(formula_ids), return_inverse=True)
        trees = snapshot.expressions.payload
        comparison = FormulaComparison(self.tuples, self.nodes, self.costs, self.max_nodes)
        found = comparison.values(pair, trees.slt.take(rows), trees.opt.take(rows))[back]
        if self.cft is None:
            return found
        cosines = self.cft.cosines(pair, formula_ids)
        missing = np.isnan(found[:, [NAMES.index(name) for name in ("SLT MSS", "OPT MSS")]])
        cosines = np.where(np.tile(missing, 2), np.nan, cosines)
        return np.concatenate([found[:, :_OF_COSINES], cosines, found[:, _OF_COSINES:]], axis=1)


def scaled(values: _Floats) -> _Floats:
    """Scale each column to 0 … 1; a constant column, and NaN, becomes 0."""
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # NaN only where all are
    scaled_values: _Floats = np.nan_to_num((values - low) / np.where(high > low, high - low, np.inf))
    return scaled_values
