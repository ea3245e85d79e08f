"""The state of a training run after each epoch, and within long ones, in one file that is replaced at once.

``state.safetensors`` holds the tensors ``model.*``, ``best.*``, ``adam.<moment>.<parameter>`` and, as text in its
header, what the run is and how far it came. Nothing is pickled. Chance is drawn from (seed, epoch, batch), so no state
of a random generator is needed to go on to the same result.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .errors import CheckpointMismatchError, ModelFileError
from .history import EpochRecord, Unfinished, write_history

_FILE = "state.safetensors"


@dataclass(frozen=True)
class Snapshot:
    """Everything that the next batch depends on.

    Attributes:
        model: parameters and buffers by name.
        optimizer: AdamW's moments and step counts, ``exp_avg.<parameter>`` and so on.
        best: parameters and buffers of the best epoch.
        history: one record for each epoch done.
        unfinished: how far the next epoch came.
    """

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    best: dict[str, Tensor]
    history: tuple[EpochRecord, ...]
    unfinished: Unfinished = Unfinished()  # noqa: RUF009 - frozen


def save_snapshot(folder: Path, run: dict[str, str], snapshot: Snapshot) -> None:
    """Replace the folder's snapshot and its history files.

    Args:
        folder: made where it does not exist.
        run: what identifies the run: its configuration, vocabulary and pairs.
        snapshot: the state.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"{part}.{name}": tensor.detach().to("cpu").contiguous()
        for part in ("model", "optimizer", "best")
        for name, tensor in getattr(snapshot, part).items()
    }
    header = {
        "run": json.dumps(run),
        "history": json.dumps([dataclasses.asdict(record) for record in snapshot.history]),
        "unfinished": json.dumps(dataclasses.asdict(snapshot.unfinished)),
    }
    unfinished = folder / (_FILE + ".tmp")
    save_file({name: tensor.clone() for name, tensor in tensors.items()}, unfinished, header)
    with unfinished.open("rb") as written:
        os.fsync(written.fileno())
    unfinished.replace(folder / _FILE)
    write_history(folder, snapshot.history)


def load_snapshot(folder: Path, run: dict[str, str]) -> Snapshot | None:
    """Read the folder's snapshot.

    Args:
        folder: what :func:`save_snapshot` wrote, or a folder that is empty or not there.
        run: what identifies the run that wants to go on.

    Returns:
        The snapshot, or ``None`` where there is none.

    Raises:
        CheckpointMismatchError: it belongs to a run with another configuration, vocabulary or pairs.
        ModelFileError: the file is damaged.
    """
    path = folder / _FILE
    if not path.exists():
        return None
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "best": {}}
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            found, records = json.loads(header["run"]), json.loads(header["history"])
            unfinished = Unfinished(**json.loads(header.get("unfinished", "{}")))
            for key in file.keys():  # noqa: SIM118 - safe_open is no mapping
                part, _, name = key.partition(".")
                parts[part][name] = file.get_tensor(key)
    except (SafetensorError, KeyError, ValueError) as error:
        raise ModelFileError(path, f"no readable checkpoint ({error})") from error
    for what in sorted(set(run) | set(found)):
        if run.get(what) != found.get(what):
            raise CheckpointMismatchError(path, what)
    return Snapshot(**parts, history=tuple(EpochRecord(**record) for record in records), unfinished=unfinished)


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """Name AdamW's state: ``<moment>.<parameter>``, parameters in the order they were given to it."""
    state = optimizer.state_dict()["state"]
    return {f"{key}.{names[i]}": tensor for i, moments in state.items() for key, tensor in moments.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Put back what :func:`optimizer_tensors` named."""
    place = {name: i for i, name in enumerate(names)}
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        moment, _, name = key.partition(".")
        state.setdefault(place[name], {})[moment] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
