"""Errors of explanations."""

from __future__ import annotations

from pyterrier_mathamr._common.errors import MathAMRError


class ExplainError(MathAMRError):
    """Vectors do not belong to a graph, or a table lacks what a chart needs; the message names it."""


class AskedError(ExplainError):
    """A system cannot explain what it is asked."""

    system: str
    reason: str
    remedy: str
    template = "{system} cannot explain a score: {reason}. {remedy}"
