"""Formula graphs as arrays: symbol layout graphs (SLG) and operator graphs (OPG).

A graph is a tree with each edge in both directions, the reverse under a relation of its own. ``x^2+1`` as an SLG::

    V!x ──a──▶ N!2     V!x ──n──▶ + ──n──▶ N!1        a: relation 1, its reverse 10
        ◀─a⁻¹─             ◀─n⁻¹─   ◀─n⁻¹─            n: relation 0, its reverse 9

Relations: an SLG has the nine edges of a layout tree, an OPG the operand's place, where all from 15 on are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyterrier_mathamr.formula.packed_trees import Packed, PackedTrees
from pyterrier_mathamr.store import Rows, ranges

_EDGES: dict[Packed, str] = {"slt": "naboucdwe", "opt": "0123456789ABCDEF"}  # places from 15 on count as F
RELATIONS: dict[Packed, int] = {kind: 2 * len(edges) for kind, edges in _EDGES.items()}
"""The number of relations, reverses included."""

_UNKNOWN = "[UNK]"


class Labels:
    """The node labels that have a vector of their own; others share one for each type, such as ``V![UNK]``."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._number = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def of_trees(cls, trees: PackedTrees, least: int = 2) -> Labels:
        """Take the labels that ``trees`` have at least ``least`` times, and the types of all."""
        counts = np.bincount(trees.labels, minlength=len(trees.names))
        frequent = {trees.names[number] for number in np.flatnonzero(counts >= least).tolist()}
        types = {_type(trees.names[number]) + _UNKNOWN for number in np.flatnonzero(counts).tolist()}
        return cls(sorted(frequent | types | {_UNKNOWN}))

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self.names)

    def numbers(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """Look up labels: int64 ``[names]``."""
        fallback = self._number[_UNKNOWN]
        by_type = {name: self._number.get(_type(name) + _UNKNOWN, fallback) for name in names}
        return np.array([self._number.get(name, by_type[name]) for name in names], dtype=np.int64)


def _type(label: str) -> str:
    return label[:2] if label[1:2] == "!" else ""


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """``x`` graphs of one kind with ``n`` nodes in all, each a run of nodes, depth first.

    Attributes:
        offsets: int64 ``[x + 1]``.
        labels: int64 ``[n]``, as numbered by :class:`Labels`.
        parents: int64 ``[n]``, counted from the graph's first node; -1 for a root.
        relations: int64 ``[n]``, of the edge from the parent; -1 for a root. Its reverse follows ``half`` later.
        half: the number of relations without their reverses.
    """

    offsets: Rows
    labels: Rows
    parents: Rows
    relations: Rows
    half: int

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.offsets) - 1

    @classmethod
    def of_trees(cls, trees: PackedTrees, labels: Labels) -> Graphs:
        """Number labels and relations."""
        edges = _EDGES[trees.kind]
        found, places = np.unique(trees.edges, return_inverse=True)
        last = len(edges) - 1 if trees.kind == "opt" else 0
        known = [-1 if code < 0 else edges.find(chr(code)) for code in found.tolist()]
        relations = [last if code >= 0 > number else number for code, number in zip(found, known, strict=True)]
        return cls(
            trees.offsets,
            labels.numbers(trees.names)[trees.labels],
            trees.parents.astype(np.int64),
            np.array(relations, dtype=np.int64)[places],
            len(edges),
        )

    def take(self, rows: Rows) -> Graphs:
        """Return some of the graphs, in the order of ``rows`` (int64 ``[y]``)."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        places = ranges(self.offsets[rows], sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Graphs(offsets, self.labels[places], self.parents[places], self.relations[places], self.half)

    def numbered(self) -> Rows:
        """Number the distinct graphs: int64 ``[x]``, equal for equal graphs."""
        whole = np.stack([self.labels, self.parents, self.relations], axis=1)
        numbers: dict[bytes, int] = {}
        runs = zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)
        found = [numbers.setdefault(whole[start:end].tobytes(), len(numbers)) for start, end in runs]
        return np.array(found, dtype=np.int64)

    def edges(self) -> tuple[Tensor, Tensor]:
        """List the edges both ways: int64 ``[2, e]`` sources and targets, int64 ``[e]`` relations."""
        children = np.flatnonzero(self.parents >= 0)
        first = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        parents, relations = (first + self.parents)[children], self.relations[children]
        ends = np.stack([np.concatenate([parents, children]), np.concatenate([children, parents])])
        return torch.from_numpy(ends), torch.from_numpy(np.concatenate([relations, relations + self.half]))
