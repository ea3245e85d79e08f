"""The training state after each epoch, and within long ones: an artifact whose one part is replaced each time.

::

    <checkpoint>/state/                 pt_meta.json identifies the run and has its history and progress
        part-000007/state.safetensors   the tensors model.*, best.*, optimizer.<moment>.<parameter>
    <checkpoint>/history.json, .csv     the history for people

Nothing is pickled. Random numbers are drawn by (seed, epoch, batch), so no state of a random generator is needed to
resume to the same result.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    write_arrays,
    writing,
)

from .history import EpochRecord, Unfinished, write_history

_FILE = "state.safetensors"
_PARTS = ("model", "optimizer", "best")


@dataclass(frozen=True)
class TrainingState:
    """Everything that the next batch depends on.

    Attributes:
        model: parameters and buffers by name.
        optimizer: AdamW's moments and step counts, ``exp_avg.<parameter>`` and so on.
        best: parameters and buffers of the best epoch.
        history: one record for each finished epoch.
        unfinished: the progress within the next epoch.
    """

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    best: dict[str, Tensor]
    history: tuple[EpochRecord, ...]
    unfinished: Unfinished = Unfinished()  # noqa: RUF009 - frozen


class Checkpoint(StoredArtifact):
    """The training state of one run."""

    KIND = Kind(
        type="training_checkpoint",
        version=2,
        files=(_FILE,),
        rebuild="train again with `--fresh` or Trainer.fit(..., fresh=True)",
    )
    ARTIFACT_TYPE, ARTIFACT_FORMAT = KIND.type, KIND.format

    @classmethod
    def of(cls, folder: Path) -> Checkpoint:
        """The state in the folder of a run."""
        return cls(folder / "state")

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.path.parent

    def save(self, run: Mapping[str, Any], state: TrainingState) -> None:
        """Replace the state, atomically, and the history files."""
        arrays = {
            f"{part}.{name}": tensor.detach().to("cpu").numpy()
            for part in _PARTS
            for name, tensor in getattr(state, part).items()
        }
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
        with writing(self.folder):
            write_history(self.folder, state.history)

    def read(self, run: Mapping[str, Any]) -> TrainingState | None:
        """Read the state."""
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
            for name, array in map_arrays(found.parts[0].sound(_FILE)).items():
                part, _, rest = name.partition(".")
                parts[part][rest] = torch.from_numpy(array).clone()  # the file will be replaced
            history = [EpochRecord(**record) for record in json.loads(detail(details, "history", str, self.path))]
            unfinished = Unfinished(**json.loads(detail(details, "unfinished", str, self.path)))
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(self.path, f"no training state ({error!r:.200})") from error
        return TrainingState(**parts, history=tuple(history), unfinished=unfinished)


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """Name AdamW's state: ``<moment>.<parameter>``, parameters in the order they were given to it."""
    state = optimizer.state_dict()["state"]
    return {f"{key}.{names[i]}": tensor for i, moments in state.items() for key, tensor in moments.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Load what :func:`optimizer_tensors` named."""
    position = {name: i for i, name in enumerate(names)}
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        moment, _, name = key.partition(".")
        state.setdefault(position[name], {})[moment] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
