"""Weights of a linear score by softmax over the candidates of each question: a convex problem of a few numbers.

For one question with features ``x_c`` of its candidates, a right answer ``a`` and the wrong ones ``N``::

    loss(a) = -log( exp(w · x_a) / (exp(w · x_a) + Σ_{c in N} exp(w · x_c)) )

Other right answers of the question are left out of the sum. A question's loss is the mean over its right answers, the
whole loss the mean over questions, and a small ``ridge`` keeps the weights finite where the data can be separated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.errors import MathAMRError

Features = npt.NDArray[np.floating]
Group = tuple[Features, npt.NDArray[np.bool_]]
"""Features of one question's candidates, float ``[c, f]``, and which of them are right, bool ``[c]``."""

_Floats = npt.NDArray[np.float64]
_PRECISELY = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 100_000}


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
    from scipy.optimize import minimize

    # the root mean variance of each feature within the questions: the weights are fitted in this unit
    spread: _Floats = np.sqrt(np.mean([features.var(axis=0, dtype=np.float64) for features, _ in useful], axis=0))
    used = np.flatnonzero(spread > 0)
    weights = np.zeros(len(spread))

    def loss_and_slope(scaled: _Floats) -> tuple[float, _Floats]:
        """The whole loss with its ridge, and its gradient, float64 ``[used]``."""
        loss, slope = 0.0, np.zeros(len(spread))
        weights[used] = scaled / spread[used]
        for features, right in useful:
            one, change = _loss(features, right, weights)
            loss, slope = loss + one, slope + change
        whole = loss / len(useful) + ridge * float(scaled @ scaled) / 2
        return whole, slope[used] / spread[used] / len(useful) + ridge * scaled

    start, bounds = np.zeros(len(used)), [(0, None)] * len(used)
    fitted = minimize(loss_and_slope, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_PRECISELY)
    weights[used] = fitted.x / spread[used]
    return weights


def _loss(features: Features, right: npt.NDArray[np.bool_], weights: _Floats) -> tuple[float, _Floats]:
    """The loss of one question, and its gradient, float64 ``[f]``."""
    scores = features @ weights
    others = scores[~right]
    top = float(others.max())
    shares = np.exp(others - top)
    below = top + np.log(shares.sum())  # log Σ exp of the wrong ones
    mean = (shares / shares.sum()) @ features[~right].astype(np.float64)  # [f]
    margins = scores[right] - below  # [a]
    miss = 1 / (1 + np.exp(np.clip(margins, -700, 700)))  # the share that is not the right answer's
    apart = features[right].astype(np.float64) - mean  # [a, f]
    return float(np.logaddexp(0, -margins).mean()), -(miss @ apart) / len(margins)
