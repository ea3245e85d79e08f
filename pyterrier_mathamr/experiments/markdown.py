"""Tables as Markdown, to be read."""

from __future__ import annotations

import re

import pandas as pd

from pyterrier_mathamr.arqmath import SHORT_NAMES

_SHORT_NAMES = {**SHORT_NAMES, "RR@10": "MRR@10"}
_MARK = re.compile(r"(.+) (?:std|reject)")
_SMALLEST = 0.00005  # what would be rounded to 0.0000, such as a p-value, and is not 0
_GROUPED = 10_000  # whole numbers from here on have commas; years and seeds have none


def markdown_table(table: pd.DataFrame) -> str:
    """Write a table as Markdown: measures under the names that papers use, a star where a row differs.

    Numbers below 2, as measures are, have four places, others fewer; a standard deviation has those of its mean. A star
    stands where a significance test rejects that a system is like the one it was tested against.

    Args:
        table: any frame; its index is left out.
    """
    table = _with_stars(table)
    columns = [_short(str(name)) for name in table.columns]
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False, name=None)]
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [columns, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _with_stars(table: pd.DataFrame) -> pd.DataFrame:
    """Bring standard deviations and significance tests down to ``± 0.0012*`` beside the value."""
    marked = list(dict.fromkeys(match[1] for name in table.columns if (match := _MARK.fullmatch(str(name)))))
    others = [name for name in table.columns if not any(str(name).startswith(f"{measure} ") for measure in marked)]
    nothing: list[object] = [None] * len(table)
    result: pd.DataFrame = table[others].assign(
        **{
            measure: [
                _cell(value)
                + (f" ± {spread:,.{_places(value)}f}" if spread is not None and spread == spread else "")
                + "*" * (reject in (True, 1))
                for value, spread, reject in zip(
                    table[measure],
                    table.get(f"{measure} std", nothing),
                    table.get(f"{measure} reject", nothing),
                    strict=True,
                )
            ]
            for measure in marked
        }
    )
    return result


def _short(name: str) -> str:
    """Shorten a measure, alone or before more: ``Bpref(rel=2) p-value`` to ``Bpref p-value``."""
    for measure, short in _SHORT_NAMES.items():
        if name == measure or name.startswith(f"{measure} "):
            return short + name.removeprefix(measure)
    return name


def _cell(value: object) -> str:
    if isinstance(value, float):
        if 0 < value < _SMALLEST:
            return f"< {2 * _SMALLEST:.4f}"
        return "" if value != value else f"{value:,.{_places(value)}f}"
    if isinstance(value, int) and value >= _GROUPED:
        return f"{value:,}"
    return _short(str(value)).replace("|", "\\|")


def _places(value: float) -> int:
    return 4 if abs(value) < 2 else 2 if abs(value) < 10 else 1
