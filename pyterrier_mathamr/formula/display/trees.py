"""Formula trees for people: as an indented tree, and as a drawing for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from pyterrier_mathamr._common.drawing import Canvas, TreeNode, paint_tree, palette, placed_tree, shortened, text_width

from .labels import TYPES, readable

if TYPE_CHECKING:
    from pyterrier_mathamr.formula.tree import FormulaTree

_LARGEST = 400  # nodes; a larger tree is shown as text
_DEEPEST = 60  # levels indented; deeper ones stay in the same column, or a chain would fill a square
_WIDTH = 640.0  # of a row of symbols
_LABEL = 32  # characters
_MARGIN = 10.0


def indented(tree: FormulaTree) -> str:
    """Write a tree with one node a line, two blanks a level, its edge label before each node."""
    depths, labels = [0] * len(tree.nodes), [""] * len(tree.nodes)
    for parent, child, label in tree.edges:
        depths[child], labels[child] = depths[parent] + 1, f"{label} "
    rows = zip(depths, labels, tree.nodes, strict=True)
    return "\n".join("  " * min(depth, _DEEPEST) + label + node for depth, label, node in rows)


def symbol_node(
    label: str, title: str, parent: int, role: str, kind: str, length: int = _LABEL, *, again: bool = False
) -> TreeNode:
    """Make a symbol of a formula tree a node to be painted."""
    variable, slash, name = label.rpartition(" / ")
    letter, text = readable(name)
    shown = shortened(f"{variable}{slash}{text}", length) or "·"
    edge = role.removeprefix(":slt-").removeprefix(":op") if parent >= 0 else ""
    return TreeNode(shown, parent, edge, title, kind, letter, again)


def tree_nodes(tree: FormulaTree, kind: str) -> list[TreeNode]:
    """Make all symbols of a tree nodes to be painted."""
    edges = {child: (parent, label) for parent, child, label in tree.edges}
    numbered = ((label, *edges.get(i, (-1, ""))) for i, label in enumerate(tree.nodes))
    return [symbol_node(label, label, parent, role, kind) for label, parent, role in numbered]


def drawing(tree: FormulaTree) -> str:
    """Draw a tree as a self-contained SVG picture; a very large tree is returned as text."""
    if not 0 < len(tree.nodes) <= _LARGEST:
        return f"<pre>{html.escape(indented(tree))}</pre>"
    colors, kind = palette("light"), "slt" if tree.is_slt else "opt"
    nodes = tree_nodes(tree, kind)
    placed = placed_tree(nodes, _WIDTH if kind == "slt" else None)
    canvas = Canvas()
    paint_tree(canvas, nodes, placed, _MARGIN, _MARGIN, colors)
    y, width = placed.height + 2 * _MARGIN, placed.width
    for letter in dict.fromkeys(node.letter for node in nodes if node.letter):
        y += 16
        canvas.text(_MARGIN, y, f"{letter}  {TYPES[letter]}", colors.quiet)
        width = max(width, text_width(f"{letter}  {TYPES[letter]}"))
    return canvas.picture(width + 2 * _MARGIN, y + _MARGIN, colors.ground, f"{kind.upper()}: {tree.source}").svg
