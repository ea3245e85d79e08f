from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments import markdown_table, measure
from pyterrier_mathamr.experiments.measuring import (
    KNOWN_ITEM_MEASURES,
    fitted_weight,
    fusion_weights,
    measure_by_topic,
    run_systems,
)

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
MAP, P10 = map(str, TASK1_MEASURES[1:3])
TOPICS = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["a", "b", "c"]})
QRELS = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["x", "y", "x"], "label": [3, 0, 2]})
GOOD = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["x", "y", "x"], "score": [2.0, 1.0, 1.0], "rank": [0, 1, 0]})
BAD = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["y", "x", "y"], "score": [2.0, 1.0, 1.0], "rank": [0, 1, 0]})
UNJUDGED = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["u", "x", "u"], "score": [2.0, 1.0, 1.0], "rank": [0, 1, 0]})


def test_unjudged_answers_and_topics_without_judgments_are_left_out() -> None:
    table = measure({"good": GOOD, "bad": BAD, "unjudged": UNJUDGED}, TOPICS, QRELS).set_index("name")
    assert table[MAP].tolist() == [1.0, 0.25, 0.5]
    assert table[P10].tolist() == pytest.approx([0.1, 0.05, 0.05])
    assert {f"{MAP} reject", "Bpref(rel=2) p-value corrected"} <= set(table.columns)


def test_tables_come_in_one_order_whatever_the_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """pt.Experiment has measures, and the topics that a system does not find, in the order of a set."""
    rankings, real = {"good": GOOD, "bad": BAD}, pt.Experiment
    qrels = pd.concat([QRELS, QRELS.assign(qid=QRELS.qid + "0")])
    topics, names = qrels[["qid"]].drop_duplicates(), list(map(str, TASK1_MEASURES))
    table, by_topic = measure(rankings, topics, qrels), measure_by_topic(rankings, topics, qrels)
    blocks = [column for name in reversed(names) for column in table.columns if column.startswith(f"{name} ")]

    def reordered(*arguments: Any, **options: Any) -> pd.DataFrame:
        found = real(*arguments, **options)
        return found.iloc[::-1] if options.get("perquery") else found[["name", *reversed(names), *blocks]]

    monkeypatch.setattr(pt, "Experiment", reordered)
    pd.testing.assert_frame_equal(measure(rankings, topics, qrels), table)
    pd.testing.assert_frame_equal(measure_by_topic(rankings, topics, qrels), by_topic)
    assert table.columns.tolist()[:5] == ["name", *names]
    assert by_topic.measure.tolist() == names * 8
    assert by_topic.qid.tolist()[::4] == topics.qid.tolist() * 2
    assert markdown_table(table[["name", *reversed(names), *blocks]]) == markdown_table(table)


def test_values_by_topic_average_to_the_table() -> None:
    by_topic = measure_by_topic({"bad": BAD}, TOPICS, QRELS)
    values = by_topic[by_topic.measure == MAP].set_index("qid").value
    assert values.to_dict() == {"1": 0.5, "2": 0.0}


@pytest.mark.parametrize("measures", [TASK1_MEASURES, KNOWN_ITEM_MEASURES, [*KNOWN_ITEM_MEASURES, TASK1_MEASURES[0]]])
def test_rows_that_no_measure_reads_may_be_missing(measures: list[object]) -> None:
    chance = np.random.default_rng(7)
    rows = [(str(q), f"d{d}", chance.integers(0, 30) / 3 + 1e-9 * d) for q in range(20) for d in range(60)]  # with ties
    ranking = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    ranking = ranking.sort_values(["qid", "score"], ascending=[True, False])
    ranking["rank"] = ranking.groupby("qid").cumcount()
    judged = [(str(q), f"d{d}", int(chance.integers(0, 4))) for q in range(25) for d in range(0, 90, 4)]
    qrels = pd.DataFrame(judged, columns=["qid", "docno", "label"])
    topics = qrels[["qid"]].drop_duplicates()
    found = measure_by_topic({"a": ranking}, topics, qrels, measures).set_index(["qid", "measure"]).value
    whole = ir_measures.iter_calc(
        measures,
        qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"}),
        ranking.rename(columns={"qid": "query_id", "docno": "doc_id"}),
    )
    expected = {(value.query_id, str(value.measure)): value.value for value in whole}
    assert found.fillna(0.0).to_dict() == pytest.approx(expected)


def test_each_system_searches_once_and_large_columns_are_dropped() -> None:
    calls = []

    def search(topics: pd.DataFrame) -> pd.DataFrame:
        calls.append(len(topics))
        return GOOD.assign(query_embs=None)

    rankings, costs = run_systems({"good": pt.apply.generic(search)}, TOPICS)
    assert calls == [3]
    assert rankings["good"].columns.tolist() == ["qid", "docno", "score", "rank"]
    assert costs.name.tolist() == ["good"]


def test_known_items_measure_the_first_own_answer_and_the_share_of_own_answers() -> None:
    qrels = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["x", "z", "x"], "label": 1})
    table = measure({"good": GOOD, "bad": BAD}, TOPICS, qrels, KNOWN_ITEM_MEASURES).set_index("name")
    assert table["RR@10"].tolist() == [1.0, 0.25]
    assert table["R@10"].tolist() == [0.75, 0.25]


def test_each_weight_of_a_fusion_is_measured() -> None:
    qrels = QRELS[QRELS.label > 0]
    table = fusion_weights(BAD, GOOD, qrels)
    assert table["RR@10"].iloc[0] == 0.75  # of the second topic the weightless side alone knows x, at a tie
    assert table["RR@10"].iloc[-1] == 1.0
    assert table["weight"].tolist() == pytest.approx([step / 20 for step in range(21)])


def test_the_weight_is_fitted_and_half_where_the_questions_cannot_tell() -> None:
    assert fitted_weight(BAD, GOOD, QRELS[QRELS.label > 0]) > 0.5
    with pytest.warns(MathAMRWarning, match=r"0\.5"):
        assert fitted_weight(BAD, GOOD, QRELS.assign(label=0)) == 0.5


def test_a_system_that_finds_nothing_or_nothing_judged_scores_0() -> None:
    topics = pd.DataFrame({"qid": ["1", "2"]})
    qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "b"], "label": [3, 2]})
    other = pd.DataFrame({"qid": ["1"], "docno": ["c"], "score": [1.0], "rank": [0]})
    for ranking in (other, other.iloc[:0]):
        for measures in (TASK1_MEASURES, KNOWN_ITEM_MEASURES):
            values = measure_by_topic({"nothing": ranking}, topics, qrels, measures)
            assert values["qid"].value_counts().to_dict() == {"1": len(measures), "2": len(measures)}
            assert values["value"].tolist() == [0.0] * len(values)
