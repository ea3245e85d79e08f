"""What can go wrong with a formula or a table of formulas."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError

_SHOWN = 60  # characters of the source shown on each side of the caret


class FormulaError(MathAMRError):
    """A formula has no tree; the message shows where reading it ended.

    Args:
        message: what is wrong.
        source: the LaTeX or MathML that was read.
        position: offset in ``source`` where the problem was found, in characters.
    """

    def __init__(self, message: str, source: str = "", position: int = 0) -> None:
        super().__init__(message, source, position)
        self.message, self.source, self.position = message, source, position

    def __str__(self) -> str:
        start = max(self.position - _SHOWN, 0)
        shown = self.source[start : self.position + _SHOWN]
        flat = shown.translate({9: " ", 10: " ", 13: " "})  # one line, so that the caret stands under its character
        caret = " " * (self.position - start) + "^"
        return f"{self.message} (character {self.position})\n  {flat}\n  {caret}"


class FormulaTableError(MathAMRError):
    """A table of formulas cannot be read as one.

    Args:
        path: the file.
        line: number of the line, from 1.
        message: what is wrong with it.
    """

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(path, line, message)
        self.path, self.line, self.message = path, line, message

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"
