"""Two layouts of trees, without recursion, so that a chain of 10,000 nodes is no problem.

``spread``: a row for each leaf, the first child beside its parent, for AMR and operator trees::

    equal-01 ─┬─ :ARG1 ─ FORMULA_0
              └─ :ARG2 ─ zero

``flow``: a row of symbols that is broken like text, for symbol layout trees; symbols above, below or within another
hang under it::

    x ─ + ─ y ─ =
    │a 2
    z
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .svg import text_width

ROW = 21.0  # pixels from one row to the next
_PADDING, _GAP, _INDENT = 12.0, 22.0, 14.0
_NEXT = "n"


class Node(NamedTuple):
    """A node to be placed.

    Attributes:
        label: the shown text.
        parent: index of its parent, less than its own; -1 for the root, which comes first.
        role: the shown label of the edge from its parent.
    """

    label: str
    parent: int
    role: str


class Placed(NamedTuple):
    """The places of the nodes of a tree.

    Attributes:
        x: left borders, from 0.
        y: middles, from half a row.
        widths: of the nodes.
        lines: an SVG path for each edge, relative to the same origin.
        roles: where the edge label of each node begins (left end of its base line), ``None`` where it has none.
        width: of the tree.
        height: of the tree.
    """

    x: list[float]
    y: list[float]
    widths: list[float]
    lines: list[tuple[float, ...]]
    roles: list[tuple[float, float] | None]
    width: float
    height: float


def spread(nodes: Sequence[Node]) -> Placed:
    """Place each leaf in a row of its own and each parent before its first child."""
    size = len(nodes)
    widths = [text_width(node.label) + _PADDING for node in nodes]
    children = _children(nodes)
    rows = [0] * size  # of the subtree
    for node in reversed(range(size)):
        rows[node] = max(1, sum(rows[child] for child in children[node]))
    x, top = [0.0] * size, [0] * size
    lines: list[tuple[float, ...]] = []
    roles: list[tuple[float, float] | None] = [None] * size
    for parent in range(size):
        below = children[parent]
        room = max((text_width(nodes[child].role) for child in below), default=0.0)
        trunk, row = x[parent] + widths[parent] + 8, top[parent]
        for child in below:
            top[child], x[child] = row, trunk + room + _GAP - 8
            row += rows[child]
            up, down = _middle(top[parent]), _middle(top[child])
            start = x[parent] + widths[parent]
            lines.append(
                (start, up, trunk, up, trunk, down, x[child], down) if down > up else (start, up, x[child], up)
            )
            roles[child] = (trunk + 4, down - 3)
    width = max(left + wide for left, wide in zip(x, widths, strict=True))
    return Placed(x, [_middle(row) for row in top], widths, lines, roles, width, rows[0] * ROW)


def flow(nodes: Sequence[Node], limit: float) -> Placed:
    """Place the symbols of a layout tree in rows that are broken at a maximal width."""
    size = len(nodes)
    widths = [text_width(node.label) + _PADDING for node in nodes]
    children = _children(nodes)
    following = [next((child for child in below if nodes[child].role == _NEXT), -1) for below in children]
    hanging = [[child for child in below if child != after] for below, after in zip(children, following, strict=True)]
    room = [text_width(node.role) + _INDENT + 4 for node in nodes]  # before the symbols that hang under it
    x, y = [0.0] * size, [0.0] * size  # of a symbol within its row of symbols, then absolute
    wide, high = [0.0] * size, [0.0] * size  # of a row of symbols, kept at its first
    for first in reversed(range(size)):
        if first and following[nodes[first].parent] == first:
            continue
        wide[first], high[first] = _break_row(first, following, hanging, widths, (wide, high), (x, y), limit)
        wide[first] += room[first] if first else 0.0
    lines: list[tuple[float, ...]] = []
    roles: list[tuple[float, float] | None] = [None] * size
    origin = [(0.0, 0.0)] * size  # of the row of symbols that a symbol is in
    for node in range(size):
        x[node] += origin[node][0]
        y[node] += origin[node][1]
        below = y[node] + ROW / 2
        for child in hanging[node]:
            origin[child] = (x[node] + room[child], below)
            middle = below + ROW / 2
            stem = x[node] + 6
            lines.append((stem, y[node] + 8, stem, middle, origin[child][0], middle))
            roles[child] = (stem + 4, middle - 3)
            below += high[child]
        if following[node] >= 0:
            origin[following[node]] = origin[node]
    lines += [_joint(x, y, widths, node, after) for node, after in enumerate(following) if after >= 0]
    return Placed(x, y, widths, lines, roles, wide[0], high[0])


def _break_row(
    first: int,
    following: Sequence[int],
    hanging: Sequence[Sequence[int]],
    widths: Sequence[float],
    extent: tuple[list[float], list[float]],
    place: tuple[list[float], list[float]],
    limit: float,
) -> tuple[float, float]:
    """Place the symbols of a row, from its first on, relative to its origin, and return its width and height."""
    across, down, deepest, widest = 0.0, 0.0, ROW, 0.0
    node = first
    while node >= 0:
        wide = max([widths[node], *(extent[0][child] for child in hanging[node])])
        high = ROW + sum(extent[1][child] for child in hanging[node])
        if across and across + wide > limit:
            across, down, deepest = 0.0, down + deepest, ROW
        place[0][node], place[1][node] = across, down + ROW / 2
        across += wide
        widest, deepest = max(widest, across), max(deepest, high)
        across += 10
        node = following[node]
    return widest, down + deepest


def _joint(x: Sequence[float], y: Sequence[float], widths: Sequence[float], node: int, after: int) -> tuple[float, ...]:
    """Join a symbol to the next, or draw a stub where the row is broken."""
    end = x[node] + widths[node]
    return (end, y[node], x[after], y[after]) if y[after] == y[node] else (end, y[node], end + 7, y[node])


def _children(nodes: Sequence[Node]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in nodes]
    for child, node in enumerate(nodes):
        if node.parent >= 0:
            found[node.parent].append(child)
    return found


def _middle(row: int) -> float:
    return (row + 0.5) * ROW
