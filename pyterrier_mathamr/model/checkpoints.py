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

import dataclasses
import importlib.util
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
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
    """The progress within an epoch."""

    batches: int = 0
    pairs: int = 0
    loss: float = 0.0  # the sum over the pairs
    seconds: float = 0.0
    waited: float = 0.0  # seconds of these, for the next batch


@dataclass(frozen=True)
class TrainingState:
    """Everything that the next batch depends on."""

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]  # moments and step counts: ``exp_avg.<parameter>`` and so on
    best: dict[str, Tensor]
    history: tuple[EpochRecord, ...]
    unfinished: EpochProgress = EpochProgress()
    random: dict[str, Tensor] = field(default_factory=dict)  # of torch's generators by device, where a run draws
    losses: tuple[float, ...] = ()  # the training loss before each step so far


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
        epochs = [dataclasses.asdict(record) for record in state.history]
        progress = {  # JSON as text: a loss may be NaN, which the manifest refuses
            "history": json.dumps(epochs),
            "unfinished": json.dumps(dataclasses.asdict(state.unfinished)),
        }
        with self.job("overwrite", {}, resume=False) as job:
            scratch = job.scratch(_FILE)
            with writing(self.path):
                write_arrays(scratch, arrays)
            job.add(Content(files={_FILE: scratch}, count=1))
            job.commit({"run": dict(run), **progress})
        replace_file(self.folder / "history.json", (json.dumps(epochs, indent=2) + "\n").encode())
        table = pd.DataFrame(epochs, columns=[column.name for column in dataclasses.fields(EpochRecord)])
        text = table.to_csv(index=False, na_rep="nan", lineterminator="\n")
        replace_file(self.folder / "history.csv", text.encode())

    def read(self, run: Mapping[str, Any]) -> TrainingState | None:
        try:
            snapshot = self.snapshot()
        except NotBuiltError:
            if (self.folder / _FILE).exists():
                reason = f"the training state in it is of an earlier release. To discard it, {self.KIND.rebuild}"
                raise FormatError(self.folder, reason) from None
            return None
        details = snapshot.manifest.details
        if differing := differences(detail(details, "run", dict, self.path), json.loads(json.dumps(run))):
            raise UnfinishedJobError(self.folder, differing)
        if len(snapshot.parts) != 1:
            raise DamagedError(self.path / META, f"the training state has {len(snapshot.parts)} parts instead of one")
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in _PARTS}
        try:
            arrays = map_arrays(snapshot.parts[0].sound(_FILE))
            losses = tuple(arrays.pop(_LOSSES, np.empty(0)).tolist())
            for key, array in arrays.items():
                part, _, name = key.partition(".")
                parts[part][name] = torch.from_numpy(array).clone()  # the file will be replaced
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
        """Draw the losses, and mark the epoch whose model is kept, into a checkpoint (extra ``plots``)."""
        if self._checkpoint is None or not self._writes or importlib.util.find_spec("matplotlib") is None:
            return
        figures, ticks = require("matplotlib.figure", "plots"), require("matplotlib.ticker", "plots")
        figure = figures.Figure(figsize=(6.4, 4.0), dpi=120, layout="constrained")
        axes = figure.add_subplot()
        epochs = [record.epoch for record in history]
        losses = {name: [getattr(record, name) for record in history] for name in _LINES}
        for name, (style, color, alpha, label) in _LINES.items():
            if name in ("loss", "validation_loss") or losses[name] != losses["validation_loss"]:
                axes.plot(epochs, losses[name], style, color=color, alpha=alpha, label=label)
        best = min(history, key=lambda record: record.deciding)
        axes.axvline(best.epoch, color="grey", linewidth=0.8, zorder=0)
        axes.annotate(f"kept: epoch {best.epoch}", (best.epoch, 1.01), xycoords=axes.get_xaxis_transform(), ha="center",
                      va="bottom", fontsize=9, color="#555555")  # fmt: skip
        axes.xaxis.set_major_locator(ticks.MaxNLocator(integer=True))
        axes.set(xlabel="epoch", ylabel="loss of a pair", ylim=(0, None))
        axes.legend(frameon=False)
        figure.savefig(self.path / "losses.png", metadata={"Software": None})


_LINES = {  # style, color, opacity and label
    "loss": ("o-", "tab:blue", 1.0, "training"),
    "validation_loss": ("o-", "tab:orange", 1.0, "validation"),
    "validation_maxsim": ("--", "tab:orange", 0.7, "validation, MaxSim"),
    "validation_document": (":", "tab:orange", 0.7, "validation, document"),
}
