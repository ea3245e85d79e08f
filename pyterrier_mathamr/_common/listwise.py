"""Weights of a linear score by softmax over the candidates of each question: a convex problem of a few numbers.

For one question with features ``x_c`` of its candidates, a right answer ``a`` and the wrong ones ``N``::

    loss(a) = -log( exp(w · x_a) / (exp(w · x_a) + Σ_{c in N} exp(w · x_c)) )

Other right answers of the question are left out of the sum. A question's loss is the mean over its right answers, the
whole loss the mean over questions, and a small ``ridge`` keeps the weights finite where the data can be separated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import MathAMRError

Features = npt.NDArray[np.floating]
Group = tuple[Features, npt.NDArray[np.bool_]]
"""Features of one question's candidates, float ``[c, f]``, and which of them are right, bool ``[c]``."""

_Floats = npt.NDArray[np.float64]

_DECREMENT = 1e-9  # expected gain of a Newton step, as a share of the loss, that is not worth taking


class Slopes(NamedTuple):
    """A function at one point: its value, gradient, float64 ``[f]``, and Hessian, float64 ``[f, f]``."""

    loss: float
    slope: _Floats
    curve: _Floats


def find_minimum(function: Callable[[_Floats], Slopes], start: _Floats) -> _Floats:
    """Find the minimum of a smooth convex function of a few numbers by Newton steps within a trust region."""
    from scipy.optimize import minimize

    last: dict[bytes, Slopes] = {}

    def at(place: _Floats) -> Slopes:
        if (key := place.tobytes()) not in last:
            last.clear()
            last[key] = function(place)
        return last[key]

    def stop_near(place: _Floats) -> None:
        here = at(place)
        if here.slope @ np.linalg.solve(here.curve, here.slope) < _DECREMENT * max(1.0, abs(here.loss)):
            raise StopIteration

    found = minimize(
        lambda place: at(place).loss,
        start,
        method="trust-exact",
        jac=lambda place: at(place).slope,
        hess=lambda place: at(place).curve,
        callback=stop_near,
        options={"gtol": 1e-10, "initial_trust_radius": 1e3, "max_trust_radius": 1e6},  # full steps where they help
    )
    place: _Floats = found.x
    return place


class NothingToFitError(MathAMRError):
    """No question has both a right and a wrong candidate."""

    questions: int
    template = "none of {questions} question(s) has both a right and a wrong answer among its candidates."
    advice = "Give more questions, judgments of these questions, or more candidates for each."


def fit_listwise(groups: Sequence[Group], *, ridge: float = 1e-4) -> _Floats:
    """Find the weights, none below 0, under which the right candidates are most likely."""
    useful = [(features, right) for features, right in groups if right.any() and not right.all()]
    if not useful:
        raise NothingToFitError(len(groups))
    spread = _spread(useful)
    used = np.flatnonzero(spread > 0)
    weights = np.zeros(len(spread))
    while len(used):
        found = find_minimum(partial(_total, useful, spread, used, ridge), np.zeros(len(used)))
        if (found >= 0).all():
            weights[used] = found / spread[used]
            break
        used = np.delete(used, int(found.argmin()))
    return weights


def _total(
    groups: Sequence[Group], spread: _Floats, used: npt.NDArray[np.int64], ridge: float, weights: _Floats
) -> Slopes:
    """The loss with its ridge, of the used features, each divided by its spread: weights are float64 ``[used]``."""
    size = len(spread)
    full, loss, slope, curve = np.zeros(size), 0.0, np.zeros(size), np.zeros((size, size))
    full[used] = weights / spread[used]
    for features, right in groups:
        one, first, second = _slopes(features, right, full)
        loss, slope, curve = loss + one, slope + first, curve + second
    count, unit = len(groups), spread[used]
    slope = slope[used] / unit / count + ridge * weights
    curve = curve[np.ix_(used, used)] / np.outer(unit, unit) / count + ridge * np.eye(len(used))
    return Slopes(loss / count + ridge * float(weights @ weights) / 2, slope, curve)


def _slopes(features: Features, right: npt.NDArray[np.bool_], weights: _Floats) -> tuple[float, _Floats, _Floats]:
    """The loss of one question, its gradient ``[f]`` and Hessian ``[f, f]``."""
    scores = features @ weights
    wrong, others = features[~right].astype(np.float64), scores[~right]
    top = float(others.max())
    shares = np.exp(others - top)
    below = top + np.log(shares.sum())  # log Σ exp of the wrong ones
    shares /= shares.sum()
    mean = shares @ wrong  # [f]
    wrong -= mean
    spread = wrong.T @ (shares[:, None] * wrong)  # [f, f]
    margins = scores[right] - below  # [a]
    miss = 1 / (1 + np.exp(np.clip(margins, -700, 700)))  # the share that is not the right answer's
    apart = features[right].astype(np.float64) - mean  # [a, f]
    count = len(margins)
    curve = miss.mean() * spread + apart.T @ ((miss * (1 - miss))[:, None] * apart) / count
    return float(np.logaddexp(0, -margins).mean()), -(miss @ apart) / count, curve


def _spread(groups: Sequence[Group]) -> _Floats:
    """The root mean variance of each feature within the questions: float64 ``[f]``."""
    variances = [features.var(axis=0, dtype=np.float64) for features, _ in groups]
    spread: _Floats = np.sqrt(np.mean(variances, axis=0))
    return spread
