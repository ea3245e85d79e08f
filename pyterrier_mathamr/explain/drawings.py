"""The picture of a comparison: the two texts, each part of the query and its match in one color; then the numbers.

::

    ┌ query ────────────────────────┐ ┌ document ─────────────────────┐
    │ ① Why is [② x² ≥ 0] ?         │ │ ① A square [② a²] is positive.│
    └───────────────────────────────┘ └───────────────────────────────┘
                                      ①     ②     ③    ③ × ③
             A square a² is positive │.31│ │.12│ │.20│               a number is weight × cosine;
                                  a² │.22│ │.45│ │.18│               framed: the best match of a column
                     the whole text  │.17│ │.14│ │.11│  │.80│
                       in the score   .31 + .45 + .20 +  .80 = 1.76
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.drawing import (
    BETTER,
    WORSE,
    Canvas,
    Paint,
    Palette,
    Theme,
    mixed,
    palette,
    shortened,
    text_on,
    text_width,
)
from pyterrier_mathamr._common.drawing import Picture as Picture
from pyterrier_mathamr.formula.display.drawing import draw_formula as draw_formula
from pyterrier_mathamr.formula.display.typesetting import Badge, Paragraph, paint_badge, paint_paragraph, paragraph
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.graph.mathamr import draw_graph as draw_graph
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, placeholder

from .explanation import HUES, ColorGroup
from .maxsim import Embeddings, Term, maxsim_terms, misfit, similarities

MARGIN, _BETWEEN = 14.0, 14.0
_PANEL = 560.0
_GREY = "#b9c0c8"


def draw_maxsim(
    query_graph: MathAMRGraph,
    query_embs: Embeddings,
    doc_graph: MathAMRGraph,
    doc_embs: Embeddings,
    *,
    query_weights: npt.ArrayLike | None = None,
    query_document_weight: float | None = None,
    query_post: MathPost | None = None,
    doc_post: MathPost | None = None,
    theme: Theme = "light",
    parts: int = 16,
) -> Picture:
    """Draw the parts of a document's score: both texts, and a table of weighted cosines (MathAMR+, Figure 4.1).

    Args:
        query_graph: graph of the query.
        query_embs: float32 ``[q, d]``, unit rows: formulas, sentences, document.
        doc_graph: graph of the document.
        doc_embs: float32 ``[n, d]``, unit rows of the document.
        query_weights: float ``[q]``, the weight of each row of the query, as in an encoded query; 1 by default.
        query_document_weight: the weight of the product of the two document vectors, added to MaxSim.
        query_post: the query's text and LaTeX, if its graph lacks them.
        doc_post: the document's text and LaTeX, likewise.
        theme: ``light`` or ``dark`` background.
        parts: maximum rows and columns of the table; further parts of the query are added up in one column.

    Returns:
        The picture. The numbers in its last row add up to the score.

    Raises:
        ExplainError: the vectors do not belong to the graphs, their widths or the number of weights differ, or one of
            a post has no vector.
        ConfigError: there is no such theme.

    Example::

        query, document = graph_store.get_many(graph_store.ids()[:2])
        vectors = model.encode([query, document])
        explain.draw_maxsim(query, vectors[0], document, vectors[1]).save('maxsim.svg')
    """
    table = similarities(query_graph, query_embs, doc_graph, doc_embs, query_post=query_post, doc_post=doc_post)
    cosines, names = table.to_numpy(), (query_graph.id, doc_graph.id)
    for post, count in zip(names, cosines.shape, strict=True):
        if not count:
            raise misfit(post, "it has no vectors")
    weights = None if query_weights is None else np.asarray(query_weights, dtype=np.float64)
    if weights is not None and weights.shape != (len(cosines),):
        raise misfit(query_graph.id, f"weights of shape {weights.shape} for {len(cosines)} rows")
    terms = maxsim_terms(cosines, weights, query_document_weight)
    query, document = table.index.to_frame(index=False), table.columns.to_frame(index=False)
    score = math.fsum(term.contribution for term in terms)
    canvas, colors, groups = Canvas(), palette(theme), groups_of(terms)
    title = f"{names[0] or 'query'} and {names[1] or 'document'}: score {score:.3f}"
    canvas.text(MARGIN, 26, title, colors.text, strong=True, size=14)
    badges = {row: Badge(str(group.number), group.color) for row, group in groups.items()}
    asked = {row: [badge] for row, badge in badges.items()}
    matched: dict[int, list[Badge]] = {}
    for term in sorted(terms, key=lambda term: groups[term.query_row].number):
        of_match = matched.setdefault(term.document_row, [])
        if badges[term.query_row] not in of_match:
            of_match.append(badges[term.query_row])
    right = MARGIN + _PANEL + _BETWEEN
    panels = (
        measured_panel(f"query {names[0]}".strip(), query, asked, _PANEL),
        measured_panel(f"document {names[1]}".strip(), document, matched, _PANEL),
    )
    height = max(panel.height for panel in panels)
    for panel, x in zip(panels, (MARGIN, right), strict=True):
        paint_panel(canvas, panel, x, 40.0, _PANEL, height, colors)
    width, bottom = paint_table(canvas, terms, cosines, document, groups, MARGIN, 64.0 + height, colors, parts)
    return canvas.picture(max(width, right + _PANEL) + MARGIN, bottom + MARGIN, colors.ground, title)


def groups_of(terms: Sequence[Term]) -> Mapping[int, ColorGroup]:
    """Number the rows of the query by contribution; the first have distinct colors, the others are gray."""
    totals: dict[int, float] = {}
    for term in terms:
        totals[term.query_row] = totals.get(term.query_row, 0.0) + term.contribution
    ordered = sorted(totals, key=lambda row: -totals[row])
    return {row: ColorGroup(i + 1, HUES[i] if i < len(HUES) else _GREY) for i, row in enumerate(ordered)}


_PAD, _HEAD, _GUTTER, _BETWEEN = 10.0, 28.0, 12.0, 6.0
_SENTENCES = 14  # in a longer text, sentences without marks are omitted


class DrawnEntry(NamedTuple):
    """A sentence, or a line for some that are left out: its text and the badges of the whole sentence."""

    text: Paragraph
    badges: Sequence[Badge]
    marked: bool


class Panel(NamedTuple):
    """A text in a panel: its title, the badges of the whole, its sentences, and the color of each marked formula."""

    title: str
    badges: Sequence[Badge]
    entries: Sequence[DrawnEntry]
    fills: Mapping[int, str]
    height: float  # in pixels


def measured_panel(title: str, parts: pd.DataFrame, marks: Mapping[int, Sequence[Badge]], width: float) -> Panel:
    latex = parts.loc[parts["kind"] == "formula", "label"].tolist()
    sentences = parts.loc[parts["kind"] == "sentence", ["row", "label"]].itertuples(index=False, name=None)
    badges = {row: of_formula for row, of_formula in marks.items() if row < len(latex)}
    texts = [(text, marks.get(row, [])) for row, text in sentences]
    written = {int(match[1]) for text, _ in texts for match in PLACEHOLDER.finditer(text)}
    texts += [(placeholder(row), []) for row in range(len(latex)) if row not in written]
    room = width - 2 * _PAD - _GUTTER
    entries: list[DrawnEntry] = []
    hidden = 0
    for text, of_sentence in texts:
        marked = bool(of_sentence) or any(int(match[1]) in badges for match in PLACEHOLDER.finditer(text))
        if not marked and len(texts) > _SENTENCES:
            hidden += 1
            continue
        entries += _left_out(hidden)
        hidden = 0
        lead = sum(text_width(f" {badge.text} ") + 3 for badge in of_sentence)
        entries.append(DrawnEntry(paragraph(text, latex, room - lead, badges=badges), of_sentence, marked))
    entries += _left_out(hidden)
    whole = marks.get(len(parts) - 1, []) if len(parts) and parts["kind"].iloc[-1] == "document" else []
    height = _HEAD + sum(entry.text.height + _BETWEEN for entry in entries) + _PAD
    fills = {row: of_formula[0].color for row, of_formula in badges.items() if of_formula}
    return Panel(title, whole, entries, fills, height)


def _left_out(count: int) -> list[DrawnEntry]:
    text = f"… {count} sentence{'' if count == 1 else 's'} without a match …"
    return [DrawnEntry(paragraph(text, (), 400.0), (), False)] if count else []


def paint_panel(
    canvas: Canvas, panel: Panel, x: float, top: float, width: float, height: float, colors: Palette
) -> None:
    """Paint a panel whose left upper corner is at ``x``, ``top``."""
    canvas.panel(x, top, width, height, colors.panel, colors.panel, "text-panel")
    at = x + _PAD
    for badge in panel.badges:
        at += paint_badge(canvas, at, top + 18, badge.text, badge.color) + 3
    room = int((x + width - _PAD - at) / text_width("m"))
    canvas.text(at, top + 18, shortened(panel.title, room), colors.text, strong=True)
    # Mixed, not translucent: CairoSVG paints translucent colors as full ones.
    fills = {row: mixed(colors.panel, color, 0.35) for row, color in panel.fills.items()}
    y = top + _HEAD
    for entry in panel.entries:
        at = x + _PAD + _GUTTER
        if entry.badges:
            canvas.panel(x + _PAD, y - 1, 4, entry.text.height - 2, entry.badges[0].color, "none", "bar", radius=1)
        for badge in entry.badges:
            at += paint_badge(canvas, at, y + entry.text.first, badge.text, badge.color) + 3
        color = colors.text if entry.marked else colors.quiet
        paint_paragraph(canvas, entry.text, at, y, color, fills=fills)
        y += entry.text.height + _BETWEEN


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
    terms: Sequence[Term],
    cosines: npt.NDArray[np.float64],
    document: pd.DataFrame,
    groups: Mapping[int, ColorGroup],
    x: float,
    top: float,
    colors: Palette,
    parts: int,
) -> tuple[float, float]:
    """Paint the table and return its right and lower border."""
    columns = _columns(terms, len(cosines), parts)
    # Rows are the matches of the columns, and then the most similar parts of the document, in its order.
    matched = {column.term.document_row for column in columns if column.term is not None}
    by_cosine = sorted(range(len(document)), key=lambda row: -float(cosines[:, row].max()))
    others = [row for row in by_cosine if row not in matched]
    rows = sorted([*matched, *others[: max(0, parts - len(matched))]])
    for line in (_KEY, _PRODUCT) if any(column.product for column in columns) else (_KEY,):
        canvas.text(x, top, line, colors.quiet)
        top += 15
    left = x + _LABEL
    for place, column in enumerate(columns):
        _header(canvas, column, groups, left + place * _CELL, top, colors)

    def value(term: Term, row: int) -> float:
        return term.weight * float(cosines[term.query_row, row])

    y = top + 2 * _ROW
    greatest = max((abs(value(column.term, row)) for column in columns if column.term for row in rows), default=0.0)
    kinds, names = document["kind"], document["label"]
    latex = names[kinds == "formula"].tolist()
    for row in rows:
        text = {"formula": f"FORMULA_{row}", "document": "the whole text"}.get(kinds[row], names[row])
        label = paragraph(text, latex, _LABEL - 24, lines=1)
        high = max(_ROW, label.height + 4)
        paint_paragraph(canvas, label, left - 12 - label.width, y + (high - label.height) / 2 + 2, colors.text)
        for place, (term, product, _) in enumerate(columns):
            if term is not None and (not product or term.document_row == row):
                color = groups[term.query_row].color if term.document_row == row else ""
                number = value(term, row)
                _cell(canvas, left + place * _CELL, y, high, number, number / (greatest or 1.0), color, colors)
        y += high
    return _sum(canvas, columns, math.fsum(term.contribution for term in terms), left, y + 6, colors)


def _columns(terms: Sequence[Term], rows: int, parts: int) -> list[_Column]:
    """Choose the terms that contribute most, in the order of the query's rows."""
    plain, products = terms[:rows], terms[rows:]
    kept = sorted(sorted(plain, key=lambda term: -abs(term.contribution))[:parts], key=plain.index)
    columns = [_Column(term, False, term.contribution) for term in kept]
    if rest := [term.contribution for term in plain if term not in kept]:
        columns.append(_Column(None, False, math.fsum(rest)))
    return columns + [_Column(term, True, term.contribution) for term in products]


def _header(
    canvas: Canvas, column: _Column, groups: Mapping[int, ColorGroup], x: float, y: float, colors: Palette
) -> None:
    """Paint the number of a part of the query and its weight."""
    middle = x + _CELL / 2
    if column.term is None:
        _centered(canvas, middle, y + 12, "others", colors.quiet)
        return
    group = groups[column.term.query_row]
    name = f"{group.number} × {group.number}" if column.product else str(group.number)
    wide = text_width(name) + 14
    note = f"part {group.number} of the query"
    paint = Paint(group.color, group.color, text_on(group.color))
    canvas.chip(middle - wide / 2, y + 8, wide, name, paint, note, marks="column round strong")
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
    canvas: Canvas, columns: Sequence[_Column], score: float, left: float, y: float, colors: Palette
) -> tuple[float, float]:
    """Write the terms, rounded so that they add up to the displayed score."""
    values = rounded([column.contribution for column in columns], _DIGITS)
    name = "in the score"
    canvas.text(left - 12 - text_width(name), y + 14, name, colors.text, strong=True)
    for place, value in enumerate(values):
        _centered(canvas, left + place * _CELL + _CELL / 2, y + 14, f"{value:z.{_DIGITS}f}", colors.text, strong=True)
    right = left + len(columns) * _CELL
    canvas.line(f"M{left:.1f} {y:.1f}H{right:.1f}", colors.line, "rule")
    total = f"= {score:.{_DIGITS}f}"
    canvas.text(right + 8, y + 14, total, colors.text, strong=True)
    return right + 8 + text_width(total), y + 22


def _centered(canvas: Canvas, middle: float, y: float, text: str, color: str, *, strong: bool = False) -> None:
    canvas.text(middle - text_width(text) / 2, y, text, color, strong=strong)


def rounded(values: Sequence[float], digits: int) -> list[float]:
    """Round so that the parts add up to the rounded total, by the largest-remainder method."""
    unit = 10.0**-digits
    parts = [math.floor(value / unit) for value in values]
    missing = round(round(math.fsum(values), digits) / unit) - sum(parts)
    order = sorted(range(len(values)), key=lambda i: parts[i] - values[i] / unit)
    for i in order[:missing]:
        parts[i] += 1
    return [round(part * unit, digits) for part in parts]
