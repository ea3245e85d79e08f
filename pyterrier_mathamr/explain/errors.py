"""What can go wrong in an explanation."""

from __future__ import annotations

from pyterrier_mathamr._common.errors import MathAMRError


class ExplainError(MathAMRError):
    """The base of the errors of this room."""


class AlignmentError(ExplainError):
    """Vectors do not belong to a graph, or two posts cannot be compared."""

    def __init__(self, post: str, reason: str) -> None:
        super().__init__(post, reason)
        self.post, self.reason = post, reason

    def __str__(self) -> str:
        return f"post {self.post!r}: {self.reason}. Give the vectors that one model made of these very graphs."


class ChartError(ExplainError):
    """A table does not have what a chart is to show."""

    def __init__(self, what: str, wanted: str, found: list[str]) -> None:
        super().__init__(what, wanted, found)
        self.what, self.wanted, self.found = what, wanted, found

    def __str__(self) -> str:
        return f"the {self.what} {self.wanted!r} cannot be drawn; the table has {', '.join(self.found) or 'none'}."
