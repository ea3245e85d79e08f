r"""Formulas and texts with formulas for people: as HTML, and as lines of outlines for pictures.

::

    LaTeX ──formula_html──▶ MathML ──typeset──▶ outlines     ``ziamath`` draws in STIX Two Math, alike in every viewer

    number ␣ is ␣ of ␣ the ␣ form ␣ [n = 3x+r] .     pieces are words and formulas, with a blank before them or not
    └─────────────── width ────────────────────┘

User input is never passed on as HTML: the text of a ``MathPost`` is escaped, and its LaTeX converted, so a page can
insert the result.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import NamedTuple

import math_core
from lxml import etree

from pyterrier_mathamr._common.drawing import FONT_SIZE, Canvas, Outlines, Paint, shortened, text_on, text_width
from pyterrier_mathamr._common.running.worker import MEMORY, OverLimitError, Worker
from pyterrier_mathamr.formula import FormulaError
from pyterrier_mathamr.formula.located import leveled
from pyterrier_mathamr.formula.mathml import NOT_XML
from pyterrier_mathamr.formula.tex.converter import math_apart, to_mathml
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, latex_of_unicode, plain_text

_DISPLAY = re.compile(r"\\begin\{|\\\\|\\(?:int|sum|prod|lim|frac|binom)(?![A-Za-z])")
_NUMBERED = re.compile(r"\\(begin|end)\{(align|gather|equation|multline|alignat|flalign)\}")
_THREE_COLUMNS = re.compile(r"\\begin\{eqnarray\*?\}(.*?)\\end\{eqnarray\*?\}", re.DOTALL)
_MIDDLE = re.compile(r"&([^&]*)&")
_JOINT = re.compile(r'<span class="formula[^<>]*><math(?:(?!</math>).)*</math></span>[.,;:!?)\]}»”’…،؛؟。]+', re.DOTALL)
_ALIGNED = re.compile(r"text-align:\s*(left|right|center)")
_COLOR = re.compile(r"(?<![a-z-])color:\s*(#[0-9A-Fa-f]{3,8}|[a-z]+)")
_LONGEST_SHOWN = 5_000

_UNKNOWN = '<mrow class="tex"'  # a command that is shown as its source
_MARK = "Mulberry"  # a color that encodes the class of a part, which the converter cannot pass on otherwise


def formula_html(latex: str, *, display: bool = False, parts: Sequence[tuple[int, int]] = ()) -> str:
    """Render a formula as MathML, without style attributes, which a strict content security policy refuses.

    ``parts`` are ranges of the LaTeX that get the class ``matched``; those that are not sub-expressions are ignored.
    """
    try:
        return _formula_html(latex, display, tuple(parts))
    except FormulaError:  # not tried here, and not remembered
        return _as_code(latex)


@lru_cache(maxsize=1)
def _mark_color() -> str:
    shown = re.search(r'mathcolor="([^"]*)"', _formula_html(rf"\textcolor{{{_MARK}}}{{x}}", False))
    return shown[1] if shown else ""


def _as_code(latex: str) -> str:
    return f'<code class="tex">{escape(NOT_XML.sub(" ", latex))}</code>'


def _with_marks(latex: str, parts: Sequence[tuple[int, int]]) -> str:
    """Color some ranges of a formula, cell by cell."""
    pieces, at = list[str](), 0
    for start, end in parts:
        pieces.append(latex[at:start])
        cells = [""]
        for token, depth in leveled(latex[start:end]):
            if depth == 0 and token in ("&", r"\\"):
                cells += [token, ""]
            else:
                cells[-1] += token
        pieces += [rf"\textcolor{{{_MARK}}}{{{cell}}}" if cell.strip(" &\\\n") else cell for cell in cells]
        at = end
    return "".join([*pieces, latex[at:]])


@lru_cache(maxsize=4096)
def _formula_html(latex: str, display: bool, parts: tuple[tuple[int, int], ...] = ()) -> str:
    if parts:
        plain, marked = _formula_html(latex, display), _formula_html(_with_marks(latex, parts), display)
        color = _mark_color()
        is_whole = marked.startswith("<math") and marked.count(_UNKNOWN) == plain.count(_UNKNOWN)
        if not is_whole or not color or color in plain:
            return plain
        content = marked.partition(">")[2].replace(f'mathcolor="{color}"', 'class="matched"')
        return f"{plain.partition('>')[0]}>{content}"
    latex = NOT_XML.sub(" ", latex)
    try:
        if len(latex) > _LONGEST_SHOWN:
            raise FormulaError("the formula is too long to be shown", latex)
        source = _NUMBERED.sub(r"\\\1{\2*}", _THREE_COLUMNS.sub(_aligned, math_apart(latex_of_unicode(latex))))
        root = etree.fromstring(to_mathml(source).encode())
    except (FormulaError, math_core.LatexError, etree.XMLSyntaxError) as error:
        if isinstance(error, FormulaError) and not error.tried:
            raise
        return _as_code(latex)
    for node in root.iter():
        style = str(node.attrib.pop("style", ""))
        if (aligned := _ALIGNED.search(style)) is not None:
            node.set("class", f"align-{aligned[1]}")
        if (colored := _COLOR.search(style)) is not None:
            node.set("mathcolor", colored[1])
        for name in ("href", "actiontype", "src", "{http://www.w3.org/1999/xlink}href"):
            node.attrib.pop(name, "")
    for unknown in root.iter("{*}merror"):
        unknown.tag = unknown.tag.replace("merror", "mrow")
        unknown.set("class", "tex")
    root.set("display", "block" if display else "inline")
    root.set("alttext", latex)
    written: str = etree.tostring(root, encoding="unicode")
    return written


def _aligned(environment: re.Match[str]) -> str:
    """Write an ``eqnarray``, ``a &=& b``, as ``aligned``, ``a &= b``."""
    lines = (_MIDDLE.sub(r"&\1 ", line, count=1) for line in environment[1].split(r"\\"))
    return r"\begin{aligned}" + r"\\".join(lines) + r"\end{aligned}"


def joined(html: str) -> str:
    """Put a formula and the punctuation after it into one span, so that no line begins with the latter."""
    return _JOINT.sub(r'<span class="joined">\g<0></span>', html)


def inline_html(
    text: str,
    post: MathPost,
    *,
    mark: Callable[[int], str] | None = None,
    parts: Callable[[int], Sequence[tuple[int, int]]] | None = None,
) -> str:
    """Render text with placeholders of a post's formulas, without paragraphs; ``parts`` as of :func:`formula_html`."""
    pieces, at = [], 0
    for match in PLACEHOLDER.finditer(text):
        number = int(match[1])
        latex = post.formulas[number].latex
        display = match[0] == text.strip() and needs_space(latex)
        pieces.append(escape(text[at : match.start()]))
        ranges = parts(number) if parts else ()
        pieces.append(formula_span(latex, mark(number) if mark else "", display=display, parts=ranges))
        at = match.end()
    return joined("".join([*pieces, escape(text[at:])]))


def needs_space(latex: str) -> bool:
    """Return whether a formula has limits, fractions or lines, which need a block for full size."""
    return bool(_DISPLAY.search(latex))


def formula_span(latex: str, kind: str = "", *, display: bool = False, parts: Sequence[tuple[int, int]] = ()) -> str:
    """Render a formula in a span of class ``formula`` that knows its LaTeX; see :func:`formula_html`."""
    classes = f"formula {kind}".strip()
    html = formula_html(latex, display=display, parts=parts)
    return f'<span class="{classes}" data-latex="{escape(latex)}">{html}</span>'


def text_of(post: MathPost) -> str:
    """Write a post as one line of text with ``$latex$``."""
    return plain_text(post).replace("\n", " ")


_LONGEST_SET = 400  # characters of LaTeX; more take long, and too much space
_DEEPEST = 6  # levels of brackets and tables that grow with their content, a fifth of a second; each doubles the time
_FENCES = frozenset("()[]{}|‖⟨⟩⌈⌉⌊⌋")
_SMALLEST = 0.7  # the smallest scale at which a wide formula is still legible
_COMPACT = re.compile(r"(?<=[A-Za-z]) | (?=[A-Za-z])|\s+$")
_KEPT = ("x", "y", "width", "height", "d", "stroke-width")


def typeset(latex: str, size: int, room: float) -> Outlines | None:
    """Typeset a formula, smaller if it needs more room; ``None`` where it is better shown as LaTeX."""
    drawn = _outlines(latex, size)
    if drawn is None or drawn.width <= room:
        return drawn
    smaller = room / drawn.width
    if smaller < _SMALLEST:
        return None
    body = f'<g transform="scale({smaller:.3f})">{drawn.body}</g>'
    return drawn._replace(width=room, body=body, ascent=drawn.ascent * smaller, descent=drawn.descent * smaller)


@lru_cache(maxsize=4096)
def _outlines(latex: str, size: int) -> Outlines | None:
    mathml = formula_html(latex) if len(latex) <= _LONGEST_SET else ""
    if not mathml.startswith("<math") or _UNKNOWN in mathml:
        return None
    deepest, stack = 0, [(ET.fromstring(mathml), 0)]
    while stack:
        element, level = stack.pop()
        stretches = (
            child.tag == "mo" and child.get("stretchy") != "false" and child.text in _FENCES for child in element
        )
        level += any(stretches) + (element.tag == "mtable")
        deepest = max(deepest, level)
        stack += [(child, level) for child in element]
    if deepest > _DEEPEST:
        return None
    try:
        return _set(mathml, latex, size)
    except OverLimitError:
        return None


def outlines_of(mathml: str, latex: str, size: int) -> Outlines | None:
    """Typeset MathML; ``None`` where ``ziamath`` does not know it."""
    from ziamath.zmath import Math

    try:
        formula = Math(mathml, size=size)
        root = ET.Element("g")
        formula.drawon(root)
        box = formula.node.bbox
        body, symbols = _painted(root)
    except Exception:  # whatever its code raises for MathML that it does not know: the LaTeX is shown instead
        return None
    # Italic letters lean out of their boxes, so there is a pixel on each side.
    inside = f'<g transform="translate({1 - box.xmin:.2f} 0)">{body}</g>'
    return Outlines(latex, box.xmax - box.xmin + 2, max(box.ymax, 0.0), max(-box.ymin, 0.0), inside, symbols)


_set = Worker(outlines_of, seconds=5.0, memory=MEMORY)


def _painted(root: ET.Element) -> tuple[str, dict[str, str]]:
    """Write the elements in the color of their surroundings, each outline once."""
    outlines: dict[str, str] = {}
    scales: dict[str, tuple[float, float]] = {}  # top and height of the box of a symbol
    pieces = []
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag == "symbol":
            name, path = _name(element.attrib["id"]), element.find("path")
            _, top, _, height = map(float, element.attrib["viewBox"].split())
            scales[name] = (top, height)
            if path is not None:
                outlines[name] = _COMPACT.sub("", path.attrib["d"])
        elif element.tag == "use" and (name := _name(element.attrib["href"])) in outlines:  # else a blank
            x, y, high = (float(element.attrib[key]) for key in ("x", "y", "height"))
            top, height = scales[name]
            scale = high / height
            moved = f"translate({x:.2f} {y - top * scale:.2f}) scale({scale:.4g})"
            pieces.append(f'<use href="#{name}" transform="{moved}"/>')
        elif element.tag in ("rect", "path"):  # the line of a fraction, the frame of a box
            fill, stroke = element.get("fill", "black"), element.get("stroke", "none")
            if fill == "yellow":
                raise ValueError("the converter put its error mark into the MathML")
            kept = "".join(f' {name}="{element.attrib[name]}"' for name in _KEPT if name in element.attrib)
            kept += (' fill="none"' if fill == "none" else "") + (' stroke="currentColor"' if stroke != "none" else "")
            pieces.append(f"<{element.tag}{kept}/>")
        else:
            stack += reversed(element)
    return "".join(pieces), outlines


def _name(reference: str) -> str:
    """Name an outline by its font and number, so that pictures in one page may share it."""
    return "g-" + re.sub(r"\W", "_", reference.removeprefix("#"))


_HANGING = frozenset({",", ".", ";", ":", "?", "!", ")", ").", "),"})
_LEADING, _SLACK = 5.0, 2.0  # between lines; around a marked formula
_BLANK = text_width(" ")
_HANGS = 1.4 * _BLANK  # punctuation after a formula may leave the line, not the formula
_FORMULA_SIZE = FONT_SIZE + 3  # STIX Two Math looks smaller than a monospaced font of the same size


class Piece(NamedTuple):
    """A word or a formula."""

    text: str  # the word; the LaTeX of a formula
    drawn: Outlines | None  # the formula, ``None`` for a word or where it is shown as LaTeX
    formula: int  # its number, -1 for a word
    spaced: bool  # whether there is a blank before it
    ground: str = ""  # the color of a badge behind a word

    @property
    def width(self) -> float:
        return text_width(self.text) if self.drawn is None else self.drawn.width


class Line(NamedTuple):
    """Pieces with the left end of each, and how far they reach above and below the base line."""

    pieces: list[tuple[float, Piece]]
    ascent: float
    descent: float


class Paragraph(NamedTuple):
    """The lines of a text."""

    lines: list[Line]  # from top to bottom
    width: float  # of the longest
    height: float  # of all

    @property
    def first(self) -> float:
        """From the top to the base line of the first line."""
        return self.lines[0].ascent


class Badge(NamedTuple):
    """A short text on a color, which is written before a formula."""

    text: str
    color: str


def paragraph(
    text: str,
    latex: Sequence[str],
    width: float,
    *,
    lines: int = 50,
    badges: Mapping[int, Sequence[Badge]] | None = None,
) -> Paragraph:
    """Break a text into lines."""
    rows: list[list[tuple[float, Piece]]] = [[]]
    x = 0.0
    for piece in _pieces(text, latex, width, badges or {}):
        gap = _BLANK if piece.spaced and rows[-1] else 0.0
        hangs = not piece.spaced and piece.text in _HANGING
        if rows[-1] and x + gap + piece.width > width + (_HANGS if hangs else 0.0):
            if len(rows) == lines:  # ends with an ellipsis; if the line is full, it replaces the last pieces
                row = rows[-1]
                while row and row[-1][0] + row[-1][1].width + 2 * _BLANK > width:
                    row.pop()
                row.append((row[-1][0] + row[-1][1].width if row else 0.0, Piece("…", None, -1, False)))
                break
            rows.append([])
            x, gap = 0.0, 0.0
        rows[-1].append((x + gap, piece))
        x += gap + piece.width
    broken = []
    for row in rows:
        above, below = zip(*(_reach(piece) for _, piece in row), strict=True) if row else ((9.0,), (3.0,))
        broken.append(Line(row, max(above), max(below)))
    widest = max((at + piece.width for row in rows for at, piece in row), default=0.0)
    return Paragraph(broken, widest, sum(line.ascent + line.descent + _LEADING for line in broken))


def paint_paragraph(
    canvas: Canvas,
    written: Paragraph,
    x: float,
    top: float,
    color: str,
    *,
    strong: bool = False,
    fills: Mapping[int, str] | None = None,
) -> None:
    """Write a paragraph whose left upper corner is at ``x``, ``top``."""
    for line in written.lines:
        base = top + line.ascent
        for at, piece in line.pieces:
            if fills and piece.formula in fills:
                above, below = _reach(piece)
                canvas.panel(
                    x + at - 1, base - above - 1, piece.width + 2, above + below + 2, fills[piece.formula],
                    fills[piece.formula], f"part formula-{piece.formula}", radius=3,
                )  # fmt: skip
            if piece.ground:
                paint_badge(canvas, x + at, base, piece.text.strip(), piece.ground)
            elif piece.drawn is not None:
                canvas.outlines(x + at, base, piece.drawn, color)
            else:
                canvas.text(x + at, base, piece.text, color, strong=strong)
        top = base + line.descent + _LEADING


def paint_badge(canvas: Canvas, x: float, base: float, text: str, color: str) -> float:
    """Paint a badge on a base line and return its width."""
    wide = text_width(f" {text} ")
    paint = Paint(color, color, text_on(color))
    canvas.chip(x, base - 4, wide, text, paint, f"part {text}", marks="badge round strong")
    return wide


def _pieces(text: str, latex: Sequence[str], width: float, badges: Mapping[int, Sequence[Badge]]) -> list[Piece]:
    """Split a text at blanks and around its formulas."""
    pieces: list[Piece] = []
    at = 0
    for match in PLACEHOLDER.finditer(text):
        number = int(match[1])
        if number >= len(latex):
            continue
        pieces += _words(text[at : match.start()], width)
        drawn = typeset(latex[number], _FORMULA_SIZE, width)
        shown = latex[number] if drawn is not None else _fitting(latex[number], width)
        spaced = text[: match.start()][-1:].isspace()
        for badge in badges.get(number, ()):
            pieces.append(Piece(f" {badge.text} ", None, -1, spaced, badge.color))
            spaced = False
        pieces.append(Piece(shown, drawn, number, spaced))
        at = match.end()
    return pieces + _words(text[at:], width)


def _words(text: str, width: float) -> list[Piece]:
    words = [_fitting(word, width) for word in text.split()]
    return [Piece(word, None, -1, i > 0 or text[:1].isspace()) for i, word in enumerate(words)]


def _fitting(text: str, width: float) -> str:
    """Cut a text that is wider than a line."""
    return shortened(text, max(2, int(width / text_width("m")))) if text_width(text) > width else text


def _reach(piece: Piece) -> tuple[float, float]:
    """How far a piece reaches above and below the base line, at least as far as a word."""
    if piece.drawn is None:
        return 9.0, 3.0
    return max(9.0, piece.drawn.ascent + _SLACK), max(3.0, piece.drawn.descent + _SLACK)
