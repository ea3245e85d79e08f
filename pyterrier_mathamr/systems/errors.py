"""What can go wrong in a system that is compared with MathAMR+."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class SystemsError(MathAMRError):
    """The base of the errors of this room (the plain name is one of Python's own)."""


class BlendNotFittedError(SystemsError):
    """A blend has no weights yet."""

    def __str__(self) -> str:
        return "the blend has no weights; call .fit(ranking, qrels), give weights=, or LinearBlend.load() them."


class BlendFileError(SystemsError):
    """A file holds no blend of these scorers."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}. Give the file that LinearBlend.save() wrote, and the same scorers."
