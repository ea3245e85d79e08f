"""Trees on a canvas: lines, labels of edges, then the nodes on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .palette import Paint, Palette
from .svg import Canvas
from .tree_layout import Node, Placed, flow, spread


class TreeNode(NamedTuple):
    """A node to be painted.

    Attributes:
        label: the shown text.
        parent: index of its parent, less than its own; -1 for the root, which comes first.
        role: the shown label of the edge from its parent.
        title: told on demand.
        kind: the name of its colors in the palette.
        letter: shown small before the label.
        again: whether it only mentions a node.
    """

    label: str
    parent: int
    role: str
    title: str
    kind: str
    letter: str = ""
    again: bool = False


def placed_tree(nodes: Sequence[TreeNode], limit: float | None = None) -> Placed:
    """Place a tree: by ``spread``, or with a maximal width of its rows by ``flow``."""
    plain = [Node(f"{node.letter} {node.label}".strip(), node.parent, node.role) for node in nodes]
    return spread(plain) if limit is None else flow(plain, limit)


def paint_tree(canvas: Canvas, nodes: Sequence[TreeNode], placed: Placed, x: float, y: float, colors: Palette) -> None:
    """Paint a tree whose left upper corner is at ``x``, ``y``."""
    for points in placed.lines:
        pairs = zip(points[::2], points[1::2], strict=True)
        canvas.line("M" + "L".join(f"{x + a:.1f} {y + b:.1f}" for a, b in pairs), colors.line)
    for node, place in zip(nodes, placed.roles, strict=True):
        if place and node.role:
            canvas.text(x + place[0], y + place[1], node.role, colors.quiet, size=9)
    for i, node in enumerate(nodes):
        paint: Paint = getattr(colors, node.kind)
        marks = {"placeholder": "placeholder strong", "slt": "slt"}.get(node.kind, f"{node.kind} round")
        if node.again:
            paint, marks = Paint(colors.panel, paint.border, colors.text), f"{marks} dashed"
        middle = y + placed.y[i]
        canvas.chip(
            x + placed.x[i], middle, placed.widths[i], node.label, paint, node.title, marks=marks, letter=node.letter
        )
