"""Errors of graphs; for stores of graphs see `pyterrier_mathamr.store`."""

from __future__ import annotations

from collections.abc import Sequence

from pyterrier_mathamr._common.errors import MathAMRError


class GraphError(MathAMRError):
    """A graph, or something read or made from graphs, is invalid."""

    where: str
    reason: str
    template = "{where}: {reason}."


class MissingPlaceholderError(GraphError):
    """Some formulas, by their ``numbers``, have no node in their graph."""

    numbers: Sequence[int]
    advice = "Attach the trees with attach_formulas, which adds the placeholders that a parser dropped."
