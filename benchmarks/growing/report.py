"""The results as a table, the exponents of growth, and the same as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .parts import PARTS
from .running import Result

QUANTITIES = {
    "cpu": "CPU of the build, s",
    "private": "private memory of the build, MiB",
    "disk": "disk, bytes",
    "files": "open files",
    "query_ms": "a query, CPU ms",
    "query_private": "private memory of a query, MiB",
}
"""The quantities whose growth is fitted, and their descriptions."""


class Growth(NamedTuple):
    """How a quantity of a part grows: like ``posts ** exponent``.

    Attributes:
        exponent: of the line of least squares through the logarithms.
        last: of the line through the two largest sizes, where constants weigh least.
        sizes: the number of sizes.
    """

    part: str
    quantity: str
    exponent: float
    last: float
    sizes: int


def growth(rows: Iterable[Result]) -> list[Growth]:
    """Fit the exponents of each part and quantity that was measured at two sizes at least."""
    found, rows = [], list(rows)
    for part in PARTS:
        mine = sorted((row for row in rows if row["part"] == part), key=lambda row: row["posts"])
        for quantity in QUANTITIES:
            points = [(row["posts"], row[quantity]) for row in mine if row.get(quantity)]
            if len(points) > 1:
                found.append(Growth(part, quantity, slope(points), slope(points[-2:]), len(points)))
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the exponent of least squares: of ``y = a · x ** exponent`` through some ``(x, y)``."""
    x, y = np.log(np.array(points, dtype=np.float64)).T
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


def nlogn(sizes: Sequence[int]) -> float:
    """Return the exponent that ``n log n`` has over some sizes."""
    return slope([(n, n * np.log(n)) for n in sizes])


_HEADER = ("posts", "part", "units", "wall s", "CPU s", "µs a unit", "private MiB", "peak MiB", "disk MB", "B a unit")
_HEADER += ("files", "kills", "first ms", "query ms", "query MiB")


def header() -> str:
    """Return the first two lines of the table of results, in Markdown."""
    return f"| {' | '.join(_HEADER)} |\n|---:|---|{'---:|' * (len(_HEADER) - 2)}"


def line(row: Result) -> str:
    """Return the line of a result."""
    units = max(1, row["units"])
    cells = [f"{row['posts']:,}", row["part"], f"{row['units']:,} {row['unit']}"]
    cells += [f"{row['seconds']:,.0f}", f"{row['cpu']:,.0f}", f"{1e6 * row['cpu'] / units:,.0f}"]
    cells += [
        f"{row['private']:,.0f}",
        f"{row['peak']:,.0f}",
        f"{row['disk'] / 1e6:,.0f}",
        f"{row['disk'] / units:,.0f}",
    ]
    cells += [str(row["files"]), str(row["kills"])]
    cells += [f"{row[name]:,.1f}" if name in row else "" for name in ("first_ms", "query_ms", "query_private")]
    return f"| {' | '.join(cells)} |"


def exponents(rows: Sequence[Result]) -> str:
    """Return the table of exponents: over all sizes, and between the two largest."""
    found = {(of.part, of.quantity): of for of in growth(rows)}
    lines = [f"| part | {' | '.join(QUANTITIES.values())} |", "|---|" + "---:|" * len(QUANTITIES)]
    for part in dict.fromkeys(part for part, _ in found):
        cells = [found.get((part, quantity)) for quantity in QUANTITIES]
        lines.append(f"| {part} | {' | '.join(f'{of.exponent:.2f} ({of.last:.2f})' if of else '' for of in cells)} |")
    return "\n".join(lines)


def write_csv(rows: Sequence[Result], path: Path) -> None:
    """Write all that was measured."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (list(PARTS).index(row["part"]), row["posts"])))
