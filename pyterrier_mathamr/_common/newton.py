"""Newton's method for a smooth convex function of a few numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

_STEPS = 100
_TOLERANCE = 1e-9


class Slopes(NamedTuple):
    """A function at one point.

    Attributes:
        loss: its value.
        slope: float64 ``[f]``, its gradient.
        curve: float64 ``[f, f]``, its Hessian.
    """

    loss: float
    slope: _Floats
    curve: _Floats


def minimise(function: Callable[[_Floats], Slopes], start: _Floats) -> _Floats:
    """Find the minimum of a function: Newton steps, each halved until the value falls."""
    place, here = start, function(start)
    for _ in range(_STEPS):
        step = np.linalg.solve(here.curve, here.slope)
        gain = float(here.slope @ step)
        if gain < _TOLERANCE * max(1.0, abs(here.loss)):
            break
        rate = 1.0
        tried = function(place - step)
        while tried.loss > here.loss - 1e-4 * rate * gain and rate > 1e-6:
            rate /= 2
            tried = function(place - rate * step)
        place, here = place - rate * step, tried
    return place
