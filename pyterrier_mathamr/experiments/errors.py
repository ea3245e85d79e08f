"""What can go wrong in an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import MathAMRError

_SHOWN = 3


class ExperimentError(MathAMRError):
    """The base of the errors of this room."""


class SettingsChangedError(ExperimentError):
    """A stage of an earlier run had other settings than this run."""

    def __init__(self, folder: Path, stage: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        super().__init__(folder, stage, before, now)
        self.folder, self.stage, self.before, self.now = folder, stage, before, now

    def __str__(self) -> str:
        names = sorted({*self.before, *self.now})
        changes = [
            _change(name, self.before.get(name), self.now.get(name))
            for name in names
            if self.before.get(name) != self.now.get(name)
        ]
        return (
            f"{self.folder}: stage {self.stage!r} was made with other settings: {'; '.join(changes)}. "
            f"Use another folder for the new settings, or delete {self.folder} to begin anew."
        )


class NoRelevantTopicError(ExperimentError):
    """No topic of the year has a relevant answer in this collection, so that there is nothing to measure."""

    def __init__(self, path: Path, year: int | str, grade: int) -> None:
        super().__init__(path, year, grade)
        self.path, self.year, self.grade = path, year, grade

    def __str__(self) -> str:
        return (
            f"{self.path}: no topic of {self.year} has an answer of grade {self.grade} or better among the posts of "
            "this collection. Choose another year, or a larger part of the release."
        )


class SourceError(ExperimentError):
    """A source of posts or pairs is neither a folder nor a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: no such file. Name a local ARQMath folder, or a file of pairs (.jsonl, .jsonl.gz)."


class ConditionsFailedError(ExperimentError):
    """Some runs of a study failed; those that did not are kept."""

    def __init__(self, folder: Path, reasons: Mapping[tuple[str, int], str]) -> None:
        super().__init__(folder, reasons)
        self.folder, self.reasons = folder, reasons

    def __str__(self) -> str:
        runs = "; ".join(f"{name!r} with seed {seed}: {why}" for (name, seed), why in self.reasons.items())
        return (
            f"{len(self.reasons)} runs failed: {runs}. The report of the others is in {self.folder}; the same command "
            "tries again what failed."
        )


def _change(name: str, before: Any, now: Any) -> str:
    """Say how a setting changed; of a list, such as the files of a collection, only what went and what came."""
    if not (isinstance(before, list) and isinstance(now, list)):
        return f"{name} was {before!r} and is now {now!r}"
    gone, new = [value for value in before if value not in now], [value for value in now if value not in before]
    parts = [f"{_few(values)} {what}" for values, what in ((gone, "went"), (new, "came")) if values]
    return f"{name}: {' and '.join(parts) or 'the same in another order'}"


def _few(values: list[Any]) -> str:
    """Name the first values and count the others."""
    shown = ", ".join(repr(value) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN:,} more"
