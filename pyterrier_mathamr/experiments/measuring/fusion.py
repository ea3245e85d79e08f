"""The weight of a fusion: measured at each value, and fitted."""

from __future__ import annotations

import warnings

import ir_measures
import pandas as pd
from ir_measures import RR

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.fusion import fit_fusion_weight, fuse_rankings

from .rankings import ALIASES

WEIGHTS = tuple(step / 20 for step in range(21))


def fusion_weights(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Measure the fusion of two rankings at each weight, for inspection; see :func:`fitted_weight` for the choice."""
    rows = []
    judged = qrels.rename(columns=ALIASES)
    for weight in WEIGHTS:
        run = fuse_rankings(left, right, weight, num_results=10).rename(columns=ALIASES)
        rows.append((weight, ir_measures.calc_aggregate([RR @ 10], judged, run)[RR @ 10]))
    table: pd.DataFrame = pd.DataFrame(rows, columns=["weight", "RR@10"])
    return table


def fitted_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Fit the weight of ``right`` in a fusion; 0.5, with a warning, if the questions do not determine one."""
    try:
        return fit_fusion_weight(left, right, qrels)
    except NothingToFitError as error:
        warnings.warn(f"the fusion weight is 0.5: {error}", MathAMRWarning, stacklevel=2)
        return 0.5
