"""Submissions to Task 3: six columns, the last a text, and the way to their judgments."""

import csv
import warnings
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.arqmath import ARQMathError, BadRowWarning, read_answers, read_run, task3_scores, write_answers
from pyterrier_mathamr.arqmath.runs import ANSWER_LIMIT

# As the organizers' own converter from Task 1 writes it: minimal quoting, CR LF.
OFFICIAL = (
    "A.301\t1\t12.5\trun\t1859\tLet $x>0$, then \\frac{1}{x}>0.\r\n"
    'A.302\t1\t3\trun\trun\t"Say ""yes""\twith a tab\nand a second line"\r\n'
)


def test_the_six_columns_are_read_with_quotes_tabs_and_lines_in_the_answer(tmp_path: Path) -> None:
    (tmp_path / "run.tsv").write_text(OFFICIAL, newline="")
    assert read_answers(tmp_path / "run.tsv").to_dict("list") == {
        "qid": ["A.301", "A.302"],
        "qanswer": ["Let $x>0$, then \\frac{1}{x}>0.", 'Say "yes"\twith a tab\nand a second line'],
        "score": [12.5, 3.0],
        "run": ["run", "run"],
        "sources": ["1859", "run"],
    }


def test_output_has_six_columns_and_rank_1(tmp_path: Path) -> None:
    answers = pd.DataFrame({"qid": ["A.301", "A.302"], "qanswer": ['By "induction"', "It\tdoes"]})
    write_answers(answers, tmp_path / "run.tsv", name="my run")
    with (tmp_path / "run.tsv").open(newline="", encoding="utf-8") as stream:
        assert list(csv.reader(stream, delimiter="\t")) == [
            ["A.301", "1", "1.0", "my_run", "my_run", 'By "induction"'],
            ["A.302", "1", "1.0", "my_run", "my_run", "It\tdoes"],
        ]
    write_answers(answers.assign(sources=["1859", None]), tmp_path / "run.tsv", name="mine")
    assert read_answers(tmp_path / "run.tsv").sources.tolist() == ["1859", "mine"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(["A.1", "A.2", "A.3"]),
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
            st.floats(-1e9, 1e9),
        ),
        min_size=1,
    )
)
def test_output_is_read_back(tmp_path: Path, answers: dict[str, tuple[str, float]]) -> None:
    rows = [(topic, text, score) for topic, (text, score) in answers.items()]
    write_answers(pd.DataFrame(rows, columns=["qid", "qanswer", "score"]), tmp_path / "run")
    again = read_answers(tmp_path / "run")
    assert [*zip(again.qid, again.qanswer, again.score, strict=True)] == rows


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"qid": ["A.1", "A.1"]}, "A.1 has more than one answer"),
        ({"qanswer": ["yes", " "]}, "A.2 has no answer"),
        ({"qanswer": ["yes", None]}, "A.2 has no answer"),
        ({"qanswer": ["x" * (ANSWER_LIMIT + 1), "no"]}, "1,201 characters"),
        ({"score": [1.0, float("nan")]}, "missing or no number"),
        ({"score": [1.0, "best"]}, "missing or no number"),
        ({"qanswer": ["yes", "half \udcff"]}, "A.2 has a lone surrogate"),
        ({"qanswer": None}, "it is missing"),
    ],
)
def test_an_invalid_submission_is_refused_and_the_old_file_stays(
    tmp_path: Path, change: dict[str, list[object] | None], named: str
) -> None:
    (tmp_path / "run").write_text("old")
    good = {"qid": ["A.1", "A.2"], "qanswer": ["x" * ANSWER_LIMIT, "no"], "score": [1.0, 2.0]}
    bad = {column: values for column, values in {**good, **change}.items() if values is not None}
    with pytest.raises(ARQMathError, match=named):
        write_answers(pd.DataFrame(bad, dtype=object), tmp_path / "run")  # pyarrow's texts have no lone surrogates
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    write_answers(pd.DataFrame(good), tmp_path / "run")
    assert len(read_answers(tmp_path / "run")) == 2


def test_lines_of_other_forms_and_scores_that_are_not_numbers_are_reported(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("A.1\t5\t1\t0.5\trun\n\nA.2\t1\tbest\trun\t-\tyes\nA.3\t1\t1\trun\t-\tno\n")
    with pytest.warns(BadRowWarning) as caught:
        assert read_answers(tmp_path / "run").qid.tolist() == ["A.3"]
    reports = [warning.message for warning in caught if isinstance(warning.message, BadRowWarning)]
    assert [(report.code, report.line) for report in reports] == [("R501", 1), ("R502", 3)]
    (tmp_path / "run").write_text(f"A.1\t1\t1\trun\t-\t{'x' * 2000}\n")
    with pytest.warns(BadRowWarning, match="R505"):
        assert read_answers(tmp_path / "run").qanswer.str.len().tolist() == [2000]


def test_an_open_quotation_mark_and_a_submission_read_as_a_ranking_are_errors(tmp_path: Path) -> None:
    (tmp_path / "run").write_text('A.1\t1\t1\trun\t-\t"open\nA.2\t1\t1\trun\t-\tyes\n')
    with pytest.raises(ARQMathError, match="never closed"):
        read_answers(tmp_path / "run")
    (tmp_path / "run").write_text("A.301\t1\t12.5\trun\t1859\tLet $x$ be positive.\n")
    with pytest.raises(ARQMathError, match="read_answers"):
        read_run(tmp_path / "run")


def test_a_submission_is_scored_by_the_ids_under_which_it_was_judged(tmp_path: Path) -> None:
    (tmp_path / "my-run.tsv").write_text("".join(f"A.{i}\t1\t1\tx\t-\tanswer {i}\n" for i in (1, 2, 3)))
    answers = read_answers(tmp_path / "my-run.tsv")
    answers["docno"] = answers["qid"].map({"A.1": "d_1", "A.2": "d_2"})
    qrels = pd.DataFrame([("A.1", "d_1", 3), ("A.1", "d_9", 0), ("A.2", "d_2", 1)], columns=["qid", "docno", "label"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # all that are left are judged
        assert task3_scores(answers.dropna(subset=["docno"]), qrels) == (2.0, 0.5, 2, 2)
