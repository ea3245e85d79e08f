"""The measures equal what they are defined as: unjudged documents out, then scored plainly."""

import math
import pickle

import ir_measures
import pandas as pd
import pytest
from ir_measures import AP, P, nDCG

import pyterrier_mathamr
from pyterrier_mathamr.arqmath import JUDGED, TASK1_MEASURES, TASK2_MEASURES

Grades = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]


def compute(measure: object, qrels: Grades, run: Scores) -> dict[str, float]:
    return {value.query_id: value.value for value in ir_measures.iter_calc([measure], qrels, run)}


def test_unjudged_documents_change_nothing_wherever_they_stand() -> None:
    qrels = {"A.1": {"a": 3, "b": 0, "c": 2}}
    judged = {"A.1": {"a": 3.0, "b": 2.0, "c": 1.0}}
    with_unjudged = {"A.1": {**judged["A.1"], **{f"u{i}": 2.5 + i for i in range(20)}}}
    for measure in TASK1_MEASURES:
        assert compute(measure, qrels, judged) == compute(measure, qrels, with_unjudged)
    plain = P(rel=2) @ 10
    assert compute(plain, qrels, judged) != compute(plain, qrels, with_unjudged)


def test_a_grade_of_1_is_judged_but_not_relevant() -> None:
    qrels = {"A.1": {"a": 1, "b": 2}}
    values = [compute(measure, qrels, {"A.1": {"a": 2.0, "b": 1.0}})["A.1"] for measure in TASK1_MEASURES]
    gain = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    assert values == pytest.approx([gain, 0.5, 0.1, 0.0])


def test_topics_without_results_relevant_or_judged_documents_count_0_and_without_judgments_nothing() -> None:
    qrels = {"good": {"a": 3}, "no results": {"a": 3}, "not relevant": {"a": 0}, "not judged": {"a": 3}}
    run = {"good": {"a": 1.0, "x": 2.0}, "not relevant": {"a": 1.0}, "not judged": {"x": 1.0}, "none": {"a": 1.0}}
    for measure, best in zip(TASK1_MEASURES, (1.0, 1.0, 0.1, 1.0), strict=True):
        assert compute(measure, qrels, run) == {**dict.fromkeys(qrels, 0.0), "good": pytest.approx(best)}
        assert ir_measures.calc_aggregate([measure], qrels, run)[measure] == pytest.approx(best / 4)
    ties = {"A.1": dict.fromkeys("abc", 1.0)}  # trec_eval puts the larger id first, whatever the order of the run
    assert compute(P(rel=2, judged_only=True) @ 1, {"A.1": {"a": 0, "c": 3}}, ties) == {"A.1": 1.0}
    first = {"A.1": {"u": 3.0, "a": 2.0, "b": 1.0}}  # the unjudged go before the cutoff, not after
    assert compute(P(rel=2, judged_only=True) @ 1, {"A.1": {"a": 3, "b": 0}}, first) == {"A.1": 1.0}


def test_an_equal_measure_finds_the_values_of_ours() -> None:
    frames = pd.DataFrame({"query_id": ["A.1"], "doc_id": ["a"], "relevance": [2]}), {"A.1": {"a": 1.0}}
    equal = [nDCG(judged_only=True) @ 1000, AP(rel=2, judged_only=True) @ 1000, P(rel=2, judged_only=True) @ 10]
    means = ir_measures.calc_aggregate(TASK1_MEASURES, *frames)
    assert [means[measure] for measure in equal] == pytest.approx([1, 1, 0.1])
    names = ["nDCG(judged_only=True)@1000", "AP(rel=2,judged_only=True)@1000", "P(rel=2,judged_only=True)@10"]
    assert [*map(str, TASK1_MEASURES)] == [*names, "Bpref(rel=2)"]
    assert pyterrier_mathamr.TASK1_MEASURES is TASK1_MEASURES
    assert TASK2_MEASURES == TASK1_MEASURES
    assert JUDGED not in TASK1_MEASURES, "it is no measure of quality, whose differences are tested"
    for measure in TASK1_MEASURES:
        assert hash(measure) == hash(ir_measures.parse_measure(str(measure)))
        assert pickle.loads(pickle.dumps(measure)) == measure
