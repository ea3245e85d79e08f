"""The figure of growth: each quantity over the number of posts, both on logarithmic axes with plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mathamr_systems.charts import new_figure, save

from .parts import PARTS
from .report import QUANTITIES
from .running import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_UNITS = {"disk": ("disk, MB", 1e6)}
"""Quantities that are drawn in a different unit than stored: title, and divisor."""

Points = list[tuple[int, float]]


def draw(rows: Sequence[Result], path: Path) -> Path:
    """Write the figure of :func:`growth_figure`.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    return save(growth_figure(rows), path)


def growth_figure(rows: Sequence[Result]) -> Figure:
    """Draw a panel for each quantity with a line for each part; for CPU and disk also ``n log n``, dotted.

    A part that was measured at only one size shows no growth and is left out, and so is a quantity without any line.
    """
    figure = new_figure(12, 7)
    lines = {quantity: _lines(rows, quantity) for quantity in QUANTITIES}
    shown = {quantity: parts for quantity, parts in lines.items() if parts}
    panels = np.ravel(figure.subplots(2, 3))
    for panel in panels[len(shown) :]:
        panel.remove()
    for panel, (quantity, parts) in zip(panels, shown.items(), strict=False):
        for part, points in parts.items():
            panel.plot(*zip(*points, strict=True), marker="o", markersize=4, label=part, color=f"C{_NUMBERS[part]}")
        if quantity in ("cpu", "disk"):
            panel.plot(*_n_log_n(parts.values()), linestyle=":", color="gray", label="n log n")
        _lay_out(panel, _UNITS[quantity][0] if quantity in _UNITS else QUANTITIES[quantity])
    if shown:
        panels[0].legend(fontsize=8)
    return figure


_NUMBERS = {part: number for number, part in enumerate(PARTS)}  # of its color, the same in each figure


def _lines(rows: Sequence[Result], quantity: str) -> dict[str, Points]:
    """Collect the points of each part that was measured at two sizes at least, by size."""
    unit = _UNITS[quantity][1] if quantity in _UNITS else 1
    found = {
        part: sorted((row["posts"], row[quantity] / unit) for row in rows if row["part"] == part and row.get(quantity))
        for part in PARTS
    }
    return {part: points for part, points in found.items() if len(dict(points)) > 1}


def _n_log_n(parts: Iterable[Points]) -> tuple[list[int], list[float]]:
    """Return the curve ``n log n`` over all sizes, from the lowest point of any part on."""
    points = [point for of in parts for point in of]
    sizes = sorted({posts for posts, _ in points})
    low = min(value for _, value in points) / (sizes[0] * np.log(sizes[0]))
    return sizes, [low * n * float(np.log(n)) for n in sizes]


def _lay_out(panel: Axes, title: str) -> None:
    """Make both axes logarithmic, with numbers as people write them: 300, not 3 x 10^2."""
    panel.set(xscale="log", yscale="log", title=title, xlabel="posts")
    _number(panel.xaxis, (1.0,))
    _number(panel.yaxis, (1.0, 2.0, 5.0))
    panel.grid(alpha=0.3)


def _number(axis: Axis, steps: Sequence[float]) -> None:
    """Put a number at each power of ten times one of the steps, and at nothing else."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=steps, numticks=99))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
