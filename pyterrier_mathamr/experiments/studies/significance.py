"""Whether two systems differ: the paired t-test over topics, corrected for all tests of a study."""

from __future__ import annotations

import math
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
        difference: mean of the first less mean of the second.
        t: the statistic; not a number where the values of all topics are equal.
        p: two-tailed, not corrected.
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
        """Give the values under the names of a table's columns, in their order."""
        return dict(zip(self.NAMES, astuple(self), strict=True))


def paired_test(values: npt.NDArray[np.float64], baseline: npt.NDArray[np.float64], tests: int) -> PairedTest:
    """Test whether two systems have the same mean over the same topics.

    Args:
        values: float64 ``[topics]``.
        baseline: float64 ``[topics]``, the same topics in the same order.
        tests: number of tests of the study, by which Bonferroni's correction multiplies.

    Returns:
        The outcome; systems that do not differ on any topic are never significantly different.
    """
    difference = values - baseline
    if len(difference) < 2 or not difference.any():
        return PairedTest(float(difference.mean()), math.nan, 1.0, 1.0, False)
    t, p = stats.ttest_rel(values, baseline)
    corrected = min(1.0, float(p) * tests)
    return PairedTest(float(difference.mean()), float(t), float(p), corrected, corrected < ALPHA)
