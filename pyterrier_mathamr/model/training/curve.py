"""A picture of a training run: its losses by epoch."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from pyterrier_mathamr._common.extras import require

from .history import EpochRecord

CURVE = "losses.png"


def can_draw() -> bool:
    """Tell whether the package that draws (extra ``plots``) is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_losses(records: Sequence[EpochRecord], path: Path) -> None:
    """Draw the training loss, the validation loss and its parts, and mark the epoch whose model is kept.

    Args:
        records: of all epochs, at least one.
        path: the PNG file to write.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figures, ticks = require("matplotlib.figure", "plots"), require("matplotlib.ticker", "plots")
    figure = figures.Figure(figsize=(6.4, 4.0), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    epochs = [record.epoch for record in records]
    axes.plot(epochs, [record.loss for record in records], "o-", color="tab:blue", label="training")
    axes.plot(epochs, [record.validation_loss for record in records], "o-", color="tab:orange", label="validation")
    parts = (("validation_maxsim", "--", "validation, MaxSim"), ("validation_document", ":", "validation, document"))
    for name, style, label in parts:
        values = [getattr(record, name) for record in records]
        if values != [record.validation_loss for record in records]:
            axes.plot(epochs, values, style, color="tab:orange", alpha=0.7, label=label)
    best = min(records, key=lambda record: record.deciding)
    axes.axvline(best.epoch, color="grey", linewidth=0.8, zorder=0)
    axes.annotate(f"kept: epoch {best.epoch}", (best.epoch, 0.02), xycoords=axes.get_xaxis_transform(), rotation=90,
                  ha="right", va="bottom", fontsize=8, color="grey")  # fmt: skip
    axes.xaxis.set_major_locator(ticks.MaxNLocator(integer=True))
    axes.set(xlabel="epoch", ylabel="loss of a pair", ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Software": None})
