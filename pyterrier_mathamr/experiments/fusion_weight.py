"""What MaxSim counts beside BM25: the measure of each weight, to be looked at.

The weight itself is fitted, see ``systems.fit_fusion_weight``: the first ten results of known items alone often say 0
for a side that helps further down.
"""

from __future__ import annotations

import warnings

import ir_measures
import pandas as pd
from ir_measures import RR

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.systems import fit_fusion_weight, fuse_rankings

WEIGHTS = tuple(step / 20 for step in range(21))


def fusion_weights(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Measure the fusion of two rankings with each weight.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        qrels: ``qid``, ``docno``, ``label``.

    Returns:
        ``weight`` (what ``right`` counts, 0 to 1 in steps of 0.05) and ``RR@10``.
    """
    rows = []
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    for weight in WEIGHTS:
        fused = fuse_rankings(left, right, weight, num_results=10)
        run = fused.rename(columns={"qid": "query_id", "docno": "doc_id"})[["query_id", "doc_id", "score"]]
        rows.append((weight, ir_measures.calc_aggregate([RR @ 10], judged, run)[RR @ 10]))
    table: pd.DataFrame = pd.DataFrame(rows, columns=["weight", "RR@10"])
    return table


def fitted_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Fit what ``right`` counts, or say half, with a warning, where the questions cannot tell.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        qrels: ``qid``, ``docno``, ``label``.
    """
    try:
        return fit_fusion_weight(left, right, qrels)
    except NothingToFitError as error:
        warnings.warn(f"the fusion's weight is 0.5: {error}", MathAMRWarning, stacklevel=2)
        return 0.5
