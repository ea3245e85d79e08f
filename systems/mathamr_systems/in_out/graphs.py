"""Formula graphs as arrays: symbol layout graphs (SLG), operator graphs (OPG), and their sub-expressions.

A graph is a tree with each edge in both directions, the reverse under a separate relation. ``x^2+1`` as an SLG::

    V!x ──a──▶ N!2     V!x ──n──▶ + ──n──▶ N!1        a: relation 1, its reverse 10
        ◀─a⁻¹─             ◀─n⁻¹─   ◀─n⁻¹─            n: relation 0, its reverse 9

Relations: an SLG has the nine edges of a layout tree; an OPG has the operand's place, with one relation from 15 on.

The six training conditions define which graphs of a formula are paired (Amador and Zanibbi, ICTIR 2025, section 3).
In a pairing ``(first, second)`` each node of the first graph is matched with the most similar node of the second::

    slg   the layout tree with its edges both ways        slg-sub   a sub-expression of it, redrawn each epoch
    opg   the operator tree likewise                      opg-sub   likewise

    condition      pairings
    slg            slg▸slg-sub
    opg                          opg▸opg-sub
    slg+opg                                     slg▸opg  opg▸slg
    inner          slg▸slg-sub   opg▸opg-sub    slg▸opg  opg▸slg
    outer                                       slg▸opg  opg▸slg   slg▸opg-sub  opg▸slg-sub
    inner+outer    slg▸slg-sub   opg▸opg-sub    slg▸opg  opg▸slg   slg▸opg-sub  opg▸slg-sub
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.extending import (
    Count,
    Natural,
    Options,
    Packed,
    PackedTrees,
    Positive,
    RelationPlan,
    Rule,
    at_least,
    one_of,
    seeded,
)
from pyterrier_mathamr.model import RelationalGraphConv
from pyterrier_mathamr.store import Rows, ranges

Condition = Literal["slg", "opg", "slg+opg", "inner", "outer", "inner+outer"]
GraphName = Literal["slg", "opg", "slg-sub", "opg-sub"]
Pairing = tuple[GraphName, GraphName]

_SLG: tuple[Pairing, ...] = (("slg", "slg-sub"),)
_OPG: tuple[Pairing, ...] = (("opg", "opg-sub"),)
_WHOLE: tuple[Pairing, ...] = (("slg", "opg"), ("opg", "slg"))
_ACROSS: tuple[Pairing, ...] = (("slg", "opg-sub"), ("opg", "slg-sub"))

PAIRINGS: dict[Condition, tuple[Pairing, ...]] = {
    "slg": _SLG,
    "opg": _OPG,
    "slg+opg": _WHOLE,
    "inner": (*_SLG, *_OPG, *_WHOLE),
    "outer": (*_WHOLE, *_ACROSS),
    "inner+outer": (*_SLG, *_OPG, *_WHOLE, *_ACROSS),
}
"""The pairings of each condition."""

TREE_OF: dict[GraphName, Packed] = {"slg": "slt", "slg-sub": "slt", "opg": "opt", "opg-sub": "opt"}
"""The tree that each graph is made from."""


def kinds_of(condition: Condition) -> tuple[Packed, ...]:
    """List the kinds of trees that a condition has an encoder for."""
    used = {TREE_OF[name] for pairing in PAIRINGS[condition] for name in pairing}
    return tuple(kind for kind in ("slt", "opt") if kind in used)


_Share = Annotated[
    float, Rule("a number above 0 and below 1", lambda value: isinstance(value, float) and 0 < value < 1)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InOutOptions(Options):
    """The options of an In+Out model; the paper prints ``condition``, ``temperature`` and ``width``.

    Attributes:
        condition: which graphs of a formula are paired in training; one of the six of section 3.
        layers: R-GCN layers; 0 leaves message passing out.
        width: of the vectors, of the label embeddings and between the layers.
        least_count: rarer labels share a vector for each type.
        temperature: τ of equation 2.
        positive_in_sum: add the positive to the sum of equation 2, which the paper does not; the loss is then not
            below 0.
        batch_size: formulas in a batch.
        learning_rate: of AdamW.
        epochs: how many at most.
        patience: epochs without a lower loss of the held-out formulas before training stops.
        held_out: share of the formulas that are held out for that.
        seed: of all random choices.

    Raises:
        ConfigError: an option has an invalid value.
    """

    condition: Annotated[Condition, one_of(*PAIRINGS)] = "inner+outer"
    layers: Natural = 2
    width: Count = 100
    least_count: Count = 2
    temperature: Positive = 0.1
    positive_in_sum: bool = False
    batch_size: Annotated[int, at_least(2)] = 256
    learning_rate: Positive = 1e-3
    epochs: Count = 20
    patience: Count = 3
    held_out: _Share = 0.05
    seed: Natural = 42


_EDGES: dict[Packed, str] = {"slt": "naboucdwe", "opt": "0123456789ABCDEF"}  # places from 15 on count as F
RELATIONS: dict[Packed, int] = {kind: 2 * len(edges) for kind, edges in _EDGES.items()}
"""The number of relations, reverses included."""

_UNKNOWN = "[UNK]"


class NodeLabels:
    """The node labels with a separate vector; others share one for each type, such as ``V![UNK]``."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._number = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def of_trees(cls, trees: PackedTrees, least: int = 2) -> NodeLabels:
        """Take the labels that ``trees`` have at least ``least`` times, and the types of all."""
        counts = np.bincount(trees.labels, minlength=len(trees.names))
        frequent = {trees.names[number] for number in np.flatnonzero(counts >= least).tolist()}
        types = {_type(trees.names[number]) + _UNKNOWN for number in np.flatnonzero(counts).tolist()}
        return cls(sorted(frequent | types | {_UNKNOWN}))

    def __len__(self) -> int:
        return len(self.names)

    def numbers(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """Look up labels: int64 ``[names]``."""
        fallback = self._number[_UNKNOWN]
        by_type = {name: self._number.get(_type(name) + _UNKNOWN, fallback) for name in names}
        return np.array([self._number.get(name, by_type[name]) for name in names], dtype=np.int64)


def _type(label: str) -> str:
    return label[:2] if label[1:2] == "!" else ""


@dataclass(frozen=True, slots=True, eq=False)
class FormulaGraphs:
    """``x`` graphs of one kind with ``n`` nodes in all, each a run of nodes, depth first.

    Attributes:
        offsets: int64 ``[x + 1]``.
        labels: int64 ``[n]``, as numbered by :class:`NodeLabels`.
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
        return len(self.offsets) - 1

    @classmethod
    def of_trees(cls, trees: PackedTrees, labels: NodeLabels) -> FormulaGraphs:
        edges = _EDGES[trees.kind]
        codes, places = np.unique(trees.edges, return_inverse=True)
        last = len(edges) - 1 if trees.kind == "opt" else 0
        known = [-1 if code < 0 else edges.find(chr(code)) for code in codes.tolist()]
        relations = [last if code >= 0 > number else number for code, number in zip(codes, known, strict=True)]
        return cls(
            trees.offsets,
            labels.numbers(trees.names)[trees.labels],
            trees.parents.astype(np.int64),
            np.array(relations, dtype=np.int64)[places],
            len(edges),
        )

    def take(self, rows: Rows) -> FormulaGraphs:
        """Return some of the graphs, in the order of ``rows`` (int64 ``[y]``)."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        places = ranges(self.offsets[rows], sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return FormulaGraphs(offsets, self.labels[places], self.parents[places], self.relations[places], self.half)

    def numbered(self) -> Rows:
        """Number the distinct graphs: int64 ``[x]``, equal for equal graphs."""
        whole = np.stack([self.labels, self.parents, self.relations], axis=1)
        numbers: dict[bytes, int] = {}
        runs = zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)
        numbered = [numbers.setdefault(whole[start:end].tobytes(), len(numbers)) for start, end in runs]
        return np.array(numbered, dtype=np.int64)

    def edges(self) -> tuple[Tensor, Tensor]:
        """List the edges both ways: int64 ``[2, e]`` sources and targets, int64 ``[e]`` relations."""
        children = np.flatnonzero(self.parents >= 0)
        first = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        parents, relations = (first + self.parents)[children], self.relations[children]
        ends = np.stack([np.concatenate([parents, children]), np.concatenate([children, parents])])
        return torch.from_numpy(ends), torch.from_numpy(np.concatenate([relations, relations + self.half]))


class Subexpressions:
    """Draws sub-expressions of graphs.

    Args:
        graphs: the graphs of all formulas.

    Attributes:
        sizes: int64 ``[n]``, the number of nodes at and below each node.
    """

    def __init__(self, graphs: FormulaGraphs) -> None:
        self._graphs = graphs
        first = np.repeat(graphs.offsets[:-1], np.diff(graphs.offsets))
        above = np.where(graphs.parents < 0, -1, first + graphs.parents)
        self.sizes = _sizes(above)
        self._heaviest = _heaviest(above, self.sizes)
        self._internal = np.flatnonzero(self.sizes > 1)
        self._starts = np.searchsorted(self._internal, graphs.offsets)

    def draw(self, rows: Rows, generator: np.random.Generator) -> FormulaGraphs:
        choices = self._starts[rows + 1] - self._starts[rows]
        return self.without(rows, self._internal[self._starts[rows] + generator.integers(0, choices)])

    def without(self, rows: Rows, removed: Rows) -> FormulaGraphs:
        """Remove a node of each graph and keep the largest part."""
        graphs, start, end = self._graphs, self._graphs.offsets[rows], self._graphs.offsets[rows + 1]
        below, heaviest = self.sizes[removed], self._heaviest[removed]
        around = end - start - below  # the nodes that are not below the removed node
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
        return FormulaGraphs(offsets, graphs.labels[kept], parents, relations, graphs.half)


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
    heaviest = np.full(len(above), -1, dtype=np.int64)
    heaviest[parents] = order[places]
    return heaviest


class GraphEncoder(nn.Module):
    """h'ᵢ = σ( Σ_r mean_{j ∈ N_i^r} W_r h_j + W_0 h_i + b ), with ReLU between the layers (equation 1)."""

    def __init__(self, labels: int, relations: int, options: InOutOptions) -> None:
        super().__init__()
        width = options.width
        self.labels = nn.Embedding(labels, width)
        nn.init.normal_(self.labels.weight, std=width**-0.5)
        self.layers = nn.ModuleList(RelationalGraphConv(width, width, relations) for _ in range(options.layers))

    def forward(self, graphs: FormulaGraphs) -> Tensor:
        """Encode the nodes of graphs: float32 ``[n, d]``, rows of unit length."""
        device = self.labels.weight.device
        h = self.labels(torch.from_numpy(graphs.labels).to(device))  # [n, d]
        edge_index, edge_type = (tensor.to(device) for tensor in graphs.edges())
        plan = RelationPlan.build(edge_index, edge_type, h.size(0), h.dtype) if len(self.layers) else None
        for number, layer in enumerate(self.layers):
            h = layer(torch.relu(h) if number else h, edge_index, edge_type, plan=plan)
        return F.normalize(h, dim=1)


def encoders(options: InOutOptions, labels: dict[Packed, int]) -> nn.ModuleDict:
    """Build the encoders of a condition with random weights from ``options.seed``."""
    with seeded(options.seed):
        made: dict[str, nn.Module] = {
            kind: GraphEncoder(labels[kind], RELATIONS[kind], options) for kind in kinds_of(options.condition)
        }
    return nn.ModuleDict(made)
