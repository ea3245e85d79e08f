"""A drawing of a MathAMR+ graph (MathAMR+, Figure 3.1) that stays readable at some hundred nodes.

::

    154: 41 nodes, 2 sentences, 1 formula
    ┌ joint ────────────────────────────────────────────────────────────────────────────────┐
    │ multi-sentence                                                                        │
    ├ sentence 1  Solve FORMULA_0 for me. ──────────────────────────────────────────────────┤
    │ solve-01 ─┬─ :ARG0 ─ we                          ┌ FORMULA_0   x^2 = 2 ─────────────┐ │
    │           └─ :ARG1 ─ FORMULA_0 ─────────────────▶│ OPT  eq ─┬─ SUP …   SLT x ─ = ─ 2 │ │
    └───────────────────────────────────────────────────────────────────────────────────────┘

A general graph layout (layers, springs) mixes formulas with text, and its lines cross from about 50 nodes on. A
MathAMR+ graph is nearly a tree of known parts, so here each part has its own place, and no line crosses a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyterrier_mathamr._common.drawing.palette import Paint, Palette, Theme, palette
from pyterrier_mathamr._common.drawing.svg import Canvas, Picture, shortened, text_width
from pyterrier_mathamr._common.drawing.tree_layout import Node, Placed, flow, spread
from pyterrier_mathamr.graph import MathAMRGraph

from .graph_parts import PartNode, parts_of

_MARGIN, _PAD, _HEAD, _BETWEEN = 14.0, 10.0, 24.0, 8.0
_GUTTER = 46.0  # between a sentence and its formulas
_LEGEND = (("concept", "concept or constant"), ("placeholder", "formula"), ("opt", "operator tree (OPT)"),
           ("slt", "symbol layout tree (SLT)"))  # fmt: skip
_SCRIPTS = "dashed: a node drawn elsewhere · SLT edges: a above, b below, o over, u under, w within, e element"


def draw_graph(
    graph: MathAMRGraph, *, theme: Theme = "light", label_length: int = 32, formula_width: int = 520
) -> Picture:
    """Draw a graph: sentence by sentence, the trees of each formula in a box beside it (MathAMR+, Figure 3.1).

    Args:
        graph: of a post or query. Texts and LaTeX are shown where it has them.
        theme: ``light`` or ``dark`` background.
        label_length: longer labels are cut; pointing at a node shows the whole label.
        formula_width: width of a row of a symbol layout tree before it is broken, in pixels.

    Returns:
        The picture. Its size grows with the number of nodes, the size of its text does not.

    Raises:
        ConfigError: there is no such theme; MissingPlaceholderError: a formula has no node.
    """
    return _Drawing(graph, palette(theme), label_length, float(formula_width)).draw()


class _Box(NamedTuple):
    """The box of a formula."""

    number: int
    opt: Placed | None
    slt: Placed | None
    beside: bool
    width: float
    height: float


class _Drawing:
    """A drawing in progress: first the sizes of all parts, then the painting from top to bottom."""

    def __init__(self, graph: MathAMRGraph, colours: Palette, label_length: int, formula_width: float) -> None:
        self.graph, self.colours = graph, colours
        self.label_length, self.formula_width = max(4, label_length), formula_width
        self.parts = parts_of(graph)
        self.canvas = Canvas()

    def draw(self) -> Picture:
        """Paint title, legend, the joint part and each sentence."""
        parts = self.parts
        bands = [part for part in (parts.joint, *parts.sentences) if part]
        trees = [self._spread(part) for part in bands]
        boxes = [[self._box(node.formula) for node in part if node.formula >= 0] for part in bands]
        boxed = max((box.width for found in boxes for box in found), default=0.0)
        left = max(
            tree.width + self._lead(part) + (_GUTTER if found else 0)
            for part, tree, found in zip(bands, trees, boxes, strict=True)
        )
        title = self._title()
        width = max(left + boxed + 2 * _PAD, text_width(title, 14), text_width(_SCRIPTS), 620.0) + 2 * _MARGIN
        top = self._header(title)
        for index, (part, tree, found) in enumerate(zip(bands, trees, boxes, strict=True)):
            heading = self._heading(index - len(bands) + len(parts.sentences))
            height = max(tree.height, sum(box.height + _BETWEEN for box in found) - _BETWEEN) + 2 * _PAD
            height += _HEAD if heading else 0.0
            self.canvas.panel(
                _MARGIN, top, width - 2 * _MARGIN, height, self.colours.panel, self.colours.panel, "sentence"
            )
            if heading:
                room = int((width - 2 * _MARGIN - 2 * _PAD) / text_width("m"))
                self._text(_MARGIN + _PAD, top + 17, shortened(heading, room), title=heading, strong=True)
            inner = top + _PAD + (_HEAD if heading else 0.0)
            self._band(part, tree, found, inner, _MARGIN + _PAD + left)
            top += height + _BETWEEN
        return self.canvas.picture(width, top + _MARGIN - _BETWEEN, self.colours.ground, title)

    def _title(self) -> str:
        graph = self.graph
        counts = [
            (len(graph.amr.labels), "node"),
            (len(self.parts.sentences), "sentence"),
            (graph.n_formulas, "formula"),
        ]
        listed = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)
        return f"{graph.id or 'graph'}: {listed}"

    def _heading(self, number: int) -> str:
        """Name a sentence; the joint, which has a negative number, has no heading."""
        if number < 0:
            return ""
        texts = self.graph.sentence_texts
        return f"sentence {number + 1}: {texts[number]}" if number < len(texts) else f"sentence {number + 1}"

    def _header(self, title: str) -> float:
        self._text(_MARGIN, 26, title, strong=True, size=14)
        x = _MARGIN
        for kind, meaning in _LEGEND:
            paint: Paint = getattr(self.colours, kind)
            self.canvas.panel(x, 38, 14, 12, paint.fill, paint.border, "legend")
            self._text(x + 20, 48, meaning)
            x += 20 + text_width(meaning) + 22
        self.canvas.text(_MARGIN, 66, _SCRIPTS, self.colours.quiet)
        return 76.0

    def _lead(self, part: Sequence[PartNode]) -> float:
        """The room for the role of a sentence's root."""
        return text_width(part[0].role) + 8 if part[0].role else 0.0

    def _spread(self, part: Sequence[PartNode]) -> Placed:
        return spread([Node(self._shown(node), node.parent, self._role(node)) for node in part])

    def _box(self, number: int) -> _Box:
        opt, slt = self.parts.opts[number], self.parts.slts[number]
        placed_opt = self._spread(opt) if opt else None
        placed_slt = (
            flow([Node(self._shown(node), node.parent, self._role(node)) for node in slt], self.formula_width)
            if slt
            else None
        )
        trees = [tree for tree in (placed_opt, placed_slt) if tree]
        label = text_width("OPT ") + 4
        side_by_side = sum(tree.width + label + 18 for tree in trees)
        beside = side_by_side <= self.formula_width
        width = side_by_side if beside else max(tree.width + label for tree in trees)
        high = max((tree.height for tree in trees), default=0.0) if beside else sum(tree.height + 6 for tree in trees)
        width = max(width, text_width(f"FORMULA_{number} ") + min(self.formula_width, text_width(self._latex(number))))
        return _Box(number, placed_opt, placed_slt, beside, width + 2 * _PAD, high + _HEAD + _PAD)

    def _latex(self, number: int) -> str:
        return self.graph.latex[number] if number < len(self.graph.latex) else self.graph.formula_ids[number]

    def _shown(self, node: PartNode) -> str:
        return shortened(node.label, self.label_length) or "·"

    @staticmethod
    def _role(node: PartNode) -> str:
        """Return the edge label that is shown: ``n`` for ``:slt-n``, as the layout knows it."""
        return node.role.removeprefix(":slt-") if node.parent >= 0 else ""

    def _band(self, part: Sequence[PartNode], tree: Placed, boxes: Sequence[_Box], top: float, right: float) -> None:
        """Paint a sentence, the boxes of its formulas, and a line from each placeholder to its box.

        Boxes are mostly below their placeholders; the first line turns last, so these lines do not cross.
        """
        lead = self._lead(part)
        if part[0].role:
            self.canvas.text(_MARGIN + _PAD, top + tree.y[0] + 4, part[0].role, self.colours.quiet)
        left = _MARGIN + _PAD + lead
        y = top
        places = [node for node, found in enumerate(part) if found.formula >= 0]
        for lane, (node, box) in enumerate(zip(places, boxes, strict=True)):
            start, row, middle = left + tree.x[node] + tree.widths[node], top + tree.y[node], y + _HEAD / 2
            turn = right - 8 - lane * min(5.0, (_GUTTER - 16) / len(boxes))
            path = f"M{start:.1f} {row:.1f}H{turn:.1f}V{middle:.1f}H{right:.1f}"
            self.canvas.line(path, self.colours.placeholder.border, "link")
            y += box.height + _BETWEEN
        self._tree(part, tree, left, top, "concept")
        y = top
        for box in boxes:
            self._formula(box, right, y)
            y += box.height + _BETWEEN

    def _formula(self, box: _Box, x: float, y: float) -> None:
        """Paint the box of a formula."""
        colours, name = self.colours, f"FORMULA_{box.number}"
        self.canvas.panel(x, y, box.width, box.height, colours.ground, colours.placeholder.border, "formula")
        self._text(x + _PAD, y + 16, name, strong=True)
        latex, after = self._latex(box.number), text_width(name + "  ")
        room = int((box.width - 2 * _PAD - after) / text_width("m"))
        if latex and room > 1:
            self._text(x + _PAD + after, y + 16, shortened(latex, room), title=latex)
        left, top = x + _PAD, y + _HEAD
        for kind, tree, part in (("opt", box.opt, self.parts.opts), ("slt", box.slt, self.parts.slts)):
            if tree is None:
                continue
            self.canvas.text(left, top + tree.y[0] + 4, kind.upper(), colours.quiet)
            label = text_width("OPT ") + 4
            self._tree(part[box.number], tree, left + label, top, kind)
            if box.beside:
                left += tree.width + label + 18
            else:
                top += tree.height + 6

    def _tree(self, part: Sequence[PartNode], tree: Placed, x: float, y: float, kind: str) -> None:
        """Paint a tree of one kind of nodes: lines, edge labels, then the nodes on them."""
        colours = self.colours
        for points in tree.lines:
            pairs = zip(points[::2], points[1::2], strict=True)
            self.canvas.line("M" + "L".join(f"{x + a:.1f} {y + b:.1f}" for a, b in pairs), colours.line)
        for node, place in zip(part, tree.roles, strict=True):
            if place and self._role(node):
                self.canvas.text(x + place[0], y + place[1], self._role(node), colours.quiet, size=9)
        for i, node in enumerate(part):
            paint: Paint = getattr(colours, "placeholder" if node.formula >= 0 else kind)
            marks = "placeholder strong" if node.formula >= 0 else kind if kind == "slt" else f"{kind} round"
            if node.again:
                paint, marks = Paint(colours.panel, paint.border, colours.text), f"{marks} dashed"
            self.canvas.chip(
                x + tree.x[i], y + tree.y[i], tree.widths[i], self._shown(node), paint, node.full, marks=marks
            )

    def _text(self, x: float, y: float, text: str, *, title: str = "", strong: bool = False, size: int = 11) -> None:
        self.canvas.text(x, y, text, self.colours.text, title=title, strong=strong, size=size)
