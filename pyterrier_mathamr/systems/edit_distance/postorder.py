"""Trees in postorder: each node after all that is below it, with the leftmost leaf below it.

A keyroot is a node that is not the first child of another; of all nodes with the same leftmost leaf it is the highest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula.packed_trees import PackedTrees
from pyterrier_mathamr.store import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Postorder:
    """Some trees with ``n`` nodes in all, each tree's nodes in postorder, tree after tree.

    Attributes:
        labels: int32 ``[n]``.
        leftmost: int64 ``[n]``, the leftmost leaf below each node.
        keyroots: int64 ``[k]``, ascending.
        nesting: int64 ``[k]``, how many keyroots of its tree a keyroot is below.
        roots: int64 ``[trees]``, -1 for a tree without nodes.
    """

    labels: npt.NDArray[np.int32]
    leftmost: Rows
    keyroots: Rows
    nesting: Rows
    roots: Rows

    @classmethod
    def of(cls, trees: PackedTrees) -> Self:
        """Number the nodes of trees anew."""
        n, parents = len(trees.labels), trees.above
        nodes = np.arange(n)
        first = (parents >= 0) & (parents == nodes - 1)  # in preorder, a first child follows its parent
        depths, nesting, sizes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
        below = trees.levels()[1:]
        for level in below:
            depths[level] = depths[parents[level]] + 1
            nesting[level] = nesting[parents[level]] + ~first[level]
        for level in reversed(below):
            np.add.at(sizes, parents[level], sizes[level])
        number = nodes + sizes - 1 - depths  # before a node come all before it in preorder that are not above it
        leaves = np.where(sizes == 1, nodes, n)
        leftmost = np.minimum.accumulate(leaves[::-1])[::-1]  # the next leaf in preorder
        order = np.empty(n, dtype=np.int64)
        order[number] = nodes
        tops = np.flatnonzero(~first[order])
        roots = np.where(trees.sizes > 0, trees.offsets[1:] - 1, -1)
        return cls(trees.labels[order], number[leftmost[order]], tops, nesting[order][tops], roots)
