"""Errors of learned combinations and rankers."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class NotFittedError(MathAMRError):
    """A learned combination or ranker has no weights yet."""

    what: str
    reader: str
    template = "{what} has no weights."
    advice = "Call .fit(), give weights, or read them with {reader}."


class WeightsFileError(MathAMRError):
    """A file holds no weights of this kind, or those of other parts."""

    path: Path
    reason: str
    template = "{path}: {reason}."
    advice = "Give the file that .save() of the same class wrote, and the same parts."
