"""Drawings of formulas: a formula with its two trees in a box, and the key of shapes, colors and letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyterrier_mathamr._common.drawing import (
    Canvas,
    Paint,
    Palette,
    Picture,
    Placed,
    Theme,
    TreeNode,
    paint_tree,
    palette,
    placed_tree,
    text_width,
)
from pyterrier_mathamr.formula import FormulaPair, opt_from_latex, trees_from_latex
from pyterrier_mathamr.formula.tree import TYPES, tree_nodes

from .typesetting import Paragraph, paint_paragraph, paragraph

PAD, HEAD = 10.0, 24.0
_LEAD = text_width("OPT ") + 4
_BETWEEN = 18.0


class Tree(NamedTuple):
    """A tree in a box: OPT or SLT, its nodes and their places."""

    name: str
    nodes: Sequence[TreeNode]
    placed: Placed


class Box(NamedTuple):
    """The box of a formula."""

    name: str  # such as ``FORMULA_0``
    shown: Paragraph  # the formula
    virtual: str  # the label of its virtual node, at the right end of the head; may be empty
    edges: int  # the number of edges of the virtual node, for its tooltip
    trees: Sequence[Tree]  # the trees to draw
    note: str  # shown instead of omitted trees
    in_row: bool  # whether the trees are side by side
    width: float  # in pixels
    height: float  # in pixels

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
    in_line = sum(tree.placed.width + _LEAD + _BETWEEN for tree in trees)
    in_row = in_line <= limit
    width = in_line if in_row else max(tree.placed.width + _LEAD for tree in trees)
    heights = [tree.placed.height for tree in trees]
    height = (max(heights, default=0.0) if in_row else sum(heights) + 6 * len(heights)) + (16.0 if note else 0.0)
    head = text_width(f"{name}  ") + shown.width + (text_width(virtual) + 40 if virtual else 0.0)
    width = max(width, head, text_width(note))
    box = Box(name, shown, virtual, edges, trees, note, in_row, width + 2 * PAD, 0.0)
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
        note = f"{box.virtual}: :virtual_formula to {box.edges} node{'' if box.edges == 1 else 's'}"
        canvas.chip(
            x + box.width - wide - 6, middle, wide, box.virtual, colors.virtual, note, marks="virtual round strong"
        )
    left, top = x + PAD, y + box.head
    for tree in box.trees:
        canvas.text(left, top + tree.placed.y[0] + 4, tree.name, colors.quiet)
        paint_tree(canvas, tree.nodes, tree.placed, left + _LEAD, top, colors)
        if box.in_row:
            left += tree.placed.width + _LEAD + _BETWEEN
        else:
            top += tree.placed.height + 6
    if box.note:
        canvas.text(x + PAD, y + box.head + 10, box.note, colors.quiet)


_KINDS = {
    "virtual": "virtual node; dashed: joined to all nodes inside",
    "concept": "concept or constant",
    "placeholder": "formula",
    "opt": "operator tree (OPT)",
    "slt": "symbol layout tree (SLT)",
}
_OPERAND, _RELATION = "0 1 …", ":…"
_EDGES = {
    "a": "above", "b": "below", "o": "over", "u": "under", "w": "within", "e": "element", "c": "before, above",
    "d": "before, below", _OPERAND: "number of an operand; all 0 where any order means the same",
    _RELATION: "relation of the AMR graph",
}  # fmt: skip
_ROW, _GAP = 18.0, 20.0


class KeyEntry(NamedTuple):
    """An entry: the kind of a node with its color, or a letter, and the meaning."""

    kind: str
    letter: str
    meaning: str


def key_of(nodes: Iterable[TreeNode], *, virtual: bool = True) -> list[KeyEntry]:
    """List the entries that explain the nodes of a drawing."""
    kinds, letters, edges, again = {"virtual"} if virtual else set(), set[str](), set[str](), False
    for node in nodes:
        kinds.add(node.kind)
        letters.add(node.letter)
        again |= node.again
        if node.kind == "slt":
            edges.add(node.role)
        elif node.role:
            edges.add(_RELATION if node.role.startswith(":") else _OPERAND)
    entries = [KeyEntry(kind, "", meaning) for kind, meaning in _KINDS.items() if kind in kinds]
    entries += [KeyEntry("again", "", "a node drawn elsewhere")] if again else []
    entries += [KeyEntry("", letter, meaning) for letter, meaning in TYPES.items() if letter in letters]
    entries += [KeyEntry("edge", letter, meaning) for letter, meaning in _EDGES.items() if letter in edges]
    return entries


def paint_key(canvas: Canvas, entries: Sequence[KeyEntry], x: float, y: float, width: float, colors: Palette) -> float:
    """Paint a key in lines of a width and return its lower border: shapes first, then letters, then edges."""
    at, top, before = x, y, "shape"
    for entry in entries:
        group = "edge" if entry.kind == "edge" else "letter" if entry.letter else "shape"
        mark = "edge " if group == "edge" and group != before else ""
        wide = text_width(f"{mark}{entry.letter} {entry.meaning}") + (20 if group == "shape" else 0)
        if at > x and (group != before or at + wide > x + width):
            at, top = x, top + _ROW
        if entry.letter:
            canvas.text(at, top + 10, f"{mark}{entry.letter}", colors.text, strong=True)
            canvas.text(at + text_width(f"{mark}{entry.letter} "), top + 10, entry.meaning, colors.quiet)
        else:
            again = entry.kind == "again"
            paint: Paint = Paint(colors.panel, colors.line, "") if again else getattr(colors, entry.kind)
            radius = 6 if entry.kind in ("virtual", "concept", "opt", "again") else 2
            marks = "legend dashed" if again else "legend"
            canvas.panel(at, top, 14, 12, paint.fill, paint.border, marks, radius=radius)
            canvas.text(at + 20, top + 10, entry.meaning, colors.text)
        at, before = at + wide + _GAP, group
    return top + _ROW


_MARGIN, _NARROWEST = 14.0, 560.0


def draw_formula(latex: str, *, theme: Theme = "light", trees: FormulaPair | None = None, width: int = 720) -> Picture:
    r"""Draw a formula with its operator tree and its symbol layout tree.

    Args:
        latex: LaTeX without delimiters.
        theme: ``light`` or ``dark`` background.
        trees: the trees to draw, such as a collection's official ones; by default the trees of the LaTeX.
        width: pixels after which a row of symbols is broken.

    Raises:
        FormulaError: the LaTeX has no trees.
        ConfigError: there is no such theme.

    Example::

        explain.draw_formula(r'\frac{a}{b} = x^2').save('formula.svg')
    """
    colors, canvas = palette(theme), Canvas()
    pair = trees_from_latex(latex) if trees is None else trees
    if trees is None and pair.opt is None and pair.slt is None:
        opt_from_latex(latex)  # raises an error with the fault and its place
    opt, slt = ([] if tree is None else tree_nodes(tree, kind) for tree, kind in ((pair.opt, "opt"), (pair.slt, "slt")))
    box = formula_box("formula", latex, opt, slt, float(width))
    inner = max(box.width, _NARROWEST)
    top = paint_key(canvas, key_of([*opt, *slt], virtual=False), _MARGIN, _MARGIN, inner, colors) + 6
    paint_box(canvas, box, _MARGIN, top, colors)
    return canvas.picture(inner + 2 * _MARGIN, top + box.height + _MARGIN, colors.ground, latex)
