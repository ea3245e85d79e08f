"""Run files in the forms of TREC and of ARQMath's submissions."""

from pathlib import Path

import ir_measures
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathError, read_run, write_run

TREC = "A.301 Q0 12 1 3.5 bm25\nA.301 Q0 14 2 1.5 bm25\nA.302 Q0 12 1 -2 bm25\n"
TASK1 = "A.301\t12\t1\t3.5\tbm25\nA.301\t14\t2\t1.5\tbm25\nA.302\t12\t1\t-2\tbm25\n"
TASK2 = "B.301\t77\t12\t1\t3.5\tbm25\nB.301\t78\t14\t2\t1.5\tbm25\nB.302\t77\t12\t1\t-2\tbm25\n"
READ = {
    "qid": ["A.301", "A.301", "A.302"],
    "docno": ["12", "14", "12"],
    "score": [3.5, 1.5, -2.0],
    "rank": [0, 1, 0],
    "run": ["bm25"] * 3,
}


@pytest.mark.parametrize("text", [TREC, TASK1, TREC.replace("Q0", "0"), TREC.replace("Q0", "_")])
def test_trec_and_task_1_are_distinguished_and_read_alike(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").write_text(text)
    assert read_run(tmp_path / "run").to_dict("list") == READ


def test_the_six_columns_of_task_2_have_the_post_of_each_formula(tmp_path: Path) -> None:
    (tmp_path / "run").write_text(TASK2)
    frame = read_run(tmp_path / "run")
    assert frame.docno.tolist() == ["77", "78", "77"]
    assert frame.post_id.tolist() == ["12", "14", "12"]
    assert frame.score.tolist() == READ["score"]
    (tmp_path / "run").write_text("B.1 0 12 1 3.5 x\n")  # looks like TREC's
    assert read_run(tmp_path / "run", "task2")[["docno", "post_id"]].to_numpy().tolist() == [["0", "12"]]
    with pytest.raises(ConfigError, match="trek"):
        read_run(tmp_path / "run", "trek")  # type: ignore[arg-type]
    (tmp_path / "run").write_text("\n")
    assert (list(read_run(tmp_path / "run").columns), len(read_run(tmp_path / "run"))) == (list(READ), 0)


def test_answers_are_ordered_by_score_and_equal_ones_as_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("A.2 b 1 1.0 x\nA.1 c 1 0.5 x\nA.1 a 2 0.5 x\nA.1 d 3 0.7 x\nA.2 a 2 1.0 x\n")
    frame = read_run(tmp_path / "run")
    ranked = [("A.2", "b", 0), ("A.2", "a", 1), ("A.1", "d", 0), ("A.1", "c", 1), ("A.1", "a", 2)]
    assert [*zip(frame.qid, frame.docno, frame["rank"], strict=True)] == ranked
    texts = pd.DataFrame({"qid": "A.1", "docno": ["5", "6"], "score": ["9.5", "10"]})
    write_run(texts, tmp_path / "run", "task1")  # texts are ordered as numbers
    assert read_run(tmp_path / "run").docno.tolist() == ["6", "5"]
    assert (tmp_path / "run").read_text().startswith("A.1\t6\t1\t10.0")


@pytest.mark.parametrize(("format", "text"), [("trec", TREC), ("task1", TASK1), ("task2", TASK2)])
def test_output_has_the_columns_of_its_form(tmp_path: Path, format: str, text: str) -> None:
    (tmp_path / "in").write_text(text)
    write_run(read_run(tmp_path / "in"), tmp_path / "out", format, name="bm25")  # type: ignore[arg-type]
    expected = text.replace("-2", "-2.0").replace(" ", "\t")
    assert (tmp_path / "out").read_text() == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in", "out"]


WORD = st.text("abcXYZ.123", min_size=1, max_size=5)
SCORE = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.tuples(st.sampled_from(["A.1", "A.2"]), WORD), st.tuples(SCORE, WORD), min_size=1),
    st.sampled_from(["trec", "task1", "task2"]),
)
def test_output_is_read_back(tmp_path: Path, rows: dict[tuple[str, str], tuple[float, str]], format: str) -> None:
    run = pd.DataFrame(
        [(qid, docno, score, post) for (qid, docno), (score, post) in rows.items()],
        columns=["qid", "docno", "score", "post_id"],
    )
    write_run(run, tmp_path / "run", format, name="a b")  # type: ignore[arg-type]
    again = read_run(tmp_path / "run", format)  # type: ignore[arg-type]
    assert {(r.qid, r.docno): r.score for r in again.itertuples()} == {key: score for key, (score, _) in rows.items()}
    assert set(again.run) == {"a_b"}
    if format == "task2":
        posts = {key: post for key, (_, post) in rows.items()}
        assert {(r.qid, r.docno): r.post_id for r in again.itertuples()} == posts


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        ("docno", "two words", "'two words' of topic 'A.1'"),
        ("docno", "", "'' of topic 'A.1'"),
        ("score", float("nan"), "nan of topic 'A.1'"),
        ("score", "high", "'high' of topic 'A.1'"),
        ("post_id", None, "it is missing"),
    ],
)
def test_a_value_that_would_break_a_line_is_refused_and_the_old_file_stays(
    tmp_path: Path, column: str, value: object, named: str
) -> None:
    (tmp_path / "run").write_text("old")
    row = {"qid": "A.1", "docno": "5", "score": 1.0, "post_id": "7"}
    if value is None:
        del row[column]
    else:
        row[column] = value
    with pytest.raises(ARQMathError, match=f"column '{column}' of a run in the format task2: {named}"):
        write_run(pd.DataFrame([row]), tmp_path / "run", "task2")
    assert (tmp_path / "run").read_text() == "old"
    write_run(pd.DataFrame([{"qid": "A.1", "docno": "5", "score": 1.0, "post_id": "7"}]), tmp_path / "run", "task2")
    assert (tmp_path / "run").read_text() == "A.1\t5\t7\t1\t1.0\tmathamr\n"


@pytest.mark.parametrize("format", ["trec", "task1"])
def test_the_measures_of_a_run_read_from_a_file_equal_pytrec_eval_s(tmp_path: Path, format: str) -> None:
    qrels = {"A.1": {str(i): (i * 7) % 4 for i in range(40)}, "A.2": {"3": 2, "4": 0}, "A.3": {"1": 1}}
    run = {topic: {str(i): float((i * 13) % 17) for i in range(60)} for topic in ("A.1", "A.2", "A.4")}
    rows = [(qid, docno, score) for qid, scores in run.items() for docno, score in scores.items()]
    write_run(pd.DataFrame(rows, columns=["qid", "docno", "score"]), tmp_path / "run", format)  # type: ignore[arg-type]

    frame = read_run(tmp_path / "run").rename(columns={"qid": "query_id", "docno": "doc_id"})
    ours = {(m.query_id, str(m.measure)): m.value for m in ir_measures.iter_calc(TASK1_MEASURES, qrels, frame)}

    prime = {"ndcg_cut_1000", "map_cut_1000", "P_10"}
    graded = pytrec_eval.RelevanceEvaluator(qrels, prime, judged_docs_only_flag=True).evaluate(run)
    binary = pytrec_eval.RelevanceEvaluator(qrels, prime, relevance_level=2, judged_docs_only_flag=True).evaluate(run)
    bpref = pytrec_eval.RelevanceEvaluator(qrels, {"bpref"}, relevance_level=2).evaluate(run)
    ndcg, average, precision, preference = map(str, TASK1_MEASURES)
    for topic in ("A.1", "A.2"):
        assert ours[topic, ndcg] == pytest.approx(graded[topic]["ndcg_cut_1000"], abs=1e-12)
        assert ours[topic, average] == pytest.approx(binary[topic]["map_cut_1000"], abs=1e-12)
        assert ours[topic, precision] == pytest.approx(binary[topic]["P_10"], abs=1e-12)
        assert ours[topic, preference] == pytest.approx(bpref[topic]["bpref"], abs=1e-12)
    assert 0 < ours["A.1", average] < 1
