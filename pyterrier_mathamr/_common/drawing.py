"""Self-contained SVG pictures: colors, a canvas, and trees on it, laid out in one of two ways without recursion.

``spread``: a row for each leaf, the first child on its parent's row, for AMR and operator trees::

    equal-01 ─┬─ :ARG1 ─ FORMULA_0
              └─ :ARG2 ─ zero

``flow``: a row of symbols that is broken like text, for symbol layout trees; symbols above, below or within another
hang under it::

    x ─ + ─ y ─ =
    │a 2
    z
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pyterrier_mathamr._common.errors import ConfigError, require

Theme = Literal["light", "dark"]
"""The background of a picture."""

BETTER, WORSE = "#0072B2", "#D55E00"
"""Blue and vermilion of Okabe and Ito."""


class Paint(NamedTuple):
    """The colors of a kind of node: fill, border, text."""

    fill: str
    border: str
    text: str


@dataclass(frozen=True, slots=True)
class Palette:
    """The colors of a theme: of grounds, lines and text, and of each kind of node.

    ``panel`` lies behind a group, ``line`` is for edges and borders, ``quiet`` for roles and labels of edges, and
    ``virtual``, of virtual nodes and their edges, is the inverse of the ground.
    """

    ground: str
    panel: str
    line: str
    text: str
    quiet: str
    concept: Paint
    placeholder: Paint
    opt: Paint
    slt: Paint
    virtual: Paint


_PALETTES = {
    "light": Palette(
        ground="#ffffff",
        panel="#f5f6f8",
        line="#7d8894",
        text="#16191d",
        quiet="#545d68",
        concept=Paint("#ddeefa", "#0072B2", "#0b2a3f"),
        placeholder=Paint("#E69F00", "#8a5f00", "#1a1200"),
        opt=Paint("#d6f2e8", "#009E73", "#06332a"),
        slt=Paint("#f7e3ee", "#b0608c", "#45132f"),
        virtual=Paint("#2f3640", "#2f3640", "#ffffff"),
    ),
    "dark": Palette(
        ground="#14171b",
        panel="#1e2329",
        line="#6b7683",
        text="#eceff2",
        quiet="#a9b3be",
        concept=Paint("#0f3a57", "#56B4E9", "#e3f3fd"),
        placeholder=Paint("#E69F00", "#ffcf66", "#1a1200"),
        opt=Paint("#0a4235", "#2fc79c", "#dcfaf0"),
        slt=Paint("#54233f", "#e39ac2", "#fde8f3"),
        virtual=Paint("#e6eaee", "#e6eaee", "#14171b"),
    ),
}


def mixed(ground: str, color: str, share: float) -> str:
    """Mix a share of a color, 0 to 1, into a ground."""
    pairs = zip(_channels(ground), _channels(color), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def text_on(color: str) -> str:
    """Return black or white, whichever contrasts more with a color."""
    red, green, blue = ((channel / 255) ** 2.2 for channel in _channels(color))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "#ffffff"


def _channels(color: str) -> list[int]:
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


def palette(theme: Theme) -> Palette:
    if theme not in _PALETTES:
        raise ConfigError("theme", theme, "one of " + ", ".join(map(repr, get_args(Theme))))
    return _PALETTES[theme]


FONT_SIZE = 11
_SYMBOLS = 0x2070  # from here on a monospaced font may lack a character
_ADVANCE = 0.61  # of the font size: DejaVu Sans Mono, Menlo and Liberation Mono are between 0.600 and 0.602
_FONT = "'DejaVu Sans Mono', Menlo, 'Liberation Mono', Consolas, monospace"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # by XML 1.0, escaped or not


def picture_path(path: str | Path, endings: tuple[str, ...]) -> Path:
    """Check the name of a picture's file and create its folder."""
    path = Path(path)
    if path.suffix.lower() not in endings:
        raise ConfigError("path", str(path), f"a name that ends in {' or '.join(endings)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as SVG; notebooks show it.

    Attributes:
        svg: the whole file.
        width: in pixels.
        height: in pixels.
    """

    svg: str = field(repr=False)
    width: int
    height: int

    def save(self, path: str | Path) -> Path:
        """Write the picture and return its path.

        Args:
            path: the file, ``.svg``, or with the extra ``plots`` ``.png`` or ``.pdf``; its folder is created if
                necessary.

        Raises:
            ConfigError: the name has another ending.
            MissingExtraError: the form is not SVG, and CairoSVG is not installed.
        """
        path = picture_path(path, (".svg", ".png", ".pdf"))
        if path.suffix.lower() == ".svg":
            path.write_text(self.svg, encoding="utf-8")
            return path
        converter = require("cairosvg", "plots")
        if path.suffix.lower() == ".png":
            converter.svg2png(self.svg.encode(), write_to=str(path), scale=2)
        else:
            converter.svg2pdf(self.svg.encode(), write_to=str(path))
        return path

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg


class Outlines(NamedTuple):
    """A line of outlines, such as a formula, from the left end of its base line, in pixels.

    ``body`` has the SVG elements that use ``symbols``, the SVG path of each by a name that is the same everywhere.
    """

    text: str
    width: float
    ascent: float
    descent: float
    body: str
    symbols: dict[str, str]


class Canvas:
    """SVG elements in the order in which they are painted."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._symbols: dict[str, str] = {}

    def outlines(self, x: float, y: float, drawn: Outlines, color: str) -> None:
        """Paint outlines whose base line begins at ``x``, ``y``."""
        self._symbols |= drawn.symbols
        self._parts.append(
            f'<g class="outlines" transform="translate({x:.1f} {y:.1f})" fill="{color}" color="{color}">'
            f"<title>{xml_text(drawn.text)}</title>{drawn.body}</g>"
        )

    def chip(
        self, x: float, y: float, width: float, text: str, paint: Paint, title: str, *, marks: str, letter: str = ""
    ) -> None:
        words = marks.split()
        radius = 8 if "round" in words else 2
        dash = ' stroke-dasharray="3 2"' if "dashed" in words else ""
        weight = ' font-weight="bold"' if "strong" in words else ""
        # Two elements, since CairoSVG centers the pieces of one element by themselves.
        lead = text_width(f"{letter} ") if letter else 0.0
        before = (
            f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" font-size="9" fill="{paint.text}" opacity="0.75">'
            f"{xml_text(letter)}</text>"
        )
        self._parts.append(
            f'<g class="node {marks}"><title>{xml_text(title)}</title>'
            f'<rect x="{x:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16" rx="{radius}" fill="{paint.fill}"'
            f' stroke="{paint.border}"{dash}/>{before if letter else ""}'
            f'<text x="{x + (width + lead) / 2:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{paint.text}"{weight}>'
            f"{xml_text(text)}</text></g>"
        )

    def panel(
        self, x: float, y: float, width: float, height: float, fill: str, border: str, marks: str, *, radius: int = 6
    ) -> None:
        """Paint the background of a group; ``dashed`` among the marks changes its border."""
        dash = ' stroke-dasharray="4 3"' if "dashed" in marks.split() else ""
        self._parts.append(
            f'<rect class="{marks}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}"'
            f' fill="{fill}" stroke="{border}"{dash}/>'
        )

    def line(self, path: str, color: str, marks: str = "edge") -> None:
        self._parts.append(f'<path class="{marks}" d="{path}" fill="none" stroke="{color}" stroke-width="1.0"/>')

    def text(self, x: float, y: float, text: str, color: str, *, strong: bool = False, size: int = FONT_SIZE) -> None:
        """Write a line of text whose left end of the base line is at ``x``, ``y``."""
        weight = ' font-weight="bold"' if strong else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size}"{weight}>{xml_text(text)}</text>'
        )

    def picture(self, width: float, height: float, ground: str, title: str) -> Picture:
        across, down = int(width + 0.999), int(height + 0.999)
        symbols = "".join(f'<path id="{name}" d="{path}"/>' for name, path in self._symbols.items())
        defined = f"<defs>{symbols}</defs>" if symbols else ""
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" width="{across}" height="{down}"'
            f' font-family="{_FONT}" font-size="{FONT_SIZE}" role="img" xml:space="preserve">'
            f"<title>{xml_text(title)}</title>{defined}"
            f'<rect width="{across}" height="{down}" fill="{ground}"/>' + "".join(self._parts) + "</svg>\n"
        )
        return Picture(svg, across, down)


def xml_text(text: str) -> str:
    """Escape text for XML; characters that XML forbids become �."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def columns(text: str) -> int:
    """Return the maximum number of columns that a text occupies."""

    def width(sign: str) -> int:
        if unicodedata.combining(sign):
            return 0
        return 2 if ord(sign) >= _SYMBOLS or unicodedata.east_asian_width(sign) in "WF" else 1

    return sum(map(width, text))


def text_width(text: str, size: int = FONT_SIZE) -> float:
    """Compute the width of a line of text in pixels."""
    return columns(text) * size * _ADVANCE


def shortened(text: str, limit: int) -> str:
    """Cut a text to at most ``limit`` characters, with an ellipsis; white space becomes one blank."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


ROW = 21.0  # pixels from one row to the next
_PADDING, _GAP, _INDENT = 12.0, 22.0, 14.0
_NEXT = "n"


class TreeNode(NamedTuple):
    """A node to be placed and painted.

    Attributes:
        label: the shown text.
        parent: index of its parent, less than its own; -1 for the root, which comes first.
        role: the shown label of the edge from its parent.
        title: shown on demand.
        kind: the name of its colors in the palette.
        letter: shown small before the label.
        again: whether it only mentions a node.
    """

    label: str
    parent: int
    role: str
    title: str = ""
    kind: str = "concept"
    letter: str = ""
    again: bool = False

    @property
    def width(self) -> float:
        return text_width(f"{self.letter} {self.label}".strip()) + _PADDING


class Placed(NamedTuple):
    """The places of the nodes of a tree: their left borders, middles and widths, from the tree's upper left corner.

    ``lines`` has an SVG path for each edge, ``roles`` where the label of the edge to each node begins, on its base
    line, or ``None``.
    """

    x: list[float]
    y: list[float]
    widths: list[float]
    lines: list[tuple[float, ...]]
    roles: list[tuple[float, float] | None]
    width: float
    height: float


def spread(nodes: Sequence[TreeNode]) -> Placed:
    """Place each leaf in a separate row and each parent before its first child."""
    size = len(nodes)
    widths = [node.width for node in nodes]
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


def flow(nodes: Sequence[TreeNode], limit: float) -> Placed:
    """Place the symbols of a layout tree in rows that are broken at a maximal width."""
    size = len(nodes)
    widths = [node.width for node in nodes]
    children = _children(nodes)
    following = [next((child for child in below if nodes[child].role == _NEXT), -1) for below in children]
    hanging = [[child for child in below if child != after] for below, after in zip(children, following, strict=True)]
    room = [text_width(node.role) + _INDENT + 4 for node in nodes]  # before the symbols that hang under it
    x, y = [0.0] * size, [0.0] * size  # of a symbol within its row of symbols, then absolute
    wide, high = [0.0] * size, [0.0] * size  # of a row of symbols, kept at its first
    for first in reversed(range(size)):
        if first and following[nodes[first].parent] == first:
            continue
        across, down, deepest, widest = 0.0, 0.0, ROW, 0.0
        node = first
        while node >= 0:
            width = max([widths[node], *(wide[child] for child in hanging[node])])
            if across and across + width > limit:
                across, down, deepest = 0.0, down + deepest, ROW
            x[node], y[node] = across, down + ROW / 2
            across += width
            widest = max(widest, across)
            deepest = max(deepest, ROW + sum(high[child] for child in hanging[node]))
            across += 10
            node = following[node]
        wide[first], high[first] = widest + (room[first] if first else 0.0), down + deepest
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
    for node, after in enumerate(following):
        if after >= 0:
            end = x[node] + widths[node]
            goal = x[after] if y[after] == y[node] else end + 7  # a stub where the row is broken
            lines.append((end, y[node], goal, y[node]))
    return Placed(x, y, widths, lines, roles, wide[0], high[0])


def _children(nodes: Sequence[TreeNode]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in nodes]
    for child, node in enumerate(nodes):
        if node.parent >= 0:
            children[node.parent].append(child)
    return children


def _middle(row: int) -> float:
    return (row + 0.5) * ROW


def placed_tree(nodes: Sequence[TreeNode], limit: float | None = None) -> Placed:
    """Place a tree by ``spread``, or with a maximal width of its rows by ``flow``."""
    return spread(nodes) if limit is None else flow(nodes, limit)


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
