"""Many formula trees in a few arrays, so that one query is compared with thousands of them at once.

``x^2`` and ``y``, two layout trees, with the labels ``V!x``, ``N!2``, ``V!y``::

    offsets  0  2  3            nodes of tree i: offsets[i]:offsets[i + 1], depth first, so that a sub-tree is a run
    labels   0  1  2            number of the label
    parents -1  0 -1            counted from the tree's first node; -1 for a root
    edges   -1 97 -1            code point of the edge's label, here "a"
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.tree import unified_label
from pyterrier_mathamr.store import Rows, ranges

Packed = Literal["slt", "opt"]


@dataclass(frozen=True, slots=True, eq=False)
class PackedTrees:
    """``x`` trees of one kind with ``n`` nodes in all.

    Attributes:
        kind: layout or operator trees.
        names: the labels, by their number.
        offsets: int64 ``[x + 1]``; a formula without a tree has an empty range.
        labels: int32 ``[n]``.
        parents: int32 ``[n]``, counted from the tree's first node; -1 for a root.
        edges: int32 ``[n]``, the code point of the edge's label; -1 for a root.
    """

    kind: Packed
    names: Sequence[str]
    offsets: Rows
    labels: npt.NDArray[np.int32]
    parents: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of_trees(cls, trees: Iterable[FormulaTree | None], kind: Packed) -> PackedTrees:
        """Pack trees; ``None`` becomes a tree without nodes."""
        numbers: dict[str, int] = {}
        offsets, labels, parents, edges = [0], list[int](), list[int](), list[int]()
        for tree in trees:
            if tree is not None:
                labels += [numbers.setdefault(label, len(numbers)) for label in tree.nodes]
                parents += [-1, *(parent for parent, _, _ in tree.edges)][: len(tree.nodes)]
                edges += [-1, *(ord(label) for _, _, label in tree.edges)][: len(tree.nodes)]
            offsets.append(len(labels))
        return cls(
            kind,
            list(numbers),
            np.array(offsets, dtype=np.int64),
            np.array(labels, dtype=np.int32),
            np.array(parents, dtype=np.int32),
            np.array(edges, dtype=np.int32),
        )

    @property
    def sizes(self) -> Rows:
        """The number of nodes of each tree: int64 ``[x]``."""
        sizes: Rows = np.diff(self.offsets)
        return sizes

    @property
    def owners(self) -> Rows:
        """The tree of each node: int64 ``[n]``."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def above(self) -> Rows:
        """The parent of each node among all nodes: int64 ``[n]``, -1 for a root."""
        return np.where(self.parents < 0, -1, np.repeat(self.offsets[:-1], self.sizes) + self.parents)

    def levels(self) -> list[Rows]:
        """List the nodes of all trees by their depth: the roots, their children, and so on, each int64, ascending."""
        above = self.above
        inside, levels = np.flatnonzero(above >= 0), [np.flatnonzero(above < 0)]
        reached = np.zeros(len(above), dtype=np.bool_)
        reached[levels[0]] = True
        while len(inside):
            here = reached[above[inside]]
            levels.append(inside[here])
            reached[levels[-1]] = True
            inside = inside[~here]
        return levels

    def unified(self) -> PackedTrees:
        """Return the trees with types as labels, as :meth:`FormulaTree.unified` does."""
        numbers: dict[str, int] = {}
        types = [numbers.setdefault(unified_label(label), len(numbers)) for label in self.names]
        labels = np.array(types, dtype=np.int32)[self.labels]
        return PackedTrees(self.kind, list(numbers), self.offsets, labels, self.parents, self.edges)

    def tree(self, row: int) -> FormulaTree | None:
        here = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        if here.start == here.stop:
            return None
        nodes = tuple(self.names[number] for number in self.labels[here].tolist())
        above = zip(self.parents[here].tolist()[1:], self.edges[here].tolist()[1:], strict=True)
        edges = ((parent, i, chr(edge)) for i, (parent, edge) in enumerate(above, 1))
        return FormulaTree(nodes, tuple(edges), kind=self.kind)

    def take(self, rows: Rows) -> PackedTrees:
        """Return some of the trees, in the order of ``rows`` (int64 ``[y]``)."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        places = ranges(self.offsets[rows], sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return PackedTrees(
            self.kind, self.names, offsets, self.labels[places], self.parents[places], self.edges[places]
        )
