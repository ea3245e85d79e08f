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


class ParserUnavailableError(AmrError):
    """A parser as a whole cannot go on, whatever it is given; the causes are below."""


class WorkerSetupError(ParserUnavailableError):
    """A parser cannot be loaded by the interpreter that was given for it.

    Attributes:
        parser: name of the parser.
        python: the interpreter.
        reason: what it says.
    """

    def __init__(self, parser: str, python: str, reason: str) -> None:
        super().__init__(parser, python, reason)
        self.parser, self.python, self.reason = parser, python, reason

    def __str__(self) -> str:
        return (
            f"parser {self.parser} cannot be loaded by {self.python}: {self.reason}. "
            f"See what is missing with: mathamr doctor --parser {self.parser} --python {self.python}"
        )


class WorkerStoppedError(ParserUnavailableError):
    """A worker broke again and again without having parsed anything.

    Attributes:
        parser: name of the parser.
        device: where the worker ran.
        restarts: how often it was started again.
        reason: how it broke last.
        tail: what it printed last.
    """

    def __init__(self, parser: str, device: str, restarts: int, reason: str, tail: str) -> None:
        super().__init__(parser, device, restarts, reason, tail)
        self.parser, self.device, self.restarts, self.reason, self.tail = parser, device, restarts, reason, tail

    def __str__(self) -> str:
        where = f" on {self.device}" if self.device else ""
        said = f" It printed last:\n{self.tail}" if self.tail else ""
        return (
            f"parser {self.parser}{where} was stopped after {self.restarts} restarts without a parse: {self.reason}. "
            f"What was parsed before is kept; the same job goes on from there.{said}"
        )
