"""Sub-expressions: remove an internal node at random, keep the largest part that remains (section 3).

Leaves are never removed, since they are the operands. Trees lie depth first, so that what is kept is one run of nodes,
or all but one run::

    x^{2y} + 1    plus SUP x times 2 y 1     without plus:   [SUP x times 2 y]          the larger of two parts
                                             without times:  [plus SUP x] … [1]         the largest of three
"""

from __future__ import annotations

import numpy as np

from pyterrier_mathamr.store import Rows, ranges

from .graphs import Graphs


class Subexpressions:
    """Draws sub-expressions of graphs.

    Args:
        graphs: those of all formulas.

    Attributes:
        sizes: int64 ``[n]``, the number of nodes at and below each node.
    """

    def __init__(self, graphs: Graphs) -> None:
        self._graphs = graphs
        first = np.repeat(graphs.offsets[:-1], np.diff(graphs.offsets))
        above = np.where(graphs.parents < 0, -1, first + graphs.parents)
        self.sizes = _sizes(above)
        self._heaviest = _heaviest(above, self.sizes)
        self._internal = np.flatnonzero(self.sizes > 1)
        self._starts = np.searchsorted(self._internal, graphs.offsets)

    def draw(self, rows: Rows, generator: np.random.Generator) -> Graphs:
        """Draw a sub-expression of each of some graphs."""
        choices = self._starts[rows + 1] - self._starts[rows]
        return self.without(rows, self._internal[self._starts[rows] + generator.integers(0, choices)])

    def without(self, rows: Rows, removed: Rows) -> Graphs:
        """Remove a node of each graph and keep the largest part."""
        graphs, start, end = self._graphs, self._graphs.offsets[rows], self._graphs.offsets[rows + 1]
        below, heaviest = self.sizes[removed], self._heaviest[removed]
        around = end - start - below  # the part above and beside the removed node
        inside = self.sizes[heaviest] > around
        starts = np.stack([np.where(inside, heaviest, start), removed + below], axis=1)
        lengths = np.stack(
            [np.where(inside, self.sizes[heaviest], removed - start), np.where(inside, 0, end - removed - below)],
            axis=1,
        )
        kept = ranges(starts.ravel(), lengths.ravel())
        sizes = lengths.sum(axis=1)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        parents, relations = graphs.parents[kept], graphs.relations[kept]
        after = np.repeat(removed - start + below, sizes) <= parents  # such parents move up by the removed run
        moved = np.where(np.repeat(inside, sizes), np.repeat(heaviest - start, sizes), after * np.repeat(below, sizes))
        parents = parents - moved
        parents[offsets[:-1]] = relations[offsets[:-1]] = -1
        return Graphs(offsets, graphs.labels[kept], parents, relations, graphs.half)


def _sizes(above: Rows) -> Rows:
    """Count the nodes at and below each node; a parent comes before its children."""
    sizes, parents = [1] * len(above), above.tolist()
    for node in range(len(sizes) - 1, -1, -1):
        if parents[node] >= 0:
            sizes[parents[node]] += sizes[node]
    return np.array(sizes, dtype=np.int64)


def _heaviest(above: Rows, sizes: Rows) -> Rows:
    """Find the child of each node with the most nodes, the earliest of several; -1 for a leaf."""
    children = np.flatnonzero(above >= 0)
    order = children[np.lexsort((children, -sizes[children], above[children]))]
    parents, places = np.unique(above[order], return_index=True)
    found = np.full(len(above), -1, dtype=np.int64)
    found[parents] = order[places]
    return found
