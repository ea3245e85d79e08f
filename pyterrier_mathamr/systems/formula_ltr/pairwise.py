"""The pairwise loss of linear scores, and its minimum.

For each pair of a query's candidates, of which i has a higher grade than j, the margin is w · (x_i - x_j). Pairs are
never listed: what they add is sums over a matrix of margins, some rows of it at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr._common.newton import Slopes, minimise

_Floats = npt.NDArray[np.float64]
Loss = Literal["squared-hinge", "logistic"]
Graded = tuple[_Floats, _Floats]
"""Features of a query's candidates, float64 ``[y, f]``, and their grades, float64 ``[y]``."""

_CELLS = 1 << 21  # margins that are held at once


def fit_pairwise(groups: Sequence[Graded], c: float, loss: Loss) -> _Floats:
    """Find the weights that minimise ½ w · w + C · Σ over queries of the mean loss of their pairs."""
    useful = [(features, grades) for features, grades in groups if len(np.unique(grades)) > 1]
    if not useful:
        raise NothingToFitError(len(groups))
    return minimise(partial(_objective, useful, c, _LOSSES[loss]), np.zeros(useful[0][0].shape[1]))


def ordered_share(groups: Sequence[Graded], weights: _Floats) -> float:
    """Compute the share of pairs in their right order, a tie as half, as a mean over queries that have pairs."""
    shares = []
    for features, grades in groups:
        pairs = [
            (margins[higher] > 0).sum() + (margins[higher] == 0).sum() / 2
            for _, margins, higher in _margins(features @ weights, grades)
        ]
        count = _pairs(grades)
        shares += [float(sum(pairs)) / count] if count else []
    return float(np.mean(shares)) if shares else float("nan")


def _objective(groups: Sequence[Graded], c: float, loss: _Loss, weights: _Floats) -> Slopes:
    total, slope, curve = float(weights @ weights) / 2, weights.copy(), np.eye(len(weights))
    for features, grades in groups:
        factor = c / _pairs(grades)
        for rows, margins, higher in _margins(features @ weights, grades):
            value, first, second = (np.where(higher, part, 0.0) for part in loss(margins))
            better = features[rows]
            total += factor * float(value.sum())
            slope += factor * (better.T @ first.sum(axis=1) - features.T @ first.sum(axis=0))
            mixed = better.T @ second @ features
            curve += factor * (
                (better.T * second.sum(axis=1)) @ better
                + (features.T * second.sum(axis=0)) @ features
                - mixed
                - mixed.T
            )
    return Slopes(total, slope, curve)


def _pairs(grades: _Floats) -> int:
    """Count the pairs of different grades."""
    _, counts = np.unique(grades, return_counts=True)
    return int(len(grades) ** 2 - (counts**2).sum()) // 2


def _margins(
    scores: _Floats, grades: _Floats
) -> Iterator[tuple[npt.NDArray[np.int64], _Floats, npt.NDArray[np.bool_]]]:
    """Yield some candidates, their margins to all of the query, and which of these are of a lower grade."""
    above = np.flatnonzero(grades > grades.min(initial=np.inf))
    step = max(1, _CELLS // max(len(scores), 1))
    for start in range(0, len(above), step):
        rows = above[start : start + step]
        yield rows, scores[rows, None] - scores, grades[rows, None] > grades


_Loss = Callable[[_Floats], tuple[_Floats, _Floats, _Floats]]


def _squared_hinge(margins: _Floats) -> tuple[_Floats, _Floats, _Floats]:
    gaps: _Floats = np.maximum(0.0, 1 - margins)
    return gaps**2, -2 * gaps, np.where(gaps > 0, 2.0, 0.0)


def _logistic(margins: _Floats) -> tuple[_Floats, _Floats, _Floats]:
    share: _Floats = 1 / (1 + np.exp(np.clip(margins, -700, 700)))
    curve: _Floats = share * (1 - share)
    return np.logaddexp(0, -margins), -share, curve


_LOSSES: dict[Loss, _Loss] = {"squared-hinge": _squared_hinge, "logistic": _logistic}
