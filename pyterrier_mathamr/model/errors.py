"""The errors of models: `ModelError` for arrays of a wrong shape, and below it files, names and training."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class ModelError(MathAMRError):
    """The base of the model layer's errors."""


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
    """A model could run code of its author, or lies outside its folder; it is not loaded."""

    template = "{path}: {problem}."


class TrainingError(ModelError):
    """Training cannot start or continue."""
