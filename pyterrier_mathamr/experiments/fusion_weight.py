"""Choosing what MaxSim counts beside BM25, on the validation questions."""

from __future__ import annotations

import ir_measures
import pandas as pd
from ir_measures import RR

from pyterrier_mathamr.systems import fuse_rankings

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


def best_weight(table: pd.DataFrame) -> float:
    """Give the weight of the highest ``RR@10``, the smallest of equal ones.

    Args:
        table: of :func:`fusion_weights`.
    """
    return float(table.sort_values(["RR@10", "weight"], ascending=[False, True], kind="stable")["weight"].iloc[0])
