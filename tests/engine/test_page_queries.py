"""How the box reads a query, how it reports wrong LaTeX, and the examples."""

import pytest

from pyterrier_mathamr.engine.page.queries import examples, problems, read_box, step_between, step_of
from tests.engine.conftest import built


@pytest.mark.parametrize(
    ("q", "kind", "latex"),
    [
        ("groups and rings", "words", ""),
        ("n", "words", ""),
        (r"Why does $\sum 1/n$ diverge?", "mixed", r"\sum 1/n"),
        ("Is x² solvable?", "mixed", "x^{2}"),
        (r"$x$ and $y$", "mixed", "x"),
        (r"\frac{1}{n^2}", "formula", r"\frac{1}{n^2}"),
        (r"$\frac{1}{n^2}$", "formula", r"\frac{1}{n^2}"),
        ("a^2+b^2=c^2", "formula", "a^2+b^2=c^2"),
        ("?a^2+?b^2=?c^2", "formula", "?a^2+?b^2=?c^2"),
        (r"\sin ?x = \operatorname{name} ?y", "formula", r"\sin ?x = \operatorname{name} ?y"),
        ("x^{2", "formula", "x^{2"),
        ("Why is it so?", "words", ""),
        ("", "words", ""),
    ],
)
def test_a_query_is_words_or_a_formula_or_both(engine, q, kind, latex) -> None:
    read = read_box(engine.snapshot(), q)
    assert (read.kind, read.latex) == (kind, latex)


@pytest.mark.parametrize(
    ("q", "formula", "wrong", "message"),
    [
        (r"$\frac{1}{n$ x", r"\frac{1}{n", "", "a } is missing"),
        (r"$x^2}$", "x^2}", "}", "a { is missing"),
        (r"$\left( x$", r"\left( x", "", r"without \right"),
        (r"$a \nosuch b$", r"a \nosuch b", r"\nosuch", "not known"),
        ("let $x^2", "$x^2", "", "Nothing closes"),
    ],
)
def test_what_is_wrong_has_its_place(q, formula, wrong, message) -> None:
    [found] = problems(q)
    assert found["latex"] == formula
    assert formula[found["start"] : found["end"]] == wrong
    assert message in found["message"]


@pytest.mark.parametrize("q", [r"$\frac{1}{n}$ and words", r"costs \$5", "?a", r"\sum_{n=1}^\infty"])
def test_right_latex_has_no_problems(q) -> None:
    assert problems(q, q) == []


def test_many_problems_are_not_all_listed() -> None:
    assert len(problems(100 * r"$\frac{1}{$ ")) == 3


@pytest.mark.parametrize(
    ("asked", "found", "step"),
    [
        ("a^2+b^2=c^2", "a^2+b^2=c^2", "equal"),
        ("a^2+b^2=c^2", "c^2=b^2+a^2", "equal"),
        ("a^2+b^2=c^2", "x^2+y^2=z^2", "renamed"),
        ("?a^2+?b^2=?c^2", "(x+1)^2+y^2=z^2", "instance"),
        ("a^2+b^2=c^2", "x^2+x^2=z^2", "similar"),
        (r"\frac{1}{", "x", "similar"),
        ("x", 400 * "x", "similar"),
    ],
)
def test_a_formula_is_equal_renamed_an_instance_or_similar(asked, found, step) -> None:
    assert step_between(asked, found) == step


def test_a_formula_that_contains_a_match_has_the_step_of_the_match() -> None:
    assert [step_of(tier) for tier in ("equal", "contains", "contains, renamed", "similar")] == [
        "equal", "equal", "renamed", "similar",
    ]  # fmt: skip


def test_examples_are_a_question_a_formula_and_a_pattern_that_are_easy_to_read(tmp_path) -> None:
    posts = [
        {"id": "1", "title": r"ugly $\frac{\frac{\frac 1 2}{3}}{4}$ $a$ $b$ $c$ title; with signs", "text": "no"},
        {"id": "2", "title": "Why is the sum $a^2+b^2=c^2$ for right triangles?", "text": "In $x+y=z$ it is."},
        {"id": "3", "title": "Short $x$?", "text": r"$\sin x=\cos y+1$ here."},
    ]
    found = examples(built(tmp_path / "e", posts).snapshot())
    assert [example["kind"] for example in found] == ["question", "formula", "pattern"]
    assert found[0]["q"] == "Why is the sum $a^2+b^2=c^2$ for right triangles?"
    assert found[2]["q"] == "?a^2+?b^2=?c^2"
    assert found[1]["q"] != "$a^2+b^2=c^2$"
    assert all("<math" in example["html"] for example in found)


def test_a_short_statement_is_an_example_where_there_is_no_longer_one(tmp_path) -> None:
    posts = [{"id": "1", "title": "Series", "text": r"The sum $\sum 1/n$ diverges."}, {"id": "2", "text": "$x$"}]
    [found, *_] = examples(built(tmp_path / "e", posts).snapshot())
    assert (found["kind"], found["q"]) == ("question", r"The sum $\sum 1/n$ diverges.")


def test_posts_without_formulas_have_no_examples(tmp_path) -> None:
    assert examples(built(tmp_path / "e", [{"id": "1", "text": "Only words are here."}]).snapshot()) == []
