"""The measures equal what they are defined as: unjudged documents out, then scored plainly."""

import math
import pickle

import ir_measures
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, P, nDCG

import pyterrier_mathamr
from pyterrier_mathamr.arqmath import JUDGED, TASK1_MEASURES, TASK2_MEASURES

Grades = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]


def ranked(scores: dict[str, float], grades: dict[str, int]) -> list[int]:
    """The grades of the judged documents, best score first; trec_eval breaks ties by the larger id."""
    order = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)
    return [grades[doc] for doc in order if doc in grades]


def ndcg(found: list[int], grades: dict[str, int], cutoff: int) -> float:
    def gain(row: list[int]) -> float:
        return sum(grade / math.log2(i + 2) for i, grade in enumerate(row[:cutoff]))

    best = gain(sorted(grades.values(), reverse=True))
    return gain(found) / best if best else 0.0


def average_precision(found: list[int], grades: dict[str, int], cutoff: int) -> float:
    relevant = sum(grade >= 2 for grade in grades.values())
    hits, total = 0, 0.0
    for rank, grade in enumerate(found[:cutoff], 1):
        if grade >= 2:
            hits += 1
            total += hits / rank
    return total / relevant if relevant else 0.0


def precision(found: list[int], grades: dict[str, int], cutoff: int) -> float:
    return sum(grade >= 2 for grade in found[:cutoff]) / cutoff


def bpref(found: list[int], grades: dict[str, int], cutoff: int) -> float:
    relevant = sum(grade >= 2 for grade in grades.values())
    others = len(grades) - relevant
    above, total = 0, 0.0
    for grade in found:
        if grade < 2:
            above += 1
        else:
            total += 1 - (min(above, relevant) / min(others, relevant) if above else 0)
    return total / relevant if relevant else 0.0


MEASURES = [
    *zip(TASK1_MEASURES, (ndcg, average_precision, precision, bpref), (1000, 1000, 10, 0), strict=True),
    # The same with a cut-off that bites on runs of this size: the unjudged go before it, not after.
    (nDCG(judged_only=True) @ 3, ndcg, 3),
    (AP(rel=2, judged_only=True) @ 3, average_precision, 3),
    (P(rel=2, judged_only=True) @ 3, precision, 3),
]

DOC = st.integers(0, 30).map(str)
GRADES = st.dictionaries(DOC, st.integers(0, 3), min_size=1)
# Few distinct scores, so that ties are many.
RUN = st.dictionaries(DOC, st.integers(0, 12).map(float), min_size=1)


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


def judged_at(scores: dict[str, float], grades: dict[str, int], cutoff: int, *, first: bool) -> float:
    """Order judged documents first, or last, among equal scores: ir_measures orders them differently for Judged."""
    order = sorted(scores, key=lambda doc: (scores[doc], (doc in grades) == first), reverse=True)
    return sum(doc in grades for doc in order[:cutoff]) / min(cutoff, len(order)) if order else 0.0


ANY_TOPICS = st.dictionaries(st.sampled_from(["A.1", "A.2", "A.3", "A.4"]), GRADES, min_size=1)
ANY_RUN = st.dictionaries(st.sampled_from(["A.1", "A.2", "A.3", "A.5"]), RUN)


@settings(max_examples=60)
@given(ANY_TOPICS, ANY_RUN)
def test_topics_without_results_relevant_or_judged_documents_count_0_and_without_judgments_nothing(
    qrels: Grades, run: Scores
) -> None:
    expected = {}
    for topic, grades in qrels.items():
        scores = run.get(topic, {})
        for measure, plain, cutoff in MEASURES:
            expected[topic, measure] = plain(ranked(scores, grades), grades, cutoff)
    measures = [measure for measure, _, _ in MEASURES]
    values = {(m.query_id, m.measure): m.value for m in ir_measures.iter_calc(measures, qrels, run)}
    for topic, value in compute(JUDGED, qrels, run).items():
        limits = [judged_at(run.get(topic, {}), qrels[topic], 10, first=first) for first in (False, True)]
        assert limits[0] <= value <= limits[1]
    assert values == pytest.approx(expected, abs=1e-9)
    means = ir_measures.calc_aggregate(measures, qrels, run)
    for measure in measures:
        rows = [value for (_, of), value in expected.items() if of == measure]
        assert means[measure] == pytest.approx(sum(rows) / len(qrels), abs=1e-9)


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
