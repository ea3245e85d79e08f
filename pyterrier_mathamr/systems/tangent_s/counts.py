"""How many nodes any two nodes of a query and of its candidates would align, for all candidates at once.

The nodes that an alignment from (q, c) pairs are those that the alignments of their children pair, and q with c itself.
So the counts of a query's node, for all nodes of all candidates, are sums of its children's counts at the places of the
candidates' children: one pass over the query's nodes from the leaves up, each a few operations on arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.formula.packed_trees import Packed, PackedTrees

Numbers = npt.NDArray[np.int32]
NONE, EXACT, VARIABLE, CONSTANT = range(4)
"""What a pair of nodes is: not unifiable, of the same label, two variables, two constants."""

_SIZE = re.compile(r"(\d+)x(\d+)$")
_NEXT = {label: number for number, label in enumerate("naboucdwe")}
WITHIN, ELEMENT = _NEXT["w"], _NEXT["e"]


class Labels:
    """What the rules of unification ask of each label of some trees."""

    def __init__(self, names: Sequence[str]) -> None:
        self.numbers = {name: number for number, name in enumerate(names)}
        self.kinds = np.array([name[:2] if name[1:2] == "!" else "" for name in names], dtype="U2")
        self.lengths = np.array([len(name) for name in names], dtype=np.int32)
        self.floats = np.array([name[:2] == "N!" and _is_float(name[2:]) for name in names], dtype=np.bool_)
        self.starts = np.array([name[:3] for name in names], dtype="U3")
        sizes = [_size(name) if name[:2] == "M!" else (0, 0) for name in names]
        self.sizes = np.array(sizes, dtype=np.int32).reshape(-1, 2)

    def pairs_with(self, label: str) -> npt.NDArray[np.uint8]:
        """Tell what each label is beside one of the query's: uint8 ``[labels]``, :data:`NONE` to :data:`CONSTANT`."""
        found = np.zeros(len(self.kinds), dtype=np.uint8)
        kind = label[:2] if label[1:2] == "!" else ""
        if kind == "V!":
            short = (self.lengths != len(label)) & ((self.lengths == 3) | (len(label) == 3))
            found[(self.kinds == kind) & ~short] = VARIABLE
        elif kind == "N!":
            found[self.floats] = CONSTANT
        elif kind not in ("", "U!", "O!"):
            found[self.kinds == kind] = CONSTANT
        if kind != "V!" and label in self.numbers:
            found[self.numbers[label]] = EXACT
        return found


@dataclass(slots=True)
class Query:
    """A query's tree as the alignment reads it: preorder lists."""

    nodes: tuple[str, ...]
    parents: list[int]
    children: list[list[tuple[int, int]]]  # edge number or position, node

    @classmethod
    def of_tree(cls, tree: FormulaTree, kind: Packed) -> Query:
        """Read a tree."""
        numbered = [
            [(_NEXT[label] if kind == "slt" else place, node) for place, (label, node) in enumerate(below)]
            for below in tree.children()
        ]
        return cls(tree.nodes, [-1, *(parent for parent, _, _ in tree.edges)], numbered)


@dataclass(slots=True)
class Counts:
    """How many nodes an alignment from each pair of nodes has; ``n`` nodes of the query, ``g`` of all candidates.

    Attributes:
        own: uint8 ``[n, g + 1]``, what the pair itself is; the last column, of no node, is 0 here and below.
        total: int16 ``[n, g + 1]``, nodes.
        exact: int16 ``[n, g + 1]``, nodes of the same label that are no variables.
        same: int16 ``[n, g + 1]``, nodes of the same label.
        edges: int16 ``[n, g + 1]``, edges of the query between such nodes.
        children: int32 ``[edges, g + 1]``, the children of the candidates' nodes by edge or position; ``g`` for none.
        special: for a node of the query, the pairs of children where they do not follow from the edges alone.
    """

    own: npt.NDArray[np.uint8]
    total: npt.NDArray[np.int16]
    exact: npt.NDArray[np.int16]
    same: npt.NDArray[np.int16]
    edges: npt.NDArray[np.int16]
    children: Numbers
    special: dict[int, dict[int, list[tuple[int, int]]]] = field(default_factory=dict)

    def add(self, q: int, child: int | Numbers, places: Numbers, nodes: slice | Numbers = slice(None)) -> None:
        """Add what a child counts beside some nodes to what its parent counts beside others."""
        self.total[q, nodes] += self.total[child, places]
        self.exact[q, nodes] += self.exact[child, places]
        self.same[q, nodes] += self.same[child, places]
        self.edges[q, nodes] += self.edges[child, places]
        self.edges[q, nodes] += (self.own[q, nodes] != NONE) & (self.own[child, places] != NONE)


class _Special(NamedTuple):
    """Pairs of children for some nodes of the candidates."""

    nodes: Numbers
    """int32 ``[k]``."""
    ours: Numbers
    """int32 ``[k, steps]``, a child of the query's node."""
    theirs: Numbers
    """int32 ``[k, steps]``, a child of the candidate's node; ``g`` for none."""


def count_pairs(query: Query, candidates: PackedTrees, labels: Labels) -> Counts:
    """Count for each node of a query and each of the candidates."""
    n, g = len(query.nodes), len(candidates.labels)
    of_label = {label: labels.pairs_with(label) for label in set(query.nodes)}
    own, same = np.zeros((n, g + 1), dtype=np.uint8), np.zeros((n, g + 1), dtype=np.int16)
    for q, label in enumerate(query.nodes):
        own[q, :g] = of_label[label][candidates.labels]
        same[q, :g] = candidates.labels == labels.numbers.get(label, -1)
    total, exact = (own != NONE).astype(np.int16), (own == EXACT).astype(np.int16)
    counts = Counts(own, total, exact, same, np.zeros_like(same), _children(candidates))
    for q in range(n - 1, -1, -1):
        if query.children[q]:
            (_add_layout if candidates.kind == "slt" else _add_operators)(counts, query, q, candidates, labels)
    return counts


def _add_layout(counts: Counts, query: Query, q: int, candidates: PackedTrees, labels: Labels) -> None:
    """Add the children's counts in layout trees: along each edge that both nodes have."""
    for edge, child in query.children[q]:
        if edge == ELEMENT or edge >= len(counts.children):
            continue
        places = counts.children[edge]
        if edge == WITHIN and query.nodes[q][:2] == "M!":
            matrices = np.append(labels.kinds[candidates.labels] == "M!", True)
            places = np.where(matrices, len(candidates.labels), places)
            _add(counts, q, _cells(counts, query, q, candidates, labels))
        counts.add(q, child, places)


def _add_operators(counts: Counts, query: Query, q: int, candidates: PackedTrees, labels: Labels) -> None:
    """Add the children's counts in operator trees: in order, or below equal unordered nodes the best pairs first."""
    label, g = query.nodes[q], len(candidates.labels)
    followed = np.ones(g + 1, dtype=np.bool_)
    if label[:2] == "M!":
        followed[:g] = ((labels.kinds != "M!") | (labels.starts == label[:3]))[candidates.labels]
    if label[:1] == "U" and label in labels.numbers:
        same = candidates.labels == labels.numbers[label]
        followed[:g] = ~same
        for found in _unordered(counts, query, q, np.flatnonzero(same).astype(np.int32)):
            _add(counts, q, found)
    for place, child in query.children[q][: len(counts.children)]:
        places = np.where(followed, counts.children[place], g)
        counts.add(q, child, places)


def _unordered(counts: Counts, query: Query, q: int, nodes: Numbers) -> Iterator[_Special]:
    """Pair the children of an unordered node greedily: the pair that aligns most nodes first, then most equal ones."""
    ours = np.array([child for _, child in query.children[q]], dtype=np.int32)
    g = len(counts.own[0]) - 1
    arity = (counts.children[:, nodes] < g).sum(axis=0)
    for size in np.unique(arity[arity > 0]).tolist():
        some = nodes[arity == size]
        theirs = counts.children[:size, some].T  # [k, size]
        key = counts.total[ours][:, theirs].astype(np.int32) * 65536 + counts.exact[ours][:, theirs]
        key = key.transpose(1, 0, 2).copy()  # [k, ours, theirs]; the first of equal ones has the lower places
        every, picked = np.arange(len(some)), []
        for _ in range(min(len(ours), size)):
            first = key.reshape(len(some), -1).argmax(axis=1)
            a, b = first // size, first % size
            picked.append((ours[a], theirs[every, b]))
            key[every, a, :] = -1
            key[every, :, b] = -1
        yield _Special(some, np.stack([a for a, _ in picked], axis=1), np.stack([b for _, b in picked], axis=1))


def _cells(counts: Counts, query: Query, q: int, candidates: PackedTrees, labels: Labels) -> _Special:
    """Pair the elements of two matrices: in order if both have one row or one column, else by row and column."""
    nodes = np.flatnonzero(labels.kinds[candidates.labels] == "M!").astype(np.int32)
    ours = _elements_of_query(query, q)
    g, chains = len(counts.own[0]) - 1, [_column(counts, WITHIN, nodes)]
    while bool((chains[-1] < g).any()):
        chains.append(_column(counts, ELEMENT, chains[-1]))
    theirs = np.stack([*chains[:-1], np.full(len(nodes), g, np.int32)], axis=1)  # [k, elements + 1]
    rows, columns = _size(query.nodes[q])
    sizes = labels.sizes[candidates.labels[nodes]]
    linear = (1 in (rows, columns)) & (sizes == 1).any(axis=1)
    steps = len(ours)
    paired = np.full((len(nodes), steps), g, dtype=np.int32)
    width = min(steps, theirs.shape[1])
    paired[:, :width] = theirs[:, :width]
    for k in np.flatnonzero(~linear).tolist():
        paired[k] = g
        for a, b in _grid((rows, columns), tuple(sizes[k].tolist())):
            if a >= steps or b >= theirs.shape[1] or theirs[k, b] == g:
                break
            paired[k, a] = theirs[k, b]
    return _Special(nodes, np.broadcast_to(np.array(ours, dtype=np.int32), paired.shape), paired)


def _grid(ours: tuple[int, int], theirs: tuple[int, int]) -> Iterator[tuple[int, int]]:
    for row in range(min(ours[0], theirs[0])):
        for column in range(min(ours[1], theirs[1])):
            yield row * ours[1] + column, row * theirs[1] + column


def _elements_of_query(query: Query, q: int) -> list[int]:
    found, edge = [], WITHIN
    while (child := dict(query.children[q]).get(edge)) is not None:
        found.append(child)
        q, edge = child, ELEMENT
    return found


def _column(counts: Counts, number: int, nodes: Numbers) -> Numbers:
    """Return the child of each node by an edge; ``g`` where there is none."""
    return (
        counts.children[number][nodes] if number < len(counts.children) else np.full_like(nodes, len(counts.own[0]) - 1)
    )


def _add(counts: Counts, q: int, found: _Special) -> None:
    """Add what special pairs of children count, and remember the pairs."""
    for ours, theirs in zip(found.ours.T, found.theirs.T, strict=True):
        counts.add(q, ours, theirs, found.nodes)
    pairs = np.stack([found.ours, found.theirs], axis=2).tolist()
    counts.special.setdefault(q, {}).update(zip(found.nodes.tolist(), pairs, strict=True))


def _children(trees: PackedTrees) -> Numbers:
    """Return the child of each node by edge number (layout) or position (operators), int32 ``[edges, g + 1]``."""
    g = len(trees.labels)
    below = np.flatnonzero(trees.parents >= 0)[::-1]  # the first of children with the same edge is kept
    parents = trees.above[below]
    if trees.kind == "slt":
        places = np.zeros(128, dtype=np.int64)
        for label, number in _NEXT.items():
            places[ord(label)] = number
        places = places[trees.edges[below]]
    else:
        places = _positions(parents[::-1])[::-1]
    found = np.full((int(places.max(initial=-1)) + 1, g + 1), g, dtype=np.int32)
    found[places, parents] = below
    return found


def _positions(parents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number the children of each parent, where children are in preorder."""
    order = np.argsort(parents, kind="stable")
    ascending = parents[order]
    first = np.searchsorted(ascending, ascending, side="left")
    places = np.empty(len(parents), dtype=np.int64)
    places[order] = np.arange(len(parents)) - first
    return places


def _size(label: str) -> tuple[int, int]:
    match = _SIZE.search(label)
    return (int(match[1]), int(match[2])) if match else (1, 1)


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
