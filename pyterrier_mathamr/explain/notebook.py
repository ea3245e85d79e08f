"""An explanation as HTML for a notebook: two texts side by side, then each part as a bar with its number.

Styles are inline and colors translucent: a notebook may remove style sheets, and its ground is light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from pyterrier_mathamr._common.drawing import shortened
from pyterrier_mathamr.formula.display.rendering import formula_html

from .colors import FORMULAS, Group, Key, group_of, groups_of, inline, texts_of
from .explanation import Explanation, Part, Reading
from .terminal import decimals, split

SHOWN = 24
"""Parts in a table; the rest is one line."""

_BAR, _NO_GROUP = 120, "#8a8f98"
_LONGEST = 160
_CELL = "padding:.15em .6em;text-align:left;vertical-align:top"
_NUMBER = "padding:.15em .6em;text-align:right;vertical-align:top;white-space:nowrap;font-variant-numeric:tabular-nums"
_TEXT = "flex:1 1 20em;min-width:0;max-height:26em;overflow:auto;line-height:1.6"


def html_of(explanation: Explanation) -> str:
    """Write an explanation as HTML of inline styles, without script, style sheet or anything from elsewhere."""
    parts = explanation.rows
    digits = decimals([explanation.score, *(part.contribution for part in parts)])
    texts = "".join(f'<div style="{_TEXT}">{text}</div>' for text in texts_of(explanation) if text)
    head = f"<p><b>{escape(explanation.docno)}</b> has score <b>{explanation.score:.{digits}f}</b></p>"
    both = f'<div style="display:flex;flex-wrap:wrap;gap:0 2em">{texts}</div>' if texts else ""
    return f"<div>{head}{both}{_table(explanation, parts, digits)}</div>" if parts else f"<div>{head}{both}</div>"


def _table(explanation: Explanation, parts: Sequence[Part], digits: int) -> str:
    kept, rest = split(parts, SHOWN)
    groups = groups_of(parts)
    greatest = max((abs(part.contribution) for part in kept), default=0.0) or 1.0
    heads = ("", "contribution", "", "part", "query", "document", "similarity × weight")
    rows = ["".join(f'<th style="{_CELL}">{name}</th>' for name in heads)]
    rows += [_row(explanation, part, groups, greatest, digits) for part in kept]
    if len(parts) > len(kept):
        others = f'<td></td><td style="{_CELL}" colspan="4">{len(parts) - len(kept)} further parts</td>'
        rows.append(f'<td></td><td style="{_NUMBER}">{rest:.{digits}f}</td>{others}')
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f'<table style="margin-top:.8em;border-collapse:collapse;font-size:inherit">{body}</table>'
    return f'<div style="overflow-x:auto">{table}</div>'


def _row(
    explanation: Explanation,
    part: Part,
    groups: Mapping[Key, Group],
    greatest: float,
    digits: int,
) -> str:
    group = group_of(part, groups)
    color, width = group.color if group else _NO_GROUP, round(_BAR * abs(part.contribution) / greatest)
    ground = color if part.contribution >= 0 else "none"  # a negative part is the outline of a bar
    box = f"width:{width}px;height:.8em;margin-top:.35em;box-sizing:border-box"
    bar = f'<div style="{box};background:{ground};border:1px solid {color}"></div>'
    product = f"{part.similarity:.3f} × {part.weight:.3g}" if math.isfinite(part.similarity) else ""
    cells = (
        (_CELL, group.badge if group else ""),
        (_NUMBER, f"{part.contribution:.{digits}f}"),
        (f"{_CELL};min-width:{_BAR}px", bar),
        (f"{_CELL};white-space:nowrap", f"{escape(part.system)}<br><i>{escape(part.part)}</i>"),
        (_CELL, _text(part.part, part.query, part.query_row, explanation.query)),
        (_CELL, _text(part.document_part or part.part, part.document, part.document_row, explanation.document)),
        (_NUMBER, product),
    )
    return "".join(f'<td style="{style}">{content}</td>' for style, content in cells)


def _text(kind: str, text: str, row: int, reading: Reading | None) -> str:
    """Write the text of a part: a formula, a sentence with its formulas, or that it is the whole text."""
    if kind == "document":
        return "<i>the whole text</i>"
    if kind in FORMULAS and text:
        return formula_html(text)
    if kind == "sentence" and reading is not None:
        place = row - len(reading.post.formulas)
        if 0 <= place < len(reading.sentences) and len(reading.sentences[place]) <= _LONGEST:
            return inline(reading.sentences[place], reading)
    return escape(shortened(text, _LONGEST))
