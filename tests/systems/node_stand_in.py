"""A model whose vectors come from a hash of a node, its parent and the edge between them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.packed_trees import Packed


@dataclass(frozen=True)
class HashedNodes:
    """Encodes nodes without being trained; what is named otherwise is another model."""

    identity: str = "hashed"
    kinds: tuple[Packed, ...] = ("slt", "opt")
    width: int = 8

    def encode(self, trees: Sequence[FormulaTree | None], kind: Packed, *, distinct: bool = True) -> list[np.ndarray]:
        """Return the vectors of the nodes of each tree."""
        return [self._nodes(tree, kind) for tree in trees]

    def _nodes(self, tree: FormulaTree | None, kind: str) -> np.ndarray:
        if tree is None:
            return np.zeros((0, self.width), dtype=np.float32)
        rows = np.array([self._hashed(kind + label) for label in tree.nodes])
        for parent, child, edge in tree.edges:
            rows[child] += 0.5 * self._hashed(edge + tree.nodes[parent])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def _hashed(self, text: str) -> np.ndarray:
        return np.random.default_rng([*self.identity.encode(), *text.encode()]).standard_normal(self.width)
