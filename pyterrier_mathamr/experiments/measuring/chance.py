"""Random orders: how far above 0 the measures of any ranking are."""

from __future__ import annotations

import ir_measures
import numpy as np
import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES

from .rankings import ALIASES

DRAWS = 200


def random_floor(qrels: pd.DataFrame, *, draws: int = DRAWS, seed: int = 42) -> pd.DataFrame:
    """Measure random orders of each topic's judged documents.

    In a part of the release few documents are judged, so that nDCG' is far above 0 for any order; this is how far.

    Args:
        qrels: ``qid``, ``docno``, ``label``.
        draws: orders of each topic, at least 1.
        seed: of the random generator.

    Returns:
        ``qid``, ``measure``, ``value``: the mean of each measure of Task 1 over the draws.
    """
    random = np.random.default_rng(seed)
    judged = qrels.rename(columns=ALIASES)
    values = []
    for _ in range(draws):
        run = judged[["query_id", "doc_id"]].assign(score=random.permutation(len(judged)).astype(float))
        found = ir_measures.iter_calc(TASK1_MEASURES, judged, run)
        values.append(pd.Series({(metric.query_id, str(metric.measure)): metric.value for metric in found}))
    names = pd.MultiIndex.from_product([qrels["qid"].drop_duplicates(), map(str, TASK1_MEASURES)])
    mean = pd.Series(sum(values) / draws, name="value").reindex(names)
    table: pd.DataFrame = mean.rename_axis(["qid", "measure"]).reset_index()
    return table
