"""What can go wrong in the model room, each cause with a name.

::

    ModelError
    ├── ShapeError                an array has another shape than it must have
    ├── MissingFeaturesError      a model with text features got graphs without them
    ├── UnknownOptionError        a configuration has options that do not exist
    ├── ModelNotFoundError        no bundled model and no folder has the name
    ├── ModelHubError             the Hugging Face hub does not give the model
    ├── ModelFileError            a model's folder lacks a file or holds a bad one
    │   ├── ModelFormatError      it was written in a format this release does not read
    │   └── UnsafeModelError      it asks for what could run code, or lies elsewhere
    └── TrainingError             training cannot start or go on
        ├── MissingGraphError     pairs name posts without a graph
        └── NonFiniteLossError    a batch gave a loss that is no number; names the batch
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class ModelError(MathAMRError):
    """The root of the model room's errors."""


class ShapeError(ModelError):
    """An array has another shape than it must have."""

    def __init__(self, name: str, found: object, expected: str) -> None:
        super().__init__(name, found, expected)
        self.name, self.found, self.expected = name, found, expected

    def __str__(self) -> str:
        return f"{self.name} has shape {self.found}; expected {self.expected}."


class MissingFeaturesError(ModelError):
    """A model with text features got graphs without them."""

    def __str__(self) -> str:
        return (
            "the model reads text features, but the graphs have none. Encode graphs rather than tensors, with "
            "MathAMR.encode or a transformer, or make the tensors with tensors_of and a TextEncoder."
        )


class UnknownOptionError(ModelError):
    """A configuration has options that do not exist."""

    def __init__(self, names: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(names, known)
        self.names, self.known = tuple(names), tuple(known)

    def __str__(self) -> str:
        return f"unknown option(s) {', '.join(map(repr, self.names))}; the options are {', '.join(self.known)}."


class ModelNotFoundError(ModelError):
    """No bundled model and no folder has the name."""

    def __init__(self, name: str, bundled: Sequence[str]) -> None:
        super().__init__(name, bundled)
        self.name, self.bundled = name, tuple(bundled)

    def __str__(self) -> str:
        return (
            f"no model {self.name!r}: it is neither a folder with a config.json nor one of the bundled models "
            f"({', '.join(self.bundled) or 'none is installed'}). Give a bundled name, the path that save() wrote, or "
            "hf:organisation/name."
        )


class ModelHubError(ModelError):
    """The Hugging Face hub does not give the model."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return (
            f"hf:{self.name} cannot be fetched ({self.reason}). Check the name, organisation/name, and the connection; "
            "without one, copy the model's folder here and give its path."
        )


class ModelFileError(ModelError):
    """A model's folder lacks a file or holds a bad one."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}. Save the model again, or copy its folder once more."


class ModelFormatError(ModelFileError):
    """The folder was written in a format this release does not read."""

    def __init__(self, path: Path, found: object, readable: range) -> None:
        super().__init__(path, f"model format {found!r}, but this release reads {readable[0]} to {readable[-1]}")
        self.args = (path, found, readable)
        self.found, self.readable = found, readable


class UnsafeModelError(ModelFileError):
    """A model asks for what could run code of whoever made it, or lies outside its folder; it is not loaded."""

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}."


class TrainingError(ModelError):
    """Training cannot start or go on."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class MissingGraphError(TrainingError):
    """Pairs name posts without a graph."""

    def __init__(self, ids: Sequence[str]) -> None:
        shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        super().__init__(f"{len(ids)} post(s) of the pairs have no graph: {shown}. Build their graphs first.")
        self.args = (ids,)
        self.ids = tuple(ids)


class NonFiniteLossError(TrainingError):
    """A batch gave a loss that is no number."""

    def __init__(self, epoch: int, batch: int, pairs: Sequence[tuple[str, str]]) -> None:
        shown = ", ".join(f"{question}/{answer}" for question, answer in pairs[:8]) + (", …" if len(pairs) > 8 else "")
        super().__init__(
            f"the loss of batch {batch} in epoch {epoch} is not finite; its pairs (question/answer): {shown}. "
            "Lower learning_rate or clip; the last good state is in the checkpoint."
        )
        self.args = (epoch, batch, pairs)
        self.epoch, self.batch, self.pairs = epoch, batch, tuple(pairs)
