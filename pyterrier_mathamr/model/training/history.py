"""The history of a training run: one record for each epoch, as JSON, as CSV and as a picture of the losses."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr.store import replace_file

PICTURE = "losses.png"


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One epoch.

    Attributes:
        epoch: number, from 1.
        loss: mean training loss of a pair.
        validation_loss: mean loss of a validation pair without augmentation, or the training loss without validation
            pairs.
        validation_maxsim: the part of MaxSim alone, whatever its weight; ``validation_document`` that of the document
            vectors.
        deciding: the one of these three that stops training and chooses the epoch, by the option ``stop_by``.
        temperature: τ at the end.
        learning_rate: at the end.
        seconds: wall-clock time, validation included.
        waiting: share of that time spent waiting for the next batch, 0 to 1.
    """

    epoch: int
    loss: float
    validation_loss: float
    temperature: float
    learning_rate: float
    seconds: float
    waiting: float
    validation_maxsim: float
    validation_document: float
    deciding: float


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The progress within an epoch.

    Attributes:
        batches: done.
        pairs: in these batches.
        loss: sum over these pairs.
        seconds: wall-clock time.
        waited: seconds of these spent waiting for the next batch.
    """

    batches: int = 0
    pairs: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    waited: float = 0.0


def finished(history: Sequence[EpochRecord], epochs: int, patience: int) -> bool:
    """Tell whether training ends: after ``epochs``, or after ``patience`` without a lower deciding loss."""
    losses = [record.deciding for record in history]
    return bool(losses) and (len(losses) >= epochs or len(losses) - 1 - losses.index(min(losses)) >= patience)


def write_history(folder: Path, records: Sequence[EpochRecord]) -> None:
    """Write ``history.json`` and ``history.csv``, one record an epoch, into an existing folder."""
    rows = [dataclasses.asdict(record) for record in records]
    replace_file(folder / "history.json", (json.dumps(rows, indent=2) + "\n").encode())
    table = io.StringIO()
    writer = csv.DictWriter(table, [field.name for field in dataclasses.fields(EpochRecord)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace_file(folder / "history.csv", table.getvalue().encode())


def can_draw() -> bool:
    """Tell whether matplotlib (extra ``plots``) is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_losses(records: Sequence[EpochRecord], path: Path) -> None:
    """Draw the training loss, the validation loss and its parts, and mark the epoch whose model is kept."""
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
    axes.annotate(f"kept: epoch {best.epoch}", (best.epoch, 1.01), xycoords=axes.get_xaxis_transform(), ha="center",
                  va="bottom", fontsize=9, color="#555555")  # fmt: skip
    axes.xaxis.set_major_locator(ticks.MaxNLocator(integer=True))
    axes.set(xlabel="epoch", ylabel="loss of a pair", ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Software": None})
