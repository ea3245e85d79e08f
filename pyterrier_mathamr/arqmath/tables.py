"""Tables of measures as Markdown, such as ``pt.Experiment`` returns."""

from __future__ import annotations

import re

import pandas as pd

from .measures import SHORT_NAMES, TASK3_MEASURES

PAPER_NAMES = {**SHORT_NAMES, "RR@10": "MRR@10", str(TASK3_MEASURES[1]): "P'@1"}
"""The names in papers of the measures of all tasks."""

_MARK = re.compile(r"(.+) (?:std|error|reject)")
_SMALLEST = 0.00005  # a smaller number, such as a p-value, would be rounded to 0.0000 without being 0
_GROUPED = 10_000  # whole numbers from here on have commas; years and seeds have none


def markdown_table(table: pd.DataFrame) -> str:
    """Write a table as Markdown: measures under the names that papers use, a star where a row differs significantly.

    Numbers below 2, as measures are, have four decimals, others fewer; a standard deviation has as many as its mean.
    The measures of ARQMath come in the order of ``TASK1_MEASURES``, whatever order ``pt.Experiment`` gave them.

    Args:
        table: any frame; its index is left out.
    """
    table = _with_stars(_in_order(table))
    columns = [_short(str(name)) for name in table.columns]
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False, name=None)]
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [columns, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Sort the columns of ARQMath's measures among themselves; other columns stay where they are."""
    found = [name for name in table.columns if name in PAPER_NAMES]
    ordered = iter(sorted(found, key=list(PAPER_NAMES).index))
    result: pd.DataFrame = table[[next(ordered) if name in found else name for name in table.columns]]
    return result


def _with_stars(table: pd.DataFrame) -> pd.DataFrame:
    """Merge standard deviations or errors and significance tests into the value: ``0.5123 ± 0.0012*``."""
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
                    table.get(f"{measure} error", table.get(f"{measure} std", nothing)),
                    table.get(f"{measure} reject", nothing),
                    strict=True,
                )
            ]
            for measure in marked
        }
    )
    return result


def _short(name: str) -> str:
    """Shorten a measure, with or without a suffix: ``Bpref(rel=2) p-value`` to ``Bpref p-value``."""
    for measure, short in PAPER_NAMES.items():
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
