"""The edit distance of ordered trees: the least cost of deleting, inserting and renaming nodes, by Zhang and Shasha.

For each pair of keyroots of two trees there is a table of the distances between all prefixes of the two sub-trees, in
postorder. A row of it depends on earlier rows, but for the insertions in the row itself, which are a running minimum.
So one query is compared with thousands of trees together, row by row: the tables of all keyroots that are equally deep
lie end to end. Nothing recurses, since formulas are hundreds of levels deep.

Costs are counted in whole millionths: equal distances are equal on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.packed_trees import PackedTrees
from pyterrier_mathamr.store import Rows, ranges

from .postorder import Postorder

_UNIT = 1_000_000
_CELLS = 1 << 22  # of the tables of one keyroot of the query, kept at once
_BLOCK = 1 << 40  # between tables that lie end to end: more than any distance


class EditCosts(NamedTuple):
    """What each operation costs, in steps of a millionth.

    Attributes:
        delete: to remove a node of the query.
        insert: to add a node of the candidate.
        rename: to change a label into another.
    """

    delete: float = 1.0
    insert: float = 1.0
    rename: float = 1.0


UNIT_COSTS = EditCosts()


def tree_edit_distance(query: FormulaTree, candidate: FormulaTree, costs: EditCosts = UNIT_COSTS) -> float:
    """Compute the cost of the cheapest way from one tree to the other; labels are compared whole, edges are not.

    Zhang and Shasha, "Simple fast algorithms for the editing distance between trees and related problems", SIAM
    Journal on Computing 18(6), 1989.

    Args:
        query: a tree.
        candidate: another.
        costs: of the operations.

    Example::

        tree_edit_distance(*(trees_from_latex(latex).opt for latex in ("x^2+1", "x^2")))  # 2, the sum and the 1
    """
    packed = PackedTrees.of_trees([candidate], "opt")
    return float(tree_edit_distances(query, packed, np.zeros(1, dtype=np.int64), costs)[0])


def tree_edit_distances(
    query: FormulaTree,
    trees: PackedTrees,
    rows: Rows,
    costs: EditCosts = UNIT_COSTS,
    max_nodes: int = 400,
) -> npt.NDArray[np.float64]:
    """Compute the distance of a query to each of many trees."""
    if not all(np.isfinite(cost) and cost >= 0 for cost in costs):
        raise ConfigError("costs", costs, "three numbers, 0 or more")
    sizes = trees.offsets[rows + 1] - trees.offsets[rows]
    found = np.zeros(len(rows), dtype=np.int64)
    small = (sizes <= max_nodes) & (len(query.nodes) <= max_nodes)
    for place in np.flatnonzero(~small).tolist():
        found[place] = _least(query, trees, int(rows[place]), costs)
    ours = PackedTrees.of_trees([query], trees.kind)
    read = Postorder.of(ours)
    numbers = {name: number for number, name in enumerate(trees.names)}
    labels = [numbers.get(ours.names[number], -1) for number in read.labels.tolist()]
    order = np.flatnonzero(small)[np.argsort(sizes[small], kind="stable")]  # tables of one size are together
    for some in _pieces(order, sizes[order] * len(labels)):
        found[some] = _Distances(read, labels, Postorder.of(trees.take(rows[some])), costs).compute()
    return found / _UNIT


def _pieces(order: Rows, cells: Rows) -> Iterator[Rows]:
    """Cut candidates into pieces of about the same work."""
    ends = np.flatnonzero(np.diff(np.cumsum(cells) * 4 // _CELLS, prepend=0))
    yield from (piece for piece in np.split(order, ends) if len(piece))


class _Level(NamedTuple):
    """The tables of keyroots that are equally deep, ``c`` cells in a row; a table begins with the empty prefix."""

    cells: Rows
    """int64 ``[m]``, those of prefixes that are not empty."""
    nodes: Rows
    """int64 ``[m]``, the last node of each prefix."""
    before: Rows
    """int64 ``[m]``, the cell of the prefix that ends before that node's sub-tree."""
    whole: npt.NDArray[np.bool_]
    """bool ``[m]``, whether the prefix is one whole sub-tree."""
    inserted: Rows
    """int64 ``[c]``, what it costs to insert each prefix."""
    steps: Rows
    """int64 ``[c]``, the same and a block for each table before it."""


class _Distances:
    def __init__(self, query: Postorder, labels: list[int], candidates: Postorder, costs: EditCosts) -> None:
        self._query, self._labels, self._candidates = query, labels, candidates
        self._delete, self._insert, self._rename = (round(cost * _UNIT) for cost in costs)
        self._trees = np.zeros((len(labels), len(candidates.labels)), dtype=np.int64)  # distances of sub-trees
        deepest = int(candidates.nesting.max(initial=-1))
        self._levels = [self._level(candidates.keyroots[candidates.nesting == k]) for k in range(deepest, -1, -1)]

    def compute(self) -> Rows:
        """Return the distance of each candidate in millionths: int64 ``[candidates]``."""
        candidates = self._candidates
        for keyroot in self._query.keyroots.tolist():
            for level in self._levels:
                self._fill(keyroot, level)
        nothing = len(self._labels) * self._delete
        found = np.full(len(candidates.roots), nothing, dtype=np.int64)
        found[candidates.roots >= 0] = self._trees[-1, candidates.roots[candidates.roots >= 0]]
        return found

    def _level(self, keyroots: Rows) -> _Level:
        leftmost = self._candidates.leftmost
        lengths = keyroots - leftmost[keyroots] + 1
        empty = np.cumsum(lengths + 1) - lengths - 1
        cells, nodes = ranges(empty + 1, lengths), ranges(leftmost[keyroots], lengths)
        firsts = np.repeat(leftmost[keyroots], lengths)
        before = np.repeat(empty, lengths) + leftmost[nodes] - firsts
        inserted = self._insert * ranges(np.zeros_like(empty), lengths + 1)
        steps = inserted + _BLOCK * np.repeat(np.arange(len(empty)), lengths + 1)
        return _Level(cells, nodes, before, leftmost[nodes] == firsts, inserted, steps)

    def _fill(self, keyroot: int, level: _Level) -> None:
        """Compute the rows of all tables of a level for a keyroot of the query."""
        first = int(self._query.leftmost[keyroot])
        rows = np.empty((keyroot - first + 2, len(level.steps)), dtype=np.int64)
        rows[0] = level.inserted
        labels, base = self._candidates.labels[level.nodes], np.empty_like(level.steps)
        for node in range(first, keyroot + 1):
            above, start = rows[node - first], int(self._query.leftmost[node])
            kept = rows[start - first][level.before] + self._trees[node, level.nodes]
            if start == first:
                renamed = above[level.cells - 1] + np.where(labels == self._labels[node], 0, self._rename)
                kept = np.where(level.whole, renamed, kept)
            np.add(above, self._delete, out=base)
            base[level.cells] = np.minimum(base[level.cells], kept)
            row = rows[node - first + 1]
            np.minimum.accumulate(base - level.steps, out=row)  # less in each later table, by a block
            row += level.steps
            if start == first:
                self._trees[node, level.nodes[level.whole]] = row[level.cells[level.whole]]


def _least(query: FormulaTree, trees: PackedTrees, row: int, costs: EditCosts) -> int:
    """Bound a distance from below: labels that both have are kept, and the others changed at the least cost."""
    delete, insert, rename = (round(cost * _UNIT) for cost in costs)
    here = trees.labels[trees.offsets[row] : trees.offsets[row + 1]].tolist()
    ours, theirs = Counter(query.nodes), Counter(trees.names[number] for number in here)
    missing, extra = (ours - theirs).total(), (theirs - ours).total()
    changed = min(missing, extra)
    return changed * min(rename, delete + insert) + (missing - changed) * delete + (extra - changed) * insert
