"""Explanations: what in a post made its score."""

from __future__ import annotations

from .alignment import alignment, virtual_nodes
from .errors import AlignmentError, ExplainError

__all__ = ["AlignmentError", "ExplainError", "alignment", "virtual_nodes"]
