r"""Mathematics as people type it: formulas without delimiters, and Unicode that has the trees of its LaTeX."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from post_helpers import latex_of

from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.posts import latex_of_unicode, post_from_any, post_from_html, post_from_text


def found(text: str) -> list[str]:
    return latex_of(post_from_text(text, bare_formulas=True))


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
def test_text_that_occurs_only_in_mathematics_is_a_formula(text: str, formulas: list[str]) -> None:
    assert found(text) == formulas
    assert found(f"It holds, $y$: {text}") == ["y", *formulas]
    assert post_from_text(text).formulas == ()


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


def test_code_has_no_formulas() -> None:
    post = post_from_html("<p>so x^2=1 <code>y^2=1</code> and <pre>z^2=1</pre></p>", bare_formulas=True)
    assert latex_of(post) == ["x^{2}=1"]
    assert "y^2=1" in post.text
    assert post_from_any("<p>x^2=1</p>", bare_formulas=True).text == "FORMULA_0"


@pytest.mark.parametrize("text", ["x+" * 10_000, "(" * 10_000, "a b " * 5_000, "x^" * 10_000, "a@" * 10_000])
def test_long_text_is_cut_into_runs_of_bounded_length(text: str) -> None:
    assert all(len(latex) <= 600 for latex in found(text))


@pytest.mark.parametrize(
    ("typed", "latex"),
    [
        ("x²", "x^2"), ("x₁₀", "x_{10}"), ("x⁻¹", "x^{-1}"), ("√2", r"\sqrt 2"), ("√(x+1)", r"\sqrt{x+1}"),
        ("∛x", r"\sqrt[3]{x}"), ("½", r"\frac12"), ("a·b", r"a\cdot b"), ("√√2", r"\sqrt{\sqrt{2}}"),
        ("∑_{n} 1/n²", r"\sum_{n} 1/n^2"), ("x≤y", r"x\leq y"), ("x∈ℝ", r"x\in\mathbb{R}"), ("α+β", r"\alpha+\beta"),
        ("x̄+x̂²", r"\bar{x}+\hat{x}^2"), ("ẋ", r"\dot{x}"), ("v⃗", r"\vec{v}"), ("90°", r"90^\circ"), ("µ", r"\mu"),
        ("𝑥+𝑦", "x+y"), ("Ａ＋１", "A+1"), ("𝐱", r"\mathbf{x}"), ("∫₀^∞ x", r"\int_{0}^{\infty} x"),
        ("√x̄", r"\sqrt{\bar x}"),
        ("∫_0^1 x", r"\int_0^1 x"), ("f: A→B", r"f: A\to B"), ("a≠b", r"a\neq b"), ("x∈∅", r"x\in\emptyset"),
    ],
)  # fmt: skip
def test_unicode_has_the_trees_of_its_latex(typed: str, latex: str) -> None:
    made, expected = trees_from_latex(typed), trees_from_latex(latex)
    assert (str(made.slt), str(made.opt)) == (str(expected.slt), str(expected.opt))


def test_text_and_plain_latex_are_unchanged() -> None:
    assert latex_of_unicode(r"\text{cm²} \alpha_1") == r"\text{cm²} \alpha_1"
    assert latex_of_unicode("√√(2+x)") == r"\sqrt{\sqrt{2+x}}"
    for hostile in ("√(" * 1_000, "√" * 1_000, "²" * 1_000):
        assert "√" not in latex_of_unicode(hostile)


@given(st.text(alphabet="x1²₁√(){}·½∛\\ ", max_size=40))
def test_rewriting_is_idempotent(text: str) -> None:
    once = latex_of_unicode(text)
    assert latex_of_unicode(once) == once
