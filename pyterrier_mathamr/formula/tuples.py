"""Symbol pairs and leaf-to-root paths: what retrieval systems index a formula tree by.

Nothing here recurses, and a place that is too long to be indexed is not spelled out, so that a tree of any depth costs
time in proportion to its size (for a fixed window).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .tree import FormulaTree, SymbolPair

_LONGEST = 200  # characters of a pair, joined by tabs
_SPELLED = 5  # longest path that is not run-length encoded
_PUSHED = {label: rank for rank, label in enumerate("naboucdwe")}  # order in which an SLT subtree is searched

Children = list[list[tuple[str, int]]]


class _Place:
    """The path from the root to one node, run-length encoded as it grows: ``nnnnna`` is ``5n1a``."""

    __slots__ = ("closed", "label", "length", "run")

    def __init__(self, closed: str | None = "", label: str = "", run: int = 0, length: int = 0) -> None:
        self.closed, self.label, self.run, self.length = closed, label, run, length

    def below(self, label: str) -> _Place:
        """Give the place of a child."""
        if label == self.label:
            return _Place(self.closed, label, self.run + 1, self.length + 1)
        closed = self.closed
        if closed is not None and self.run:
            closed = f"{closed}{self.run}{self.label}"
            closed = closed if len(closed) <= _LONGEST else None  # every pair from here down is dropped
        return _Place(closed, label, 1, self.length + 1)

    def __str__(self) -> str:
        if not self.length:
            return "-"
        code = f"{self.closed}{self.run}{self.label}"
        return code if self.length > _SPELLED else _spell(code)


def _spell(code: str) -> str:
    """Undo the run-length encoding of a path of at most nine edges: ``2n1a`` is ``nna``."""
    return "".join(label * int(run) for run, label in zip(code[::2], code[1::2], strict=True))


def _encode(path: str) -> str:
    """Shorten a path of more than five edges."""
    if len(path) <= _SPELLED:
        return path
    place = _Place()
    for label in path:
        place = place.below(label)
    return str(place)


def _descendants(children: Children, start: int, label: str, window: int, slt: bool) -> Iterator[tuple[int, str]]:
    """List the nodes of a subtree with the path to them, down to a distance, in the order of a stack."""
    stack = [(start, label)]
    while stack:
        node, path = stack.pop()
        yield node, path
        if children[node] and (not window or len(path) < window):
            below = sorted(children[node], key=lambda pair: _PUSHED[pair[0]]) if slt else children[node]
            stack.extend((child, path + edge) for edge, child in below)


def symbol_pairs(tree: FormulaTree, window: int, eob: bool) -> tuple[SymbolPair, ...]:
    """Compute :meth:`FormulaTree.tuples`."""
    slt, children, nodes = tree.is_slt, tree.children(), tree.nodes
    pairs: list[SymbolPair] = []

    def add(ancestor: int, descendant: str, path: str, place: _Place) -> None:
        if place.closed is not None:
            pair = (nodes[ancestor], descendant, path, str(place))
            if sum(map(len, pair)) + 3 <= _LONGEST:
                pairs.append(pair)

    stack = [(0, _Place(), iter(children[0]))] if nodes else []
    while stack:
        node, place, rest = stack[-1]
        edge = next(rest, None)
        if edge is None:
            stack.pop()
            if eob and slt and all(label != "n" for label, _ in children[node]):
                add(node, "0!", "n", place)
            elif eob and not slt and not children[node]:
                add(node, "0!", "0", place)
            continue
        label, child = edge
        for below, path in _descendants(children, child, label, window, slt):
            add(node, nodes[below], _encode(path), place)
        stack.append((child, place.below(label), iter(children[child])))
    return tuple(pairs)


def leaf_paths(tree: FormulaTree) -> tuple[tuple[str, ...], ...]:
    """Compute :meth:`FormulaTree.leaf_paths`."""
    parent = {child: above for above, child, _ in tree.edges}
    inner = {above for above, _, _ in tree.edges}
    paths = []
    for leaf in range(len(tree.nodes)):
        if leaf in inner:
            continue
        path, node = [tree.nodes[leaf]], leaf
        while node in parent:
            node = parent[node]
            path.append(tree.nodes[node])
        paths.append(tuple(path))
    return tuple(paths)
