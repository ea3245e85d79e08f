"""Errors of explanations."""

from __future__ import annotations

from pyterrier_mathamr._common.errors import MathAMRError


class ExplainError(MathAMRError):
    """Vectors do not belong to a graph, or a table lacks data for a chart; the message names it."""


class AskedError(ExplainError):
    """A system cannot explain the score of this query and document."""

    system: str
    reason: str
    remedy: str
    template = "{system} cannot explain a score: {reason}. {remedy}"
