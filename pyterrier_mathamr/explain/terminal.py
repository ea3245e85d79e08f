"""An explanation as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyterrier_mathamr._common.drawing import columns, shortened

from .explanation import Explanation, Part

SHOWN = 16
"""Parts in a table; the rest is one line."""

_WIDTH, _BAR = 100, 10


def table_of(explanation: Explanation, shown: int = SHOWN, width: int = _WIDTH) -> str:
    """Write the score, then each part with its contribution as number and bar."""
    parts = explanation.rows
    digits = decimals([explanation.score, *(part.contribution for part in parts)])
    lines = [f"score of {explanation.docno!r}: {explanation.score:.{digits}f}"]
    kept, rest = split(parts, shown)
    numbers = [f"{part.contribution:.{digits}f}" for part in kept] + [f"{rest:.{digits}f}"]
    names = [f"{part.system} {part.part}" for part in kept]
    wide, long = max(map(len, numbers)), max(map(len, names), default=0)
    left = max(24, width - wide - long - _BAR - 6)
    greatest = max((abs(part.contribution) for part in kept), default=0.0) or 1.0
    for part, number, name in zip(kept, numbers[:-1], names, strict=True):
        bar = _bar(abs(part.contribution) / greatest)
        lines.append(f"{number:>{wide}}  {bar:<{_BAR}}  {name:<{long}}  {_texts(part, left)}".rstrip())
    if len(parts) > len(kept):
        lines.append(f"{numbers[-1]:>{wide}}  {'':<{_BAR}}  {len(parts) - len(kept)} further parts")
    return "\n".join(lines)


def split(parts: Sequence[Part], count: int) -> tuple[list[Part], float]:
    """Return the parts with the greatest contributions, positive or negative, and the sum of all others."""
    order = sorted(range(len(parts)), key=lambda row: -abs(parts[row].contribution))
    kept = set(order[:count])
    others = (part.contribution for row, part in enumerate(parts) if row not in kept)
    return [part for row, part in enumerate(parts) if row in kept], math.fsum(others)


def decimals(numbers: Sequence[float]) -> int:
    """Count the decimals with which the greatest number has three digits; at least two, at most eight."""
    greatest = max(map(abs, numbers), default=0.0)
    return min(max(2, 2 - math.floor(math.log10(greatest))), 8) if greatest else 2


def _bar(share: float) -> str:
    """Draw a share of the longest bar, in eighths of a character."""
    eighths = round(8 * _BAR * share)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _texts(part: Part, width: int) -> str:
    """The texts of a part: what of the query, and what of the document it met."""
    texts = [text for text in (part.query, part.document) if text]
    if not texts or texts[:1] == texts[1:]:
        return shortened(texts[0], width) if texts else ""
    each = (width - 3) // len(texts)
    first = shortened(texts[0], each)
    return " ↔ ".join([first, *(shortened(text, width - 3 - columns(first)) for text in texts[1:])])
