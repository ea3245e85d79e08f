"""AR' and P'@1, against their definition written out plainly."""

import pickle
from pathlib import Path

import ir_measures
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.arqmath import (
    TASK3_MEASURES,
    ARQMathCollection,
    ARQMathError,
    MissingFileError,
    read_qrels,
    task3_scores,
)
from pyterrier_mathamr.arqmath.measures import AVERAGE_RELEVANCE

DOC = st.integers(0, 8).map("d_{}".format)
TOPIC = st.sampled_from(["A.1", "A.2", "A.3"])
QRELS = st.dictionaries(TOPIC, st.dictionaries(DOC, st.integers(0, 3), min_size=1), min_size=1)
RUN = st.dictionaries(TOPIC, st.dictionaries(DOC, st.integers(0, 3).map(float), min_size=1), min_size=1)


def first_grade(scores: dict[str, float], grades: dict[str, int]) -> int | None:
    """The grade of the first judged answer; of equal scores the larger id is first, as in trec_eval."""
    judged = [(score, docno) for docno, score in scores.items() if docno in grades]
    return grades[max(judged)[1]] if judged else None


def frame(table: dict[str, dict[str, float]] | dict[str, dict[str, int]], column: str) -> pd.DataFrame:
    rows = [(qid, docno, value) for qid, row in table.items() for docno, value in row.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", column])


@settings(max_examples=50)
@given(RUN, QRELS)
def test_a_topic_without_a_judged_answer_counts_0_in_the_measures(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]
) -> None:
    grades = {topic: first_grade(run.get(topic, {}), qrels[topic]) or 0 for topic in qrels}
    values = {(m.query_id, m.measure): m.value for m in ir_measures.iter_calc(TASK3_MEASURES, qrels, run)}
    relevance, precision = TASK3_MEASURES
    assert values == {
        **{(topic, relevance): grades[topic] for topic in qrels},
        **{(topic, precision): float(grades[topic] >= 2) for topic in qrels},
    }
    mean = ir_measures.calc_aggregate(TASK3_MEASURES, qrels, run)
    assert mean[relevance] == pytest.approx(sum(grades.values()) / len(grades))
    assert mean[precision] == pytest.approx(sum(grade >= 2 for grade in grades.values()) / len(grades))


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")
@settings(max_examples=50)
@given(RUN, QRELS)
def test_the_organizers_means_are_over_the_topics_with_a_judged_answer(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]
) -> None:
    found = [first_grade(run[topic], qrels.get(topic, {})) for topic in run]
    grades = [grade for grade in found if grade is not None]
    if not grades:
        with pytest.raises(ARQMathError):
            task3_scores(frame(run, "score"), frame(qrels, "label"))
        return
    assert task3_scores(frame(run, "score"), frame(qrels, "label")) == (
        pytest.approx(sum(grades) / len(grades)),
        pytest.approx(sum(grade >= 2 for grade in grades) / len(grades)),
        len(grades),
        len(run),
    )


def test_an_error_survives_a_worker_process() -> None:
    error = MissingFileError("links", Path("ARQMath"), ("links.tsv", "PostLinks.xml"))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error) == (
        "ARQMath: there are no links. Looked for links.tsv, PostLinks.xml. "
        "Download them from https://www.cs.rit.edu/~dprl/ARQMath/arqmath-resources.html"
    )


def test_codes_5_and_6_are_unjudged_or_grade_0_and_never_grades(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("A.1 0 d_1 5\nA.2 0 d_2 6\nA.3 0 d_3 2\n")
    with pytest.warns(MathAMRWarning, match="code 5"):
        assert [(q.doc_id, q.relevance) for q in read_qrels(tmp_path / "q.txt")] == [("d_3", 2)]
    zero = [(q.doc_id, q.relevance) for q in read_qrels(tmp_path / "q.txt", failures="zero")]
    assert zero == [("d_1", 0), ("d_2", 0), ("d_3", 2)]
    qrels = frame({"A.1": {"d_1": 3}}, "label")
    with pytest.warns(MathAMRWarning, match="1 of 2 topics have no judged answer"):
        scores = task3_scores(frame({"A.1": {"d_1": 1.0}, "A.2": {"d_2": 1.0}}, "score"), qrels)
    assert scores == (3.0, 1.0, 1, 2)
    with pytest.raises(ConfigError, match="keep"):
        read_qrels(tmp_path / "q.txt", failures="keep")  # type: ignore[arg-type]


def test_the_published_judgments_score_a_run_of_their_own_first_answers(shared_data: Path) -> None:
    collection = ARQMathCollection(shared_data / "arqmath-mini")
    rows = [(q.query_id, q.doc_id, q.relevance) for q in collection.qrels(2022, 3, failures="zero")]
    assert len(rows) == 792
    qrels = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    best = qrels.sort_values("label", kind="stable").groupby("qid").tail(1).assign(score=1.0)
    expected = qrels.groupby("qid").label.max()
    scores = task3_scores(best, qrels)
    assert scores == (pytest.approx(expected.mean()), pytest.approx((expected >= 2).mean()), 78, 78)
    assert ir_measures.calc_aggregate(
        [AVERAGE_RELEVANCE],
        qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"}),
        best.rename(columns={"qid": "query_id", "docno": "doc_id"}),
    )[AVERAGE_RELEVANCE] == pytest.approx(scores.average_relevance)
