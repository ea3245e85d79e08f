"""Random orders beside the systems of a table, and the systems that are not significantly above them."""

import math

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.measuring import (
    FLOOR,
    KNOWN_ITEM_MEASURES,
    compare,
    near_random,
    random_floor,
    random_known_items,
)

NDCG = str(TASK1_MEASURES[0])
QIDS = [str(number) for number in range(12)]
QRELS = pd.DataFrame(
    [(qid, f"d{d}", 3 if d < 2 else 0) for qid in QIDS for d in range(20)], columns=["qid", "docno", "label"]
)
TOPICS = pd.DataFrame({"qid": QIDS})


def ranking(first: str, seed: int = 3) -> pd.DataFrame:
    """Rank the judged documents at random, or the relevant ones first."""
    scores = np.random.default_rng(seed).random(len(QRELS)) + (QRELS["label"] if first == "relevant" else 0)
    found = QRELS.assign(score=scores).sort_values(["qid", "score"], ascending=[True, False])
    return found.assign(rank=found.groupby("qid").cumcount())[["qid", "docno", "score", "rank"]]


@pytest.mark.parametrize(("right", "documents"), [(1, 30), (3, 30), (2, 5)])
def test_known_items_of_a_random_order_are_the_exact_expectation(right: int, documents: int) -> None:
    qrels = pd.DataFrame({"qid": "1", "docno": [f"d{d}" for d in range(right)], "label": 1})
    exact = random_known_items(qrels, documents).set_index("measure")["value"]
    random, reciprocal, recall = np.random.default_rng(1), [], []
    for _ in range(20_000):
        places = 1 + np.flatnonzero(random.permutation(documents) < right)
        reciprocal.append(1 / places[0] if places[0] <= 10 else 0.0)
        recall.append((places <= 10).sum() / right)
    assert exact["RR@10"] == pytest.approx(np.mean(reciprocal), abs=0.01)
    assert exact["R@10"] == pytest.approx(np.mean(recall), abs=0.01)
    assert exact.index.tolist() == list(map(str, KNOWN_ITEM_MEASURES))


def test_the_table_ends_with_the_random_order_and_names_what_is_near_it() -> None:
    floor = random_floor(QRELS)
    found = compare({"good": ranking("relevant"), "chance": ranking("any")}, TOPICS, QRELS, floor)
    assert found.table["name"].tolist() == ["good", "chance", FLOOR]
    assert found.table[NDCG].iloc[2] == pytest.approx(floor[floor["measure"] == NDCG]["value"].mean())
    (remark,) = found.remark("Train on more pairs.")
    assert "chance 0." in remark
    assert "good" not in remark
    assert "12 topics" in remark
    assert remark.endswith("Train on more pairs.")


def test_topics_that_do_not_tell_the_baseline_from_a_random_order_are_too_few() -> None:
    rankings = {"baseline": ranking("any"), "good": ranking("relevant")}
    (remark,) = compare(rankings, TOPICS, QRELS, random_floor(QRELS)).remark("Train on more pairs.")
    assert "too few to tell systems apart" in remark
    assert "Train" not in remark


def test_a_system_below_the_random_order_is_near_it_and_one_without_a_result_has_zero() -> None:
    floor = pd.DataFrame({"qid": list("abcd"), "value": [0.5, 0.5, 0.6, 0.4]})
    below = pd.DataFrame({"name": "below", "qid": list("abcd"), "value": [0.1, 0.2, math.nan, 0.1]})
    above = pd.DataFrame({"name": "above", "qid": list("abcd"), "value": [0.9, 0.8, 0.9, 0.8]})
    (remark,) = near_random(pd.concat([below, above]), floor, NDCG, "Train.")
    assert "(nDCG' 0.5000): below 0.1000 (p = 0.0" in remark  # significantly below
    assert "above 0." not in remark
    assert near_random(above, floor, NDCG, "Train.") == ()


def test_a_gain_on_few_topics_is_not_yet_above_the_random_order() -> None:
    floor = pd.DataFrame({"qid": ["a", "b"], "value": [0.5, 0.5]})
    own = pd.DataFrame({"name": "x", "qid": ["a", "b"], "value": [0.6, 0.9]})
    assert "x 0.7500" in near_random(own, floor, NDCG, "Train.")[0]
