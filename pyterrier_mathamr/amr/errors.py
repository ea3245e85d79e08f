"""Errors between text, AMR and Penman notation."""

from __future__ import annotations

from pyterrier_mathamr._common.errors import MathAMRError


class AmrError(MathAMRError):
    """A graph, a parser's answer or a Penman text is not a rooted AMR graph."""

    reason: str
    template = "{reason}"


class PenmanError(AmrError):
    """A text is not Penman notation.

    Attributes:
        reason: the fault.
        line: number of the line, from 1.
        offset: position in the line, from 0.
        text: the line itself.
    """

    line: int
    offset: int
    text: str
    template = "line {line}, offset {offset}: {reason}\n{excerpt}"

    @property
    def excerpt(self) -> str:
        """Show the text around the error, with a caret below it; a graph on one line can be megabytes long."""
        start = max(0, self.offset - 60)
        return f"  {self.text[start : start + 120]}\n  {' ' * (self.offset - start)}^"


class ParserUnavailableError(AmrError):
    """A parser cannot parse any text: it cannot be loaded, or its worker fails repeatedly.

    Attributes:
        reason: the cause, as the parser reports it.
        parser: name of the parser.
        remedy: what to do.
    """

    parser: str
    remedy: str
    template = "parser {parser} {reason}. {remedy}"
