"""One score of two: that of the symbol layout graph, and that of the operator graph (In+Out, section 4)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pyterrier_mathamr.fusion.reciprocal_rank import RRF_K

from .node_rows import Scores

Combine = Literal["max", "avg", "f1", "rrf"]
Scale = Literal["sum", "mean"]


def combined(combine: Combine, scores: Scores) -> Scores:
    """Combine the scores of both graphs."""
    weights, values = parts(combine, scores)
    return np.asarray((weights * values).sum(axis=0))


def parts(combine: Combine, scores: Scores) -> tuple[Scores, Scores]:
    """Write the combined score as a weighted sum."""
    if combine == "rrf":
        return np.ones_like(scores), 1 / (RRF_K + np.array([ranks(of) for of in scores]))
    if combine == "avg":
        return np.full_like(scores, 0.5), scores
    if combine == "max":
        first = scores[0] >= scores[1]
        return np.array([first, ~first], dtype=np.float64), scores
    above = (scores > 0).all(axis=0)
    total = np.where(above, scores.sum(axis=0), 1.0)
    return np.where(above, 2 * (scores[::-1] / total) ** 2, 0.0), scores


def ranks(scores: Scores) -> Scores:
    """Rank scores from 1, the greatest first; equal ones share the best rank of theirs: float64 ``[x]``."""
    return np.asarray(1.0 + len(scores) - np.searchsorted(np.sort(scores), scores, side="right"), dtype=np.float64)
