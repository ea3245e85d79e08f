"""Errors of explanations."""

from __future__ import annotations

from pyterrier_mathamr._common.errors import MathAMRError


class ExplainError(MathAMRError):
    """The base of the errors of this room."""


class AlignmentError(ExplainError):
    """Vectors do not belong to a graph, or two posts cannot be compared."""

    post: str
    reason: str
    template = "post {post!r}: {reason}."
    advice = "Give graphs and the vectors that one model computed from them."


class AskedError(ExplainError):
    """A system cannot explain what it is asked."""

    system: str
    reason: str
    remedy: str
    template = "{system} cannot explain a score: {reason}. {remedy}"
