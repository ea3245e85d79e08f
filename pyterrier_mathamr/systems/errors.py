"""Errors of the systems that MathAMR+ is compared with or built upon."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class SystemsError(MathAMRError):
    """The base of the errors of this room (the plain name is one of Python's own)."""


class BlendNotFittedError(SystemsError):
    """A blend has no weights yet."""

    template = "the blend has no weights."
    advice = "Call .fit(ranking, qrels), give weights=, or read them with LinearBlend.load()."


class BlendFileError(SystemsError):
    """A file holds no blend of these scorers."""

    path: Path
    reason: str
    template = "{path}: {reason}."
    advice = "Give the file that LinearBlend.save() wrote, and the same scorers."


class NothingJudgedError(SystemsError):
    """Weights cannot be fitted."""

    queries: int
    template = "none of the candidates of {queries} query(ies) is judged."
    advice = "Give judgements of these queries whose docno is a formula's id or its visual id."
