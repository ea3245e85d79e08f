"""Training runs on disk: the state from which a run resumes, and its history.

::

    <checkpoint>/state/                 an artifact whose one part is replaced each time: after each epoch, and within
                                        long ones; pt_meta.json identifies the run and has its history and progress
        part-000007/state.safetensors   the tensors model.*, best.*, optimizer.<moment>.<parameter>, random.*, losses.*
    <checkpoint>/history.json, .csv     the history for people
    <checkpoint>/losses.png             with the extra ``plots``

Nothing is pickled.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr.store import (
    META,
    Content,
    DamagedError,
    FormatError,
    Kind,
    NotBuiltError,
    StoredArtifact,
    UnfinishedJobError,
    detail,
    differences,
    map_arrays,
    replace_file,
    write_arrays,
    writer_lock,
    writing,
)

if TYPE_CHECKING:
    from .loop import ProcessGroup

_FILE = "state.safetensors"
_PARTS = ("model", "optimizer", "best", "random")
_LOSSES = "losses.steps"


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One epoch.

    Attributes:
        epoch: number, from 1.
        loss: mean training loss of a pair.
        validation_loss: mean loss of a validation pair without augmentation, or the training loss without validation
            pairs.
        validation_maxsim: the loss of MaxSim, whatever its weight.
        validation_document: the loss of the document vectors.
        deciding: the one of these three that stops training and chooses the epoch, by the option ``stop_by``.
        temperature: τ at the end.
        learning_rate: at the end.
        seconds: wall-clock time, including validation.
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
class EpochProgress:
    """The progress within an epoch.

    The loss is a sum over the pairs; of the seconds, ``waited`` were spent waiting for the next batch.
    """

    batches: int = 0
    pairs: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    waited: float = 0.0


@dataclass(frozen=True)
class TrainingState:
    """Everything that the next batch depends on.

    ``optimizer`` has moments and step counts, ``exp_avg.<parameter>`` and so on; ``random`` the states of torch's
    generators by device, where a run draws from them; ``losses`` the training loss before each step so far.
    """

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    best: dict[str, Tensor]
    history: tuple[EpochRecord, ...]
    unfinished: EpochProgress = EpochProgress()
    random: dict[str, Tensor] = field(default_factory=dict)
    losses: tuple[float, ...] = ()


class Checkpoint(StoredArtifact):
    """The training state of one run."""

    KIND = Kind(
        type="training_checkpoint",
        version=2,
        files=(_FILE,),
        rebuild="train again with `--fresh` or Trainer.fit(..., fresh=True)",
    )

    @property
    def folder(self) -> Path:
        return self.path.parent

    def save(self, run: Mapping[str, Any], state: TrainingState) -> None:
        """Replace the state, atomically, and the history files."""
        arrays = {
            f"{part}.{name}": tensor.detach().to("cpu").numpy()
            for part in _PARTS
            for name, tensor in getattr(state, part).items()
        }
        arrays[_LOSSES] = np.array(state.losses, np.float64)
        progress = {  # JSON as text: a loss may be NaN, which the manifest refuses
            "history": json.dumps([dataclasses.asdict(record) for record in state.history]),
            "unfinished": json.dumps(dataclasses.asdict(state.unfinished)),
        }
        with self.job("overwrite", {}, resume=False) as job:
            scratch = job.scratch(_FILE)
            with writing(self.path):
                write_arrays(scratch, arrays)
            job.add(Content(files={_FILE: scratch}, count=1))
            job.commit({"run": dict(run), **progress})
        _write_history(self.folder, state.history)

    def read(self, run: Mapping[str, Any]) -> TrainingState | None:
        try:
            found = self.snapshot()
        except NotBuiltError:
            if (self.folder / _FILE).exists():
                reason = f"the training state in it is of an earlier release. To discard it, {self.KIND.rebuild}"
                raise FormatError(self.folder, reason) from None
            return None
        details = found.manifest.details
        if differing := differences(detail(details, "run", dict, self.path), json.loads(json.dumps(run))):
            raise UnfinishedJobError(self.folder, differing)
        if len(found.parts) != 1:
            raise DamagedError(self.path / META, f"the training state has {len(found.parts)} parts instead of one")
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in _PARTS}
        try:
            stored = map_arrays(found.parts[0].sound(_FILE))
            losses = tuple(stored.pop(_LOSSES, np.empty(0)).tolist())
            for name, array in stored.items():
                part, _, rest = name.partition(".")
                parts[part][rest] = torch.from_numpy(array).clone()  # the file will be replaced
            history = [EpochRecord(**record) for record in json.loads(detail(details, "history", str, self.path))]
            unfinished = EpochProgress(**json.loads(detail(details, "unfinished", str, self.path)))
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(self.path, f"no training state ({error!r:.200})") from error
        return TrainingState(**parts, history=tuple(history), unfinished=unfinished, losses=losses)


class RunFolder:
    """The folder of a run, locked while the context is open; without a checkpoint, a temporary one.

    Args:
        checkpoint: the folder, or ``None`` to save nothing.
        group: the processes that train; only the first writes.

    Attributes:
        state: where the run resumes; ``None`` where it begins.

    A run of five epochs::

        with RunFolder("runs/first") as folder:
            folder.begin({**options, "pairs": digest})
            TrainingLoop(network, optimizer, batches, loss, epochs=5).train(folder)
    """

    def __init__(self, checkpoint: str | Path | None, group: ProcessGroup | None = None) -> None:
        self._checkpoint = None if checkpoint is None else Checkpoint(Path(checkpoint) / "state")
        self._group, self._open, self._epochs = group, ExitStack(), 0
        self._writes = group is None or group.rank == 0
        self._run: Mapping[str, Any] = {}
        self.state: TrainingState | None = None

    def __enter__(self) -> RunFolder:
        folder = Path() if self._checkpoint is None else self._checkpoint.folder
        if self._writes:
            if self._checkpoint is None:
                folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="mathamr-training-")))
            else:
                self._open.enter_context(writer_lock(folder.absolute()))
        self.path = self._group.first(lambda: folder) if self._group else folder
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Unlock the folder, and remove a temporary one."""
        if self._checkpoint is not None and self._epochs and isinstance(error, KeyboardInterrupt):
            error.add_note(f"the training state after epoch {self._epochs} is kept in {self._checkpoint.folder}")
        self._open.close()

    def begin(self, run: Mapping[str, Any], *, fresh: bool = False) -> TrainingState | None:
        """Begin or resume a run; return the state from which it resumes, if any.

        ``run`` has the options, data and starting weights, so that no other run resumes from its state; ``fresh``
        discards the state of an interrupted run.
        """
        self._run = dict(run)
        self.state = None if fresh or self._checkpoint is None else self._checkpoint.read(run)
        self._epochs = len(self.state.history) if self.state else 0
        return self.state

    def save(self, state: TrainingState) -> None:
        if self._checkpoint is not None and self._writes:
            self._checkpoint.save(self._run, state)
            self._epochs = len(state.history)

    def draw(self, history: Sequence[EpochRecord]) -> None:
        """Draw the losses, if there is a checkpoint and matplotlib (extra ``plots``) is installed."""
        if self._checkpoint is not None and self._writes and importlib.util.find_spec("matplotlib") is not None:
            _draw_losses(history, self.path / "losses.png")


def _write_history(folder: Path, records: Sequence[EpochRecord]) -> None:
    """Write ``history.json`` and ``history.csv``, one record an epoch, into an existing folder."""
    rows = [dataclasses.asdict(record) for record in records]
    replace_file(folder / "history.json", (json.dumps(rows, indent=2) + "\n").encode())
    table = io.StringIO()
    writer = csv.DictWriter(table, [field.name for field in dataclasses.fields(EpochRecord)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace_file(folder / "history.csv", table.getvalue().encode())


def _draw_losses(records: Sequence[EpochRecord], path: Path) -> None:
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
