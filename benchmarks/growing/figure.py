"""The figure of growth: each quantity over the number of posts, both on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pyterrier_mathamr.explain.figures import new_figure, save

from .parts import PARTS
from .report import QUANTITIES
from .running import Result


def draw(rows: Sequence[Result], path: Path) -> Path:
    """Draw a panel for each quantity with a line for each part, and beside them ``n log n``, dotted.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(12, 7)
    panels = np.ravel(figure.subplots(2, 3))
    for panel, (quantity, title) in zip(panels, QUANTITIES.items(), strict=True):
        for number, part in enumerate(PARTS):
            mine = sorted((row["posts"], row[quantity]) for row in rows if row["part"] == part and row.get(quantity))
            if mine:
                panel.plot(*zip(*mine, strict=True), marker="o", markersize=4, label=part, color=f"C{number}")
        sizes = sorted({row["posts"] for row in rows})
        low = min((row[quantity] for row in rows if row.get(quantity)), default=1.0)
        if quantity in ("cpu", "disk") and len(sizes) > 1:
            line = [low * n * np.log(n) / (sizes[0] * np.log(sizes[0])) for n in sizes]
            panel.plot(sizes, line, linestyle=":", color="gray", label="n log n")
        panel.set(xscale="log", yscale="log", title=title, xlabel="posts")
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    return save(figure, path)
