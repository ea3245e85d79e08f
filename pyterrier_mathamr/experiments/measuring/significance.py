"""The paired t-test over topics."""

from __future__ import annotations

import math
import warnings
from dataclasses import astuple, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import stats

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The outcome of one test.

    Attributes:
        difference: mean of the first minus mean of the second.
        t: the statistic; NaN if the values of all topics are equal.
        p: two-sided, not corrected.
        corrected: ``p`` times the number of tests of the study, at most 1.
        significant: ``corrected`` is below 0.05.
    """

    difference: float
    t: float
    p: float
    corrected: float
    significant: bool

    NAMES: ClassVar[tuple[str, ...]] = ("difference", "t", "p", "p corrected", "significant")

    def columns(self) -> dict[str, float | bool]:
        """Return the values by their column names, in order."""
        return dict(zip(self.NAMES, astuple(self), strict=True))


def paired_test(values: npt.NDArray[np.float64], baseline: npt.NDArray[np.float64], tests: int) -> PairedTest:
    """Test whether two systems have the same mean over the same topics."""
    difference = values - baseline
    if len(difference) < 2 or not difference.any():
        return PairedTest(float(difference.mean()), math.nan, 1.0, 1.0, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # equal differences: t is infinite, p is 0
        t, p = stats.ttest_rel(values, baseline)
    corrected = min(1.0, float(p) * tests)
    return PairedTest(float(difference.mean()), float(t), float(p), corrected, corrected < ALPHA)
