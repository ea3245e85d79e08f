"""A drawing of a MathAMR+ graph (MathAMR+, Figure 3.1) that stays readable with hundreds of nodes.

::

    (document)                                 virtual node; its edges: the lines to the root of the AMR, to each
    │ ┌──────────────────────────────────────  sentence and to each formula
    ├▶│ multi-sentence
    │ ├──────────────────────────────────────────────────────────────────────────────────────┐
    ├▶│ (sentence 1)  Solve x² = 2 for me.                                                   │
    │ │ ┌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┐           ┌╌╌ FORMULA_0   x² = 2 ╌╌╌ (formula 0) ╌┐◀─┤
    │ │ ╎ solve-01 ─┬─ :ARG0 ─ you    ╎           ╎ OPT  = ─┬─ superscript …   SLT x = 2 ╎  │
    │ │ ╎           └─ :ARG1 ─ FORMULA_0 ────────▶└╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┘  │

A dashed frame replaces the edges of a virtual node to every node inside. A general graph layout (layers, springs)
mixes formulas with text, and its lines cross from about 50 nodes on. A MathAMR+ graph is nearly a tree of known parts,
so here each part has its own place, and no line crosses a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pyterrier_mathamr._common.drawing import (
    Canvas,
    Picture,
    Placed,
    Theme,
    TreeNode,
    paint_tree,
    palette,
    placed_tree,
    shortened,
    text_width,
)
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.amr import AmrGraph
from pyterrier_mathamr.formula.display.drawing import HEAD, PAD, Box, formula_box, key_of, paint_box, paint_key
from pyterrier_mathamr.formula.display.typesetting import Paragraph, paint_paragraph, paragraph
from pyterrier_mathamr.formula.tree import symbol_node

from .structure import GraphLayout


class PartNode(NamedTuple):
    label: str  # with its variable where the node is mentioned elsewhere
    full: str  # with its variable, shown on demand
    parent: int  # index of its parent in the part, -1 for the part's root
    role: str  # of the edge from its parent; of a sentence's root, of the edge from the joint
    formula: int = -1  # i of the placeholder FORMULA_i
    again: bool = False  # only mentions a node


class GraphParts(NamedTuple):
    """The nodes of each part, parents before children; the trees are empty if a formula has none."""

    joint: list[PartNode]  # nodes in no sentence
    sentences: list[list[PartNode]]
    opts: list[list[PartNode]]
    slts: list[list[PartNode]]


def parts_of(amr: AmrGraph, layout: GraphLayout) -> GraphParts:
    """Take a graph apart, along its edges in writing order."""
    counts = Counter(target for _, _, target in amr.edges) + Counter([0])
    numbers = {node: i for i, node in enumerate(layout.placeholders)}
    parts = GraphParts([], [[] for _ in layout.roots], [[] for _ in layout.opts], [[] for _ in layout.slts])
    begun = dict(zip(layout.roots, parts.sentences, strict=True))
    for trees, node_lists in ((parts.opts, layout.opts), (parts.slts, layout.slts)):
        begun |= {nodes[0]: tree for tree, nodes in zip(trees, node_lists, strict=True) if nodes}
    part_of: dict[int, list[PartNode]] = {}
    index = {-1: -1}  # of each node in its part

    def full(node: int) -> str:
        return f"{amr.variables[node]} / {amr.labels[node]}" if amr.variables[node] else amr.labels[node]

    def add(node: int, role: str, source: int) -> None:
        part = begun[node] if node in begun else part_of.get(source, parts.joint)
        parent = index[source] if part_of.get(source) is part else -1
        label = full(node) if counts[node] > 1 and amr.variables[node] else amr.labels[node]
        part_of[node], index[node] = part, len(part)
        part.append(PartNode(label, full(node), parent, role, numbers.get(node, -1)))

    add(0, "", -1)
    bare = frozenset(amr.mentions)
    for edge, (source, role, target) in enumerate(amr.edges):
        if target in part_of or edge in bare:
            part = part_of[source]
            part.append(PartNode(full(target), f"again {full(target)}", index[source], role, again=True))
        else:
            add(target, role, source)
    return parts


_MARGIN, _BETWEEN, _RAIL = 14.0, 8.0, 24.0
_GUTTER = 46.0  # between a sentence and its formulas
_FRAME = 7.0  # between the nodes of a sentence and the frame of its virtual node
_NARROWEST = 700.0
_DOCUMENT = "document"


class _Band(NamedTuple):
    """A sentence, or with number -1 the nodes in no sentence, with the boxes of its formulas."""

    number: int
    nodes: Sequence[TreeNode]
    placed: Placed
    placeholders: Sequence[int]
    boxes: Sequence[Box]
    role: str
    heading: Paragraph | None

    @property
    def lead(self) -> float:
        return text_width(self.role) + 8 if self.role else 0.0

    @property
    def left(self) -> float:
        return self.placed.width + self.lead + 2 * _FRAME + (_GUTTER if self.boxes else 0.0)

    @property
    def head(self) -> float:
        """The height of the virtual node and the text, above the tree."""
        return max(HEAD, self.heading.height) + _FRAME if self.heading else 0.0

    @property
    def middle(self) -> float:
        """The height of the virtual node: of the first line of the text."""
        return max(10.0, self.heading.first - 4) if self.heading else 10.0

    @property
    def height(self) -> float:
        """The height of the frame, its padding included."""
        boxes = sum(box.height + _BETWEEN for box in self.boxes)
        return self.head + max(self.placed.height + _FRAME, boxes) + 2 * PAD


class GraphDrawing:
    """A drawing in progress: first the sizes of all parts, then the painting from top to bottom."""

    def __init__(
        self,
        amr: AmrGraph,
        layout: GraphLayout,
        formula_ids: Sequence[str],
        latex: Sequence[str],
        sentence_texts: Sequence[str],
        formulas: FormulaMode,
        label_length: int,
        formula_width: float,
    ) -> None:
        self.layout, self.formula_ids, self.latex, self.texts = layout, formula_ids, latex, sentence_texts
        self.formulas = formulas
        self.label_length, self.formula_width = max(4, label_length), float(formula_width)
        self.parts, self.size = parts_of(amr, layout), len(amr.labels)
        self.canvas = Canvas()

    def draw(self, name: str, shown: Sequence[int] | None, theme: Theme) -> Picture:
        """Paint title, key, the virtual node of the document, the joint part and each sentence."""
        self.colors = palette(theme)
        count = len(self.parts.sentences)
        sentences = list(range(count)) if shown is None else [number - 1 for number in shown]
        if missing := [number + 1 for number in sentences if not 0 <= number < count]:
            raise ConfigError("sentences", missing, f"numbers of sentences, 1 to {count}")
        bands = [self._band(-1, self.parts.joint)] if self.parts.joint else []
        bands += [self._band(number, self.parts.sentences[number]) for number in sentences]
        self.left = max((band.left for band in bands if band.boxes), default=0.0)
        boxed = max((self.left + box.width for band in bands for box in band.boxes), default=0.0)
        counts = [(self.size, "node"), (count, "sentence"), (len(self.formula_ids), "formula")]
        title = f"{name}: " + ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts)
        if len(sentences) != count:
            title += f"; {len(sentences)} of the sentences shown"
        rail = _RAIL if boxed else 0.0
        inner = max([boxed, *(band.left for band in bands)]) + 2 * PAD
        width = max(inner + _RAIL + rail, text_width(title, 14), _NARROWEST) + 2 * _MARGIN
        self.canvas.text(_MARGIN, 26, title, self.colors.text, strong=True, size=14)
        drawn = [node for band in bands for node in band.nodes]
        drawn += [node for band in bands for box in band.boxes for tree in box.trees for node in tree.nodes]
        start = (
            paint_key(self.canvas, key_of(drawn), _MARGIN, 38.0, min(width, _NARROWEST) - 2 * _MARGIN, self.colors) + 8
        )
        tops = [start + 20.0]
        for band in bands:
            tops.append(tops[-1] + band.height + _BETWEEN)
        inner = width - 2 * _MARGIN - _RAIL - rail
        for band, top in zip(bands, tops, strict=False):
            fill = self.colors.panel
            self.canvas.panel(_MARGIN + _RAIL, top, inner, band.height, fill, fill, "sentence")
        self._document(bands, tops, start, width - _MARGIN - 8)
        for band, top in zip(bands, tops, strict=False):
            self._paint(band, _MARGIN + _RAIL + PAD, top + PAD)
        return self.canvas.picture(width, tops[-1] + _MARGIN - _BETWEEN, self.colors.ground, title)

    def _band(self, number: int, part: Sequence[PartNode]) -> _Band:
        nodes = [
            TreeNode(
                shortened(node.label, self.label_length) or "·",
                node.parent,
                node.role if node.parent >= 0 else "",
                node.full,
                "placeholder" if node.formula >= 0 else "concept",
                again=node.again,
            )
            for node in part
        ]
        placeholders = [i for i, node in enumerate(part) if node.formula >= 0]
        boxes = [self._box(part[i].formula) for i in placeholders]
        band = _Band(number, nodes, placed_tree(nodes), placeholders, boxes, part[0].role, None)
        if number < 0:
            return band
        wide = band.left + max((box.width for box in boxes), default=0.0)
        room = max(wide, _NARROWEST - 2 * _RAIL) - text_width(f"sentence {number + 1}") - 2 * PAD - 26
        text = self.texts[number] if number < len(self.texts) else ""
        return band._replace(heading=paragraph(text, self.latex, room, lines=3))

    def _box(self, number: int) -> Box:
        opt, slt = self.parts.opts[number], self.parts.slts[number]
        shown = (opt if self.formulas in ("both", "opt") else (), slt if self.formulas in ("both", "slt") else ())
        hidden = len(opt) + len(slt) - sum(map(len, shown))
        return formula_box(
            f"FORMULA_{number}",
            self.latex[number] if number < len(self.latex) else self.formula_ids[number],
            self._symbols("opt", shown[0]),
            self._symbols("slt", shown[1]),
            self.formula_width,
            virtual=f"formula {number}",
            edges=sum(not node.again for node in (*opt, *slt)) or 1,
            note=f"{hidden} nodes of trees not shown" if hidden else "",
        )

    def _symbols(self, kind: str, part: Sequence[PartNode]) -> list[TreeNode]:
        return [
            symbol_node(node.label, node.full, node.parent, node.role, kind, self.label_length, again=node.again)
            for node in part
        ]

    def _document(self, bands: Sequence[_Band], tops: Sequence[float], start: float, right: float) -> None:
        """Paint the document's virtual node and its edges: on the left to sentences and root, on the right to boxes."""
        left, inside = _MARGIN + 8, _MARGIN + _RAIL + PAD
        ends, boxes = [], []
        for band, top in zip(bands, tops, strict=False):
            if band.number >= 0:
                ends.append((top + PAD + band.middle, inside))
            if band is bands[0] and (band.number < 0 or (not self.parts.joint and not band.number)):
                ends.append((top + PAD + band.head + band.placed.y[0], inside + band.lead + _FRAME))
            y = top + PAD + band.head
            for box in band.boxes:
                boxes.append((y + box.head / 2, inside + self.left + box.width))
                y += box.height + _BETWEEN
        paths = [f"M{left:.1f} {start:.1f}V{y:.1f}H{x:.1f}" for y, x in ends]
        paths += [f"M{left:.1f} {start:.1f}H{right:.1f}V{y:.1f}H{x:.1f}" for y, x in boxes]
        for path in paths:
            self.canvas.line(path, self.colors.virtual.border, "virtual")
        note = f"virtual node of the document: :virtual_document to {len(paths)} of the drawn nodes"
        wide = text_width(_DOCUMENT) + 16
        self.canvas.chip(_MARGIN, start, wide, _DOCUMENT, self.colors.virtual, note, marks="virtual round strong")

    def _paint(self, band: _Band, x: float, top: float) -> None:
        """Paint a sentence, its virtual node with the frame, the boxes, and a line from each placeholder to its box."""
        colors = self.colors
        left, tree_top = x + band.lead + _FRAME, top + band.head
        if band.heading is not None:
            self._sentence(band, band.heading, x, top)
        if band.role:
            self.canvas.text(x, tree_top + band.placed.y[0] + 4, band.role, colors.quiet)
        right, y = x + self.left, top + band.head
        for lane, (node, box) in enumerate(zip(band.placeholders, band.boxes, strict=True)):
            start, row = left + band.placed.x[node] + band.placed.widths[node], tree_top + band.placed.y[node]
            turn = right - 8 - lane * min(5.0, (_GUTTER - 24) / len(band.boxes))
            path = f"M{start:.1f} {row:.1f}H{turn:.1f}V{y + box.head / 2:.1f}H{right:.1f}"
            self.canvas.line(path, colors.placeholder.border, "link")
            y += box.height + _BETWEEN
        paint_tree(self.canvas, band.nodes, band.placed, left, tree_top, colors)
        y = top + band.head
        for box in band.boxes:
            paint_box(self.canvas, box, right, y, colors)
            y += box.height + _BETWEEN

    def _sentence(self, band: _Band, heading: Paragraph, x: float, top: float) -> None:
        """Paint the virtual node of a sentence, its text, and the frame around the nodes that it is joined to."""
        name, colors = f"sentence {band.number + 1}", self.colors
        edges = self.layout.sentences[band.number]
        note = f"virtual node of {name}: :virtual_sentence to {len(edges)} node{'' if len(edges) == 1 else 's'}"
        wide = text_width(name) + 16
        frame = (x + band.lead, top + band.head - 4, band.placed.width + 2 * _FRAME, band.placed.height + 8)
        self.canvas.panel(*frame, "none", colors.virtual.border, "members dashed")
        self.canvas.chip(x, top + band.middle, wide, name, colors.virtual, note, marks="virtual round strong")
        stem = max(x + 12, x + band.lead + 8)
        self.canvas.line(f"M{stem:.1f} {top + band.middle + 8:.1f}V{frame[1]:.1f}", colors.virtual.border, "stem")
        paint_paragraph(
            self.canvas, heading, x + wide + 10, top + band.middle + 4 - heading.first, colors.text, strong=True
        )
