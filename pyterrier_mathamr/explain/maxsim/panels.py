"""A text in a panel: its sentences with typeset formulas, numbers and colors beside the parts that are marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from pyterrier_mathamr._common.drawing import Canvas, Palette, mixed, shortened, text_width
from pyterrier_mathamr.formula.display.paragraphs import Badge, Paragraph, paint_badge, paint_paragraph, paragraph
from pyterrier_mathamr.posts import PLACEHOLDER, placeholder

_PAD, _HEAD, _GUTTER, _BETWEEN = 10.0, 28.0, 12.0, 6.0
_SENTENCES = 14  # a longer text is shown without the sentences in which nothing is marked


class Entry(NamedTuple):
    """A sentence, or a line for some that are left out: its text and the badges of the whole sentence."""

    text: Paragraph
    badges: Sequence[Badge]
    marked: bool


class Panel(NamedTuple):
    """A text in a panel.

    Attributes:
        title: above it.
        badges: of the whole text.
        entries: its sentences.
        fills: the color of each marked formula.
        height: in pixels.
    """

    title: str
    badges: Sequence[Badge]
    entries: Sequence[Entry]
    fills: Mapping[int, str]
    height: float


def measured_panel(title: str, parts: pd.DataFrame, marks: Mapping[int, Sequence[Badge]], width: float) -> Panel:
    """Measure a panel."""
    latex = parts.loc[parts["kind"] == "formula", "label"].tolist()
    sentences = parts.loc[parts["kind"] == "sentence", ["row", "label"]].itertuples(index=False, name=None)
    badges = {row: found for row, found in marks.items() if row < len(latex)}
    texts = [(text, marks.get(row, [])) for row, text in sentences]
    written = {int(match[1]) for text, _ in texts for match in PLACEHOLDER.finditer(text)}
    texts += [(placeholder(row), []) for row in range(len(latex)) if row not in written]
    room = width - 2 * _PAD - _GUTTER
    entries: list[Entry] = []
    hidden = 0
    for text, found in texts:
        marked = bool(found) or any(int(match[1]) in badges for match in PLACEHOLDER.finditer(text))
        if not marked and len(texts) > _SENTENCES:
            hidden += 1
            continue
        entries += _left_out(hidden)
        hidden = 0
        lead = sum(text_width(f" {badge.text} ") + 3 for badge in found)
        entries.append(Entry(paragraph(text, latex, room - lead, badges=badges), found, marked))
    entries += _left_out(hidden)
    whole = marks.get(len(parts) - 1, []) if len(parts) and parts["kind"].iloc[-1] == "document" else []
    height = _HEAD + sum(entry.text.height + _BETWEEN for entry in entries) + _PAD
    return Panel(title, whole, entries, {row: found[0].color for row, found in badges.items() if found}, height)


def _left_out(count: int) -> list[Entry]:
    text = f"… {count} sentence{'' if count == 1 else 's'} without a match …"
    return [Entry(paragraph(text, (), 400.0), (), False)] if count else []


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
