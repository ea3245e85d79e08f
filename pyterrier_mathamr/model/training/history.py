"""What happened in each epoch of a training run, as values and as JSON and CSV files."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyterrier_mathamr.store import replace_file


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One epoch.

    Attributes:
        epoch: number, from 1.
        loss: mean training loss of a pair.
        validation_loss: mean loss of a validation pair without augmentation, or the training loss without a
            validation part.
        validation_maxsim: its part by MaxSim alone, whatever its weight; so, too, ``validation_document`` by document
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
    """How far an epoch came.

    Attributes:
        batches: done.
        pairs: in them.
        loss: sum over the pairs.
        seconds: wall-clock time.
        waited: seconds of these spent waiting for the next batch.
    """

    batches: int = 0
    pairs: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    waited: float = 0.0


def write_history(folder: Path, records: Sequence[EpochRecord]) -> None:
    """Write ``history.json`` and ``history.csv``, one record an epoch.

    Args:
        folder: an existing folder.
        records: in order.
    """
    rows = [dataclasses.asdict(record) for record in records]
    replace_file(folder / "history.json", (json.dumps(rows, indent=2) + "\n").encode())
    table = io.StringIO()
    writer = csv.DictWriter(table, [field.name for field in dataclasses.fields(EpochRecord)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace_file(folder / "history.csv", table.getvalue().encode())
