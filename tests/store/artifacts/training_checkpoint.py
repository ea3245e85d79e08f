"""The state of a training run: one part, replaced as a whole at each save."""

from pathlib import Path

import torch

from pyterrier_mathamr.model.checkpoints import Checkpoint, TrainingState

open = Checkpoint
MODES = ("create", "overwrite")  # each state replaces the previous one

_RUN = {"pairs": "x"}


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    tensors = {f"d{i}": torch.full((4,), float(seed * 1000 + i)) for i in rows}
    Checkpoint(path).save(_RUN, TrainingState(tensors, {}, {}, ()))


def read(path: Path) -> object:
    found = Checkpoint(path).read(_RUN)
    return found and {name: tensor.tolist() for name, tensor in found.model.items()}
