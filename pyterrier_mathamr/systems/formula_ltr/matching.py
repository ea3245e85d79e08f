"""What a formula's tree has in common with many others at once: its labels, and its pairs of symbols.

A symbol pair is an ancestor, a descendant one or two edges below, and the edges between them; the last symbol of each
baseline (in an operator tree: each leaf) has one with the end mark. Symbol pairs become numbers, the candidates' are
looked up among the query's, and a table counts how often each candidate has each of the query's::

                    (x,2,a)  (2,0!,n)  (x,+,n)  …        the query's, with how often it has them
    candidate 0        1        0         2
    candidate 1        0        1         1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.packed_trees import PackedTrees
from pyterrier_mathamr.store import Rows

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """How often each of ``y`` candidates has each of a query's ``k`` distinct things.

    Attributes:
        table: int64 ``[y, k]``.
        times: int64 ``[k]``, how often the query has each.
        sizes: int64 ``[y]``, all things of each candidate, those that the query does not have included.
        things: int64 ``[k]``, the number of each thing.
    """

    table: Rows
    times: Rows
    sizes: Rows
    things: Rows

    @classmethod
    def of(cls, ours: Rows, theirs: Rows, owners: Rows, candidates: int) -> Matches:
        """Count."""
        things, times = np.unique(ours, return_counts=True)
        places = np.searchsorted(things, theirs)
        known = places < len(things)
        known[known] = things[places[known]] == theirs[known]
        cells = owners[known] * len(things) + places[known]
        table = np.bincount(cells, minlength=candidates * len(things)).reshape(candidates, len(things))
        return cls(table, times, np.bincount(owners, minlength=candidates), things)

    def shared(self) -> Rows:
        """Count the common things, each as often as both have it: int64 ``[y]``."""
        common: Rows = np.minimum(self.table, self.times).sum(axis=1)
        return common

    def dice(self) -> _Floats:
        """Compute the harmonic mean of precision and recall, as Tangent does: float64 ``[y]``, 0 to 1."""
        mean: _Floats = 2 * self.shared() / np.maximum(self.sizes + self.times.sum(), 1)
        return mean

    def as_run(self) -> _Floats:
        """Compute 2PR / (P + R + 1), where a thing is found or not, however often: float64 ``[y]``, 0 to 2/3."""
        found = (self.table > 0) @ self.times
        recall, precision = found / max(int(self.times.sum()), 1), found / np.maximum(self.sizes, 1)
        mean: _Floats = 2 * precision * recall / (precision + recall + 1)
        return mean


class Numbered(NamedTuple):
    """Trees whose labels and edges have the numbers that a query's have."""

    trees: PackedTrees
    labels: Rows
    edges: Rows

    @classmethod
    def both(cls, query: FormulaTree, trees: PackedTrees) -> tuple[Numbered, Numbered]:
        """Number a query and its candidates."""
        one = PackedTrees.of_trees([query], trees.kind)
        numbers = {name: number for number, name in enumerate(trees.names)}
        of_query = [numbers.setdefault(name, len(numbers)) for name in one.names]
        values, edges = np.unique(np.concatenate([one.edges, trees.edges]), return_inverse=True)
        edges = np.where(values[edges] < 0, -1, edges)
        own = np.array(of_query, dtype=np.int64)[one.labels]
        here = len(one.labels)
        return cls(one, own, edges[:here]), cls(trees, trees.labels.astype(np.int64), edges[here:])


def match_labels(query: Numbered, candidates: Numbered) -> Matches:
    """Count the labels of nodes that a query and each of its candidates have in common."""
    return Matches.of(query.labels, candidates.labels, candidates.trees.owners, len(candidates.trees))


def match_pairs(query: Numbered, candidates: Numbered, *, places: bool = False) -> Matches:
    """Count the symbol pairs that a query and each of its candidates have in common, of a window of two edges."""
    both = query, candidates
    labels, edges = (
        1 + max((int(part.max(initial=-1)) for part in parts), default=-1)
        for parts in (
            (query.labels, candidates.labels),
            (query.edges, candidates.edges),
        )
    )
    end = np.array([labels, edges])  # one more label and one more edge: those of an end mark
    ways = _places(query, candidates) if places else [np.zeros(len(side.labels), dtype=np.int64) for side in both]
    ours, theirs = (_pairs(side, way, end) for side, way in zip(both, ways, strict=True))
    owners = candidates.trees.owners[theirs[0]]
    return Matches.of(ours[1], theirs[1], owners, len(candidates.trees))


def _pairs(side: Numbered, places: Rows, end: Rows) -> tuple[Rows, Rows]:
    """List the symbol pairs of trees."""
    nodes, above = np.arange(len(side.labels)), side.trees.above
    below = nodes[above >= 0]
    lower = below[above[above[below]] >= 0]
    last = nodes[~_goes_on(side)]
    upper = np.concatenate([above[below], above[above[lower]], last])
    descendants = np.concatenate([side.labels[below], side.labels[lower], np.full(len(last), end[0])])
    first = np.concatenate([side.edges[below], side.edges[above[lower]], np.full(len(last), end[1])])
    second = np.concatenate([np.full(len(below), end[1]), side.edges[lower], np.full(len(last), end[1])])
    number = places[upper]
    for part, size in ((side.labels[upper], end[0]), (descendants, end[0]), (first, end[1]), (second, end[1])):
        number = number * (size + 1) + part
    return upper, np.where(places[upper] < 0, places[upper], number)


def _goes_on(side: Numbered) -> npt.NDArray[np.bool_]:
    """Tell which symbols are not the last of their baseline; in operator trees, which are no leaves."""
    above, going = side.trees.above, np.zeros(len(side.labels), dtype=np.bool_)
    follows = above >= 0 if side.trees.kind == "opt" else side.trees.edges == ord("n")
    going[above[follows]] = True
    return going


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
