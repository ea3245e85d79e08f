"""Errors of figures."""

from __future__ import annotations

from .asking_errors import ExplainError


class ChartError(ExplainError):
    """A table lacks a column or a value that a chart needs."""

    what: str
    wanted: str
    found: list[str]
    template = "the {what} {wanted!r} cannot be drawn; the table has {listed}."

    @property
    def listed(self) -> str:
        """What the table has instead."""
        return ", ".join(self.found) or "none"
