"""The box of a formula: the formula, its two trees, and a frame that stands for the edges of its virtual node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyterrier_mathamr._common.drawing import Canvas, Palette, Placed, TreeNode, paint_tree, placed_tree, text_width

from .paragraphs import Paragraph, paint_paragraph, paragraph

PAD, HEAD = 10.0, 24.0
_LEAD = text_width("OPT ") + 4
_BESIDE = 18.0


class Tree(NamedTuple):
    """A tree in a box: OPT or SLT, its nodes and their places."""

    name: str
    nodes: Sequence[TreeNode]
    placed: Placed


class Box(NamedTuple):
    """The box of a formula.

    Attributes:
        name: such as ``FORMULA_0``.
        shown: the formula.
        virtual: the label of its virtual node, at the right end of the head; may be empty.
        edges: of the virtual node, for its tooltip.
        trees: those to be shown.
        note: in place of trees that are not shown.
        beside: whether the trees are beside each other.
        width: in pixels.
        height: the same.
    """

    name: str
    shown: Paragraph
    virtual: str
    edges: int
    trees: Sequence[Tree]
    note: str
    beside: bool
    width: float
    height: float

    @property
    def head(self) -> float:
        """The height of the first line."""
        return max(HEAD, self.shown.height + 8)


def formula_box(
    name: str,
    latex: str,
    opt: Sequence[TreeNode],
    slt: Sequence[TreeNode],
    limit: float,
    *,
    virtual: str = "",
    edges: int = 0,
    note: str = "",
) -> Box:
    """Measure the box of a formula."""
    trees = []
    if opt:
        trees.append(Tree("OPT", opt, placed_tree(opt)))
    if slt:
        trees.append(Tree("SLT", slt, placed_tree(slt, limit)))
    shown = paragraph("FORMULA_0" if latex else "", [latex], limit, lines=1)
    in_line = sum(tree.placed.width + _LEAD + _BESIDE for tree in trees)
    beside = in_line <= limit
    width = in_line if beside else max(tree.placed.width + _LEAD for tree in trees)
    heights = [tree.placed.height for tree in trees]
    height = (max(heights, default=0.0) if beside else sum(heights) + 6 * len(heights)) + (16.0 if note else 0.0)
    head = text_width(f"{name}  ") + shown.width + (text_width(virtual) + 40 if virtual else 0.0)
    width = max(width, head, text_width(note))
    box = Box(name, shown, virtual, edges, trees, note, beside, width + 2 * PAD, 0.0)
    return box._replace(height=box.head + height + (PAD if height else 0.0))


def paint_box(canvas: Canvas, box: Box, x: float, y: float, colors: Palette) -> None:
    """Paint a box whose left upper corner is at ``x``, ``y``; its frame is dashed if it has a virtual node."""
    framed = colors.virtual.border if box.virtual else colors.line
    marks = "formula dashed" if box.virtual else "formula"
    canvas.panel(x, y, box.width, box.height, colors.ground, framed, marks)
    middle = y + box.head / 2
    canvas.text(x + PAD, middle + 4, box.name, colors.text, strong=True)
    left = x + PAD + text_width(f"{box.name}  ")
    paint_paragraph(canvas, box.shown, left, middle - box.shown.height / 2 + 2, colors.text)
    if box.virtual:
        wide = text_width(box.virtual) + 16
        told = f"{box.virtual}: :virtual_formula to {box.edges} node{'' if box.edges == 1 else 's'}"
        canvas.chip(
            x + box.width - wide - 6, middle, wide, box.virtual, colors.virtual, told, marks="virtual round strong"
        )
    left, top = x + PAD, y + box.head
    for tree in box.trees:
        canvas.text(left, top + tree.placed.y[0] + 4, tree.name, colors.quiet)
        paint_tree(canvas, tree.nodes, tree.placed, left + _LEAD, top, colors)
        if box.beside:
            left += tree.placed.width + _LEAD + _BESIDE
        else:
            top += tree.placed.height + 6
    if box.note:
        canvas.text(x + PAD, y + box.head + 10, box.note, colors.quiet)
