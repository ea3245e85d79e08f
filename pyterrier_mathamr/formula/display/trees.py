"""Formula trees for people: labels in words, an indented tree, and a drawing for notebooks.

``V!𝑥`` is the variable x, ``U!eq`` the operator =, ``&comma;`` a comma.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from pyterrier_mathamr._common.drawing import Canvas, TreeNode, paint_tree, palette, placed_tree, shortened, text_width

if TYPE_CHECKING:
    from pyterrier_mathamr.formula.tree import FormulaTree


TYPES = {
    "V": "variable",
    "N": "number",
    "C": "constant",
    "F": "function",
    "O": "operator, operands in order",
    "U": "operator, operands in any order",
    "M": "matrix, vector, set, list or brackets",
    "T": "text",
    "W": "empty",
    "E": "not understood",
    "+": "compound operator",
}
"""The types of symbols, with which labels begin, and their meaning."""

_ESCAPES = {"&comma;": ",", "&quest;": "?", "&lsqb;": "[", "&rsqb;": "]"}
_ESCAPE = re.compile("|".join(_ESCAPES))
_ITALIC = (*range(0x1D434, 0x1D468), *range(0x1D6FC, 0x1D715), 0x210E)  # Latin and small Greek letters
_UPRIGHT = {code: unicodedata.normalize("NFKC", chr(code)) for code in _ITALIC}
_OPERATORS = {
    "eq": "=", "neq": "≠", "lt": "<", "gt": ">", "leq": "≤", "geq": "≥", "approx": "≈", "equivalent": "≡",
    "plus": "+", "minus": "−", "times": "×", "divide": "÷", "factorial": "!", "root": "√", "infinity": "∞",
    "sum": "∑", "product": "∏", "int": "∫", "partialdiff": "∂", "in": "∈", "notin": "∉",
    "union": "∪", "intersect": "∩", "setdiff": "∖", "emptyset": "∅", "and": "∧", "or": "∨",
    "not": "¬", "implies": "⇒", "iff": "⇔", "forall": "∀", "exists": "∃", "maps-to": "↦", "assign": "≔",
    "SUP": "superscript", "SUB": "subscript", "supremum": "sup", "infimum": "inf", "conditional": "given |",
}  # fmt: skip
_COLLECTIONS = {"V": "vector", "L": "list", "S": "set", "M": "matrix"}
_COLLECTION = re.compile(r"([VLSM])-(\d+(?:x\d+)?)$")
_SIZED = re.compile(r"(.*?)(\d+)x(\d+)$")


class ReadableLabel(NamedTuple):
    """A label for people."""

    type: str  # a key of :data:`TYPES`; empty for symbols without type, such as ``=`` in layout trees
    text: str  # the symbol, spelled out


def readable(label: str) -> ReadableLabel:
    """Split a label of a formula tree into the type of its symbol and a text for people.

    Args:
        label: such as ``U!eq``, ``V!𝑥``, ``M!()1x3`` or ``&comma;``.
    """
    kind, mark, name = label.partition("!")
    if not (mark and kind in TYPES):
        return ReadableLabel("", _plain(label))
    if kind == "+":
        return ReadableLabel(kind, readable(name).text)
    if kind == "M":
        if (known := _COLLECTION.match(name)) is not None:  # V-3 is a vector 3
            text = f"{_COLLECTIONS[known[1]]} {known[2].replace('x', '×')}"
        elif (sized := _SIZED.match(name)) is not None:  # ()1x3 are round brackets around 1×3 parts
            text = f"{_plain(sized[1])} {sized[2]}×{sized[3]}".strip()
        else:
            text = "row" if name == "R!" else _plain(name.removeprefix("D-"))
    elif kind in "OUCF":
        text = _OPERATORS.get(name) or _plain(name)
    else:
        text = _plain(name)
    return ReadableLabel(kind, text)


def _plain(text: str) -> str:
    """Undo the escapes of Tangent-S, and write italic letters upright."""
    return _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text).translate(_UPRIGHT)


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
