"""Errors of combinations of rankings."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class FusionError(MathAMRError):
    """The base of the errors of this room."""


class BlendNotFittedError(FusionError):
    """A blend has no weights yet."""

    template = "the blend has no weights."
    advice = "Call .fit(ranking, qrels), give weights=, or read them with LinearBlend.load()."


class BlendFileError(FusionError):
    """A file holds no blend of these scorers."""

    path: Path
    reason: str
    template = "{path}: {reason}."
    advice = "Give the file that LinearBlend.save() wrote, and the same scorers."


class RankerNotFittedError(FusionError):
    """A learned ranker has no weights yet."""

    template = "the ranker has no weights."
    advice = "Call .fit() or .fit_judged(), give weights=, or read it with .load()."


class RankerFileError(FusionError):
    """A file holds no ranker."""

    path: Path
    reason: str
    template = "{path}: {reason}."
    advice = "Give the file that .save() of the same class wrote."
