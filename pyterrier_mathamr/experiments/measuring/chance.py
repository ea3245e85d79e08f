"""Random orders, to see how far above 0 the measures of any ranking are.

Where few documents are judged, the measures of any order are far above 0, so that a system that ranks no better than
chance can look good. Every table has the row of a random order:

* of the judged documents of each topic (:func:`random_floor`), the mean over 200 shuffles with a fixed seed. It ranks
  all of the judged, a system only those that it finds, so a system can be below it;
* of all answers, for known items (:func:`random_known_items`), whose measures are exact expectations.
"""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES

from .rankings import ALIASES, KNOWN_ITEM_MEASURES

DRAWS = 200
FLOOR = "random order of the judged"
RANDOM_ANSWERS = "random order of all answers"
RANDOM_FORMULAS = "random order of all formulas"
_CUTOFF = 10


def random_floor(qrels: pd.DataFrame, *, draws: int = DRAWS, seed: int = 42) -> pd.DataFrame:
    """Measure random orders of each topic's judged documents."""
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


def random_known_items(qrels: pd.DataFrame, documents: int) -> pd.DataFrame:
    """Compute what a random order of all documents has on known items, in expectation."""
    rows: list[tuple[str, str, float]] = []
    depth = min(_CUTOFF, documents)
    reciprocal, recall = map(str, KNOWN_ITEM_MEASURES)
    for qid, right in qrels.groupby("qid", sort=False).size().items():
        orders = math.comb(documents, right)
        places = (math.comb(documents - i, right - 1) / orders / i for i in range(1, depth + 1))
        rows += [(str(qid), reciprocal, sum(places)), (str(qid), recall, depth / documents)]
    table: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "measure", "value"])
    return table
