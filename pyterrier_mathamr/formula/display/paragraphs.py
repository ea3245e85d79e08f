"""Sentences with their formulas in place, broken into lines of a known width.

::

    number ␣ is ␣ of ␣ the ␣ form ␣ [n = 3x+r] .     pieces are words and formulas, with a blank before them or not
    └─────────────── width ────────────────────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyterrier_mathamr._common.drawing import FONT_SIZE, Canvas, Outlines, Paint, shortened, text_on, text_width
from pyterrier_mathamr.posts import PLACEHOLDER

from .typesetting import typeset

_HANGING = frozenset({",", ".", ";", ":", "?", "!", ")", ").", "),"})
_LEADING, _SLACK = 5.0, 2.0  # between lines; around a marked formula
_BLANK = text_width(" ")
_HANGS = 1.4 * _BLANK  # punctuation after a formula may leave the line, not the formula
_FORMULA_SIZE = FONT_SIZE + 3  # STIX Two Math is small beside a monospaced font


class Piece(NamedTuple):
    """A word or a formula.

    Attributes:
        text: the word; the LaTeX of a formula.
        drawn: the formula, ``None`` for a word or where it is shown as LaTeX.
        formula: its number, -1 for a word.
        spaced: whether there is a blank before it.
        ground: the color of a badge behind a word.
    """

    text: str
    drawn: Outlines | None
    formula: int
    spaced: bool
    ground: str = ""

    @property
    def width(self) -> float:
        """In pixels."""
        return text_width(self.text) if self.drawn is None else self.drawn.width


class Line(NamedTuple):
    """Pieces with the left end of each, and how far they reach above and below the base line."""

    pieces: list[tuple[float, Piece]]
    ascent: float
    descent: float


class Paragraph(NamedTuple):
    """The lines of a text.

    Attributes:
        lines: from top to bottom.
        width: of the longest.
        height: of all.
    """

    lines: list[Line]
    width: float
    height: float

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
            if len(rows) == lines:
                _end(rows[-1], width)
                break
            rows.append([])
            x, gap = 0.0, 0.0
        rows[-1].append((x + gap, piece))
        x += gap + piece.width
    found = [_line(row) for row in rows]
    widest = max((at + piece.width for row in rows for at, piece in row), default=0.0)
    return Paragraph(found, widest, sum(line.ascent + line.descent + _LEADING for line in found))


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


def _end(row: list[tuple[float, Piece]], width: float) -> None:
    """End the last line with an ellipsis, in place of its last pieces where it is full."""
    while row and row[-1][0] + row[-1][1].width + 2 * _BLANK > width:
        row.pop()
    x = row[-1][0] + row[-1][1].width if row else 0.0
    row.append((x, Piece("…", None, -1, False)))


def _line(row: Sequence[tuple[float, Piece]]) -> Line:
    reaches = [_reach(piece) for _, piece in row]
    return Line(list(row), max((r[0] for r in reaches), default=9.0), max((r[1] for r in reaches), default=3.0))


def _reach(piece: Piece) -> tuple[float, float]:
    """How far a piece reaches above and below the base line, at least as far as a word."""
    if piece.drawn is None:
        return 9.0, 3.0
    return max(9.0, piece.drawn.ascent + _SLACK), max(3.0, piece.drawn.descent + _SLACK)
