"""The state from which a training run resumes, its history, and both on disk.

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
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

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
    writing,
)

_FILE = "state.safetensors"
_PARTS = ("model", "optimizer", "best", "random")
_LOSSES = "losses.steps"


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One epoch of training."""

    epoch: int  # from 1
    loss: float  # mean training loss of a pair
    validation_loss: float  # of a validation pair without augmentation, or the training loss without validation pairs
    temperature: float  # τ at the end
    learning_rate: float  # at the end
    seconds: float  # wall-clock time, including validation
    waiting: float  # share of that time spent waiting for the next batch, 0 to 1
    validation_maxsim: float  # the loss of MaxSim, whatever its weight
    validation_document: float  # the loss of the document vectors
    deciding: float  # the one of these three that stops training and chooses the epoch, by the option ``stop_by``


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
        replace_file(self.path.parent / "history.json", (json.dumps(epochs, indent=2) + "\n").encode())
        table = pd.DataFrame(epochs, columns=[column.name for column in dataclasses.fields(EpochRecord)])
        text = table.to_csv(index=False, na_rep="nan", lineterminator="\n")
        replace_file(self.path.parent / "history.csv", text.encode())

    def read(self, run: Mapping[str, Any]) -> TrainingState | None:
        """Read the state of this run; ``None`` before it is first saved."""
        try:
            snapshot = self.snapshot()
        except NotBuiltError:
            if (self.path.parent / _FILE).exists():
                reason = f"the training state in it is of an earlier release. To discard it, {self.KIND.rebuild}"
                raise FormatError(self.path.parent, reason) from None
            return None
        details = snapshot.manifest.details
        if differing := differences(detail(details, "run", dict, self.path), json.loads(json.dumps(run))):
            raise UnfinishedJobError(self.path.parent, differing)
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
