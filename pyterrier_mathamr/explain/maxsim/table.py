"""The numbers of a comparison: a column for each part of the query, a row for each part of the document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyterrier_mathamr._common.drawing import BETTER, WORSE, Canvas, Paint, Palette, mixed, text_on, text_width
from pyterrier_mathamr.formula.display.paragraphs import Paragraph, paint_paragraph, paragraph

from .comparison import Comparison, Term, rounded

if TYPE_CHECKING:
    from .drawing import Group

_CELL, _LABEL, _ROW = 54.0, 380.0, 22.0
_DIGITS = 3
_KEY = "A number is weight × cosine. The score is the sum of the best match of each column, which is framed."
_PRODUCT = "The last column is the product of the vectors of the two whole texts."


class _Column(NamedTuple):
    """A part of the query, or the product of the whole texts; the terms of all that have no column are one column."""

    term: Term | None
    product: bool
    contribution: float


def paint_table(
    canvas: Canvas,
    found: Comparison,
    groups: Mapping[int, Group],
    x: float,
    top: float,
    colors: Palette,
    parts: int,
) -> tuple[float, float]:
    """Paint the table and return its right and lower border."""
    columns = _columns(found, parts)
    rows = _rows(found, columns, parts)
    product = any(column.product for column in columns)
    for line in (_KEY, _PRODUCT) if product else (_KEY,):
        canvas.text(x, top, line, colors.quiet)
        top += 15
    labels = [_label(found, row) for row in rows]
    left = x + _LABEL
    for place, column in enumerate(columns):
        _header(canvas, column, groups, left + place * _CELL, top, colors)
    y = top + 2 * _ROW
    greatest = max((abs(_value(found, c, row)) for c in columns if c.term for row in rows), default=0.0) or 1.0
    for row, label in zip(rows, labels, strict=True):
        high = max(_ROW, label.height + 4)
        paint_paragraph(canvas, label, left - 12 - label.width, y + (high - label.height) / 2 + 2, colors.text)
        for place, column in enumerate(columns):
            if column.term is not None and (not column.product or column.term.document_row == row):
                color = groups[column.term.query_row].color if column.term.document_row == row else ""
                value = _value(found, column, row)
                _cell(canvas, left + place * _CELL, y, high, value, value / greatest, color, colors)
        y += high
    return _sum(canvas, columns, found, left, y + 6, colors)


def _columns(found: Comparison, parts: int) -> list[_Column]:
    """Choose the terms that contribute most, in the order of the query."""
    product = len(found.terms) - len(found.query)
    plain = found.terms[: len(found.query)]
    kept = sorted(sorted(plain, key=lambda term: -abs(term.contribution))[:parts], key=plain.index)
    columns = [_Column(term, False, term.contribution) for term in kept]
    rest = [term.contribution for term in plain if term not in kept]
    columns += [_Column(None, False, math.fsum(rest))] if rest else []
    return columns + [_Column(term, True, term.contribution) for term in found.terms[-product:] if product]


def _rows(found: Comparison, columns: Sequence[_Column], parts: int) -> list[int]:
    """Choose the parts of the document that are the match of a column, and then the most similar ones, in its order."""
    met = {column.term.document_row for column in columns if column.term is not None}
    by_cosine = sorted(range(len(found.document)), key=lambda row: -float(found.cosines[:, row].max()))
    others = [row for row in by_cosine if row not in met]
    return sorted([*met, *others[: max(0, parts - len(met))]])


def _value(found: Comparison, column: _Column, row: int) -> float:
    """Weight times cosine."""
    return column.term.weight * float(found.cosines[column.term.query_row, row]) if column.term else 0.0


def _label(found: Comparison, row: int) -> Paragraph:
    """Name a part of the document: its formula, or the begin of its sentence with formulas in place."""
    kind, label = found.document["kind"][row], found.document["label"][row]
    latex = found.document.loc[found.document["kind"] == "formula", "label"].tolist()
    text = f"FORMULA_{row}" if kind == "formula" else "the whole text" if kind == "document" else label
    return paragraph(text, latex, _LABEL - 24, lines=1)


def _header(canvas: Canvas, column: _Column, groups: Mapping[int, Group], x: float, y: float, colors: Palette) -> None:
    """Paint the number of a part of the query and its weight."""
    middle = x + _CELL / 2
    if column.term is None:
        _centered(canvas, middle, y + 12, "others", colors.quiet)
        return
    group = groups[column.term.query_row]
    name = f"{group.number} × {group.number}" if column.product else str(group.number)
    wide = text_width(name) + 14
    told = f"part {group.number} of the query"
    paint = Paint(group.color, group.color, text_on(group.color))
    canvas.chip(middle - wide / 2, y + 8, wide, name, paint, told, marks="column round strong")
    _centered(canvas, middle, y + 32, f"w {column.term.weight:.3g}", colors.quiet)


def _cell(
    canvas: Canvas, x: float, y: float, high: float, value: float, share: float, frame: str, colors: Palette
) -> None:
    """Paint a number on a color whose strength is its share of the greatest; framed if it is in the score."""
    fill = mixed(colors.panel, BETTER if value >= 0 else WORSE, 0.85 * min(1.0, abs(share)) ** 0.7)
    canvas.panel(x + 2, y + 2, _CELL - 4, high - 4, fill, "none", "cell best" if frame else "cell", radius=2)
    if frame:
        canvas.panel(x + 2, y + 2, _CELL - 4, high - 4, "none", colors.text, "frame outer", radius=2)
        canvas.panel(x + 3.5, y + 3.5, _CELL - 7, high - 7, "none", frame, "frame", radius=2)
    _centered(canvas, x + _CELL / 2, y + high / 2 + 4, f"{value:z.2f}", text_on(fill), strong=bool(frame))


def _sum(
    canvas: Canvas, columns: Sequence[_Column], found: Comparison, left: float, y: float, colors: Palette
) -> tuple[float, float]:
    """Write the terms, rounded so that what is shown adds up to the score that is shown."""
    values = rounded([column.contribution for column in columns], _DIGITS)
    name = "in the score"
    canvas.text(left - 12 - text_width(name), y + 14, name, colors.text, strong=True)
    for place, value in enumerate(values):
        _centered(canvas, left + place * _CELL + _CELL / 2, y + 14, f"{value:z.{_DIGITS}f}", colors.text, strong=True)
    right = left + len(columns) * _CELL
    canvas.line(f"M{left:.1f} {y:.1f}H{right:.1f}", colors.line, "rule")
    total = f"= {found.score:.{_DIGITS}f}"
    canvas.text(right + 8, y + 14, total, colors.text, strong=True)
    return right + 8 + text_width(total), y + 22


def _centered(canvas: Canvas, middle: float, y: float, text: str, color: str, *, strong: bool = False) -> None:
    canvas.text(middle - text_width(text) / 2, y, text, color, strong=strong)
