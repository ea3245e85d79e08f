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
    """An earlier run did a stage with other settings than this run."""

    folder: Path
    stage: str
    before: Mapping[str, Any]
    now: Mapping[str, Any]
    template = "{folder}: stage {stage!r} was done with other settings: {changes}."
    advice = "Use another folder for the new settings, or delete {folder} to start over."

    @property
    def changes(self) -> str:
        """The settings that differ, each with its old and new value."""
        pairs = {name: (self.before.get(name), self.now.get(name)) for name in sorted({*self.before, *self.now})}
        return "; ".join(_change(name, before, now) for name, (before, now) in pairs.items() if before != now)


class NoRelevantTopicError(ExperimentError):
    """No topic of the year has a relevant answer in this collection, so there is nothing to measure."""

    path: Path
    year: int | str
    grade: int
    template = "{path}: no topic of {year} has an answer of grade {grade} or better among the posts of this collection."
    advice = "Choose another year, or a larger part of the release."


class WeightsFileError(ExperimentError):
    """A file does not hold weights of formula systems."""

    path: Path
    reason: str
    template = "{path}: {reason}."
    advice = "Give the weights.json of a Task 2 run of this release; of the package's own file, install it again."


class ConditionsFailedError(ExperimentError):
    """Some runs of a study failed; the results of the others are kept."""

    folder: Path
    reasons: Mapping[tuple[str, int], str]
    template = "{count} runs failed: {runs}."
    advice = "The report on the other runs is in {folder}; the same command retries the failed runs."

    @property
    def count(self) -> int:
        """How many runs failed."""
        return len(self.reasons)

    @property
    def runs(self) -> str:
        """The runs that failed, each with its reason."""
        return "; ".join(f"{name!r} with seed {seed}: {why}" for (name, seed), why in self.reasons.items())


def _change(name: str, before: Any, now: Any) -> str:
    """Describe how a setting changed; of a list, such as the files of a collection, only what was removed and added."""
    if not (isinstance(before, list) and isinstance(now, list)):
        return f"{name} was {before!r} and is now {now!r}"
    gone, new = [value for value in before if value not in now], [value for value in now if value not in before]
    parts = [f"{what} {_few(values)}" for what, values in (("removed", gone), ("added", new)) if values]
    return f"{name}: {', '.join(parts) or 'the same in another order'}"


def _few(values: list[Any]) -> str:
    """Name the first values and the number of the others."""
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN:,} more"
