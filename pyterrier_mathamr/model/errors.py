"""The errors of the model room.

::

    ModelError
    ├── ShapeError            an array has another shape than it must have
    ├── ModelNotFoundError    no bundled model, folder or model on the hub has the name
    ├── ModelFileError        a model's folder lacks a file or holds a bad one
    │   └── UnsafeModelError  it asks for what could run code, or lies elsewhere; it is not loaded
    └── TrainingError         training cannot start or go on
        ├── MissingGraphError     pairs name posts without a graph
        └── NonFiniteLossError    a batch has a loss that is NaN or infinite
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.frames import listed


class ModelError(MathAMRError):
    """The base of the model room's errors."""


class ShapeError(ModelError):
    """An array has another shape than it must have."""

    name: str
    found: object
    expected: str
    template = "{name} has shape {found}; expected {expected}."


class ModelNotFoundError(ModelError):
    """No bundled model, folder or model on the hub has the name."""

    name: str
    reason: str
    template = "no model {name!r}: {reason}."


class ModelFileError(ModelError):
    """A model's folder lacks a file or holds a bad one."""

    path: Path
    problem: str
    fix: str = "Save the model again, or copy its folder once more."
    template = "{path}: {problem}. {fix}"


class UnsafeModelError(ModelFileError):
    """A model asks for what could run code of its author, or lies outside its folder; it is not loaded."""

    template = "{path}: {problem}."


class TrainingError(ModelError):
    """Training cannot start or go on."""

    problem: str
    template = "{problem}"


class MissingGraphError(TrainingError):
    """Pairs name posts without a graph."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(f"{len(ids)} post(s) of the pairs have no graph: {listed(ids)}. Build their graphs first.")
        self.args, self.ids = (ids,), tuple(ids)


class NonFiniteLossError(TrainingError):
    """A batch has a loss that is NaN or infinite."""

    def __init__(self, epoch: int, batch: int, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__(
            f"the loss of batch {batch} in epoch {epoch} is not finite; its pairs (question, answer): {listed(pairs)}. "
            "Lower learning_rate or clip."
        )
        self.args = (epoch, batch, pairs)
        self.epoch, self.batch, self.pairs = epoch, batch, tuple(pairs)
