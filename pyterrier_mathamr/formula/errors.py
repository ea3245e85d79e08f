"""What can go wrong with a formula or a table of formulas."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError

_SHOWN = 60  # characters of the source shown on each side of the caret


class FormulaError(MathAMRError):
    """A formula has no tree; the message points to character ``position`` of the LaTeX or MathML ``source``."""

    message: str
    source: str = ""
    position: int = 0
    template = "{message} (character {position})\n  {excerpt}\n  {caret}"

    @property
    def excerpt(self) -> str:
        """The source around the position, on one line so that the caret is below its character."""
        start = max(self.position - _SHOWN, 0)
        return self.source[start : self.position + _SHOWN].translate({9: " ", 10: " ", 13: " "})

    @property
    def caret(self) -> str:
        """The caret below that character of the excerpt."""
        return " " * min(self.position, _SHOWN) + "^"


class FormulaTableError(MathAMRError):
    """A table of formulas cannot be read."""

    path: Path
    line: int
    message: str
    template = "{path}:{line}: {message}"
