"""What can go wrong between text, AMR and Penman notation."""

from __future__ import annotations

from pyterrier_mathamr._common.errors import MathAMRError


class AmrError(MathAMRError):
    """A graph, a parser's answer or a Penman text that is not a rooted AMR graph."""


class PenmanError(AmrError):
    """A text is not Penman notation.

    Attributes:
        message: what is wrong.
        line: number of the line, from 1.
        offset: place in the line, from 0.
        text: the line itself.
    """

    def __init__(self, message: str, line: int, offset: int, text: str) -> None:
        super().__init__(message, line, offset, text)  # all fields: the error must survive a worker process
        self.message, self.line, self.offset, self.text = message, line, offset, text

    def __str__(self) -> str:
        start = max(0, self.offset - 60)  # a graph written on one line can be megabytes long
        shown = self.text[start : start + 120]
        return f"line {self.line}, offset {self.offset}: {self.message}\n  {shown}\n  {' ' * (self.offset - start)}^"
