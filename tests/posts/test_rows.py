"""Rows as posts: which column is read, which ids formulas have, and warnings about delimiters."""

import pickle
import warnings

import pytest

from pyterrier_mathamr._common.feedback import PostWarning, explain_problem, gathered, report_problem, reported_once
from pyterrier_mathamr.posts import (
    MathPost,
    PostFormula,
    document_post,
    formula_id,
    parent_title,
    query_post,
)


def test_the_first_column_with_a_text_is_read_after_the_title() -> None:
    assert document_post({"html": None, "text": "b &amp; c", "title": "a"}).text == "a\nb & c"
    assert document_post({"markdown": "*b*", "title": float("nan")}).text == "b"
    assert document_post({"markdown": "# On $x$", "title": "A $t$"}).text == "A FORMULA_0\nOn FORMULA_1"
    assert document_post({"docno": "1"}) == MathPost("", ())
    assert query_post({"qid": "1", "title": "t", "body": " ", "query": "q"}).text == "q"
    assert query_post({"qid": "1", "title": "t", "body": "b", "query": "q"}).text == "t\nb"


def test_formulas_of_a_document_keep_their_id_or_get_one_by_their_number() -> None:
    html = '<span class="math-container" id="77">a</span> and $b$'
    assert [formula.id for formula in document_post({"docno": "d", "html": html, "title": "$t$"}).formulas] == [
        formula_id("d", 0), "77", "d#2",
    ]  # fmt: skip
    assert document_post({"html": "$b$"}).formulas == (PostFormula("b"),)  # no docno, no id
    assert query_post({"qid": "d", "query": "$b$"}).formulas == (PostFormula("b"),)


def test_the_title_of_a_question_keeps_its_ids_and_an_endless_one_is_reported_and_left_out() -> None:
    title = 'Is <span class="math-container" id="77">a</span> or $b$ odd?'
    assert parent_title({"docno": "d", "parent_title": title}).formulas == (PostFormula("a", "77"), PostFormula("b"))
    with gathered() as problems:
        assert parent_title({"docno": "d", "parent_title": "a" * 20_000}).text == "a" * 20_000
        assert parent_title({"docno": "d", "parent_title": "a" * 20_001}) == MathPost("", ())
    assert [(of.post, of.what) for of in problems] == [("d", "the title of its question is too long, and is left out")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so $x^2 is open", ["$ is never closed: $x^2 is open"]),
        (r"so \(x and", [r"\( is never closed: \(x and"]),
        (r"\begin{align}a&=b", [r"\begin{align} is never closed: \begin{align}a&=b"]),
        ("it costs $5 and $10, $y broken", ["$ is never closed: $y broken"]),
        ("it costs $5. US$7, 3$ or $", []),
        (r"a \$x and `$`", []),
        (r"$$\begin{align}a\\[7pt]b\end{align}$$ then $x$", []),
        (r"after a break \\[2pt] text", []),
    ],
)
def test_delimiters_that_nothing_closes_are_reported_with_their_place(text: str, expected: list[str]) -> None:
    with gathered() as problems:
        document_post({"docno": "d", "text": text})
    assert [f"{of.what}: {of.where}" for of in problems] == expected
    assert all(of.post == "d" for of in problems)


def build_of(posts: int, error: Exception | None = None) -> None:
    with reported_once():
        for number in range(posts):
            with reported_once():
                report_problem(str(number), "wrong", "x" * 100)
                report_problem(str(number), "wrong", "x" * 100)
        if error:
            raise error


def test_a_build_reports_each_problem_once_and_the_first_by_name() -> None:
    with pytest.warns(PostWarning) as caught:
        build_of(7)
    [warning] = [one.message for one in caught]
    assert str(warning).startswith("7 problems in 7 posts: wrong, in 7 places of 7 posts, first '0': “xxx")
    assert str(pickle.loads(pickle.dumps(warning))) == str(warning)


def test_a_warning_names_the_ten_most_frequent_causes_with_their_reasons() -> None:
    with gathered() as found:
        explain_problem("cause 1", "defined differently in a.sty and b.sty")
        explain_problem("", ", which `mathamr report` lists")
        for cause in range(12):
            for number in range(12 - cause):
                report_problem(f"notes/{number % 3}.md#{number}", f"cause {cause}", f"{number}")
    head, *causes = str(found).split("; ")
    assert head == "78 problems in 12 posts: cause 0, in 12 places of 3 files, first 'notes/0.md#0': “0”"
    assert causes[0].startswith("cause 1 (defined differently in a.sty and b.sty), in 11 places of 3 files, first ")
    assert len(causes) == 10
    assert causes[-1] == "and 2 more, which `mathamr report` lists"


def test_an_error_does_not_swallow_problems_and_no_problem_is_no_warning() -> None:
    with pytest.warns(PostWarning, match="1 problem in 1 post: wrong, in '0': “x"), pytest.raises(KeyError):
        build_of(1, KeyError())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_of(0)
        report_problem("a", "wrong", "x")  # ignored without a build
    with gathered() as problems:
        pass
    assert problems == {}
