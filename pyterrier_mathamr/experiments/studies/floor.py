"""What chance gives: the judged answers of each topic in random order."""

from __future__ import annotations

import ir_measures
import numpy as np
import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES

DRAWS = 200


def random_floor(qrels: pd.DataFrame, *, draws: int = DRAWS, seed: int = 42) -> pd.DataFrame:
    """Measure rankings that hold each topic's judged answers in random order.

    On a part of the release few answers are judged, so that nDCG' is far from 0 whatever the order; this says how far.

    Args:
        qrels: ``qid``, ``docno``, ``label``.
        draws: orders of each topic.
        seed: of the draws.

    Returns:
        ``qid``, ``measure``, ``value``: the mean of each measure of Task 1 over the draws.
    """
    random = np.random.default_rng(seed)
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    total: pd.Series[float] | None = None
    for _ in range(draws):
        run = judged[["query_id", "doc_id"]].assign(score=random.permutation(len(judged)).astype(float))
        found = ir_measures.iter_calc(TASK1_MEASURES, judged, run)
        values = pd.Series({(metric.query_id, str(metric.measure)): metric.value for metric in found})
        total = values if total is None else total + values
    if total is None:
        raise ValueError(f"{draws} draws")
    table: pd.DataFrame = (total / draws).rename("value").rename_axis(["qid", "measure"]).reset_index()
    return table
