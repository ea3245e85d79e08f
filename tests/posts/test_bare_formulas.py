"""Formulas without delimiters: what is one, what stays text, and that hostile text takes linear time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr.posts import post_from_any, post_from_html, post_from_text
from pyterrier_mathamr.posts.bare_formulas import LONGEST, bare_spans


def found(text: str) -> list[str]:
    return [latex for _, _, latex in bare_spans(text)]


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("Show that x^2+1=0 has no real root", ["x^{2}+1=0"]),
        ("the sum ∑ 1/n² converges", ["∑ 1/n²"]),
        ("f(x) = sin(2x) + 1 for all x > 0.", [r"f(x) = \sin (2x) + 1", "x > 0"]),
        ("Let E=mc^2 be", ["E=mc^{2}"]),
        ("prove a <= b and p<0.05", [r"a \le  b", "p<0.05"]),
        ("n log n is O(n log n)?", [r"n \log  n", r"O(n \log  n)"]),
        ("∫_0^1 x^2 dx = 1/3.", ["∫_{0}^{1} x^{2} dx = 1/3"]),
        ("let ε > 0 and √2 is irrational", ["ε > 0", "√2"]),
        ("2x + 3y = 6, so x = 3", ["2x + 3y = 6", "x = 3"]),
        ("(a+b)^2 = a^2 + 2ab + b^2", ["(a+b)^{2} = a^{2} + 2ab + b^{2}"]),
        ("x1 + x2", ["x_{1} + x_{2}"]),
        ("e^(iπ) + 1 = 0", ["e^{iπ} + 1 = 0"]),
        ("The set {x : x > 2}", [r"\{x : x > 2\}"]),
        ("limit as n→∞ of (1+1/n)^n", ["n→∞", "(1+1/n)^{n}"]),
        ("α is a root", ["α"]),
        (r"so \frac{1}{2} \le x", [r"\frac{1}{2}", r"\le x"]),
    ],
)
def test_what_is_seen_in_mathematics_alone_is_a_formula(text: str, formulas: list[str]) -> None:
    assert found(text) == formulas


@pytest.mark.parametrize(
    "text",
    [
        "I have a question about C++ and w/o 1/2 and/or foo_bar",
        "email me@x.com or http://a.b/c=d^2",
        "so it's ∈ and doesn’t ≤ E",
        r"see \eqref{1} and \begin{array}{c} \hline \end{array}",
        "in step 3 - 4 we", "on 2020-01-02 at 10:30", "a", "A is 3 x 4 matrix", "<3 you", "2 + 2 = 4", "it is -5", "≤",
    ],
)  # fmt: skip
def test_prose_amounts_dates_and_addresses_stay_text(text: str) -> None:
    assert found(text) == []


def test_posts_read_them_on_request_and_never_in_code() -> None:
    assert post_from_text("so x^2=1").formulas == ()
    post = post_from_text("so x^2=1, $y$ and z_1=2", bare_formulas=True)
    assert [formula.latex for formula in post.formulas] == ["x^{2}=1", "y", "z_{1}=2"]
    assert post.text == "so FORMULA_0, FORMULA_1 and FORMULA_2"
    post = post_from_html("<p>so x^2=1 <code>y^2=1</code> and <pre>z^2=1</pre></p>", bare_formulas=True)
    assert [formula.latex for formula in post.formulas] == ["x^{2}=1"]
    assert "y^2=1" in post.text
    assert post_from_any("<p>x^2=1</p>", bare_formulas=True).text == "FORMULA_0"


@given(st.text(alphabet="ab x12^_=+-(){}∑²√|,.$\\\n", max_size=60))
def test_spans_are_in_order_without_overlap_and_text_is_kept(text: str) -> None:
    at = 0
    for start, end, latex in bare_spans(text):
        assert at <= start < end <= len(text)
        assert latex.strip()
        at = end
    post_from_text(text, bare_formulas=True)


@pytest.mark.parametrize("text", ["x+" * 20_000, "(" * 20_000, "a b " * 10_000, "x^" * 20_000, "a@" * 20_000])
def test_long_text_is_cut_into_runs_of_bounded_length(text: str) -> None:
    assert all(end - start <= LONGEST for start, end, _ in bare_spans(text))
