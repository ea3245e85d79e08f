r"""Mathematics typed in Unicode has the trees of its LaTeX."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr.formula import opt_from_latex, slt_from_latex
from pyterrier_mathamr.posts import latex_of_unicode


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
    assert str(opt_from_latex(typed)) == str(opt_from_latex(latex))
    assert str(slt_from_latex(typed)) == str(slt_from_latex(latex))


def test_text_and_plain_latex_stay_as_they_are() -> None:
    assert latex_of_unicode(r"\text{cm²} \alpha_1") == r"\text{cm²} \alpha_1"
    assert latex_of_unicode(r"\frac{1}{2}") == r"\frac{1}{2}"
    assert latex_of_unicode("√√(2+x)") == r"\sqrt{\sqrt{2+x}}"


@given(st.text(alphabet="x1²₁√(){}·½∛\\ ", max_size=40))
def test_what_was_rewritten_needs_no_rewriting(text: str) -> None:
    once = latex_of_unicode(text)
    assert latex_of_unicode(once) == once


@pytest.mark.parametrize("text", ["√(" * 5_000, "√" * 5_000, "²" * 5_000])
def test_hostile_roots_take_no_quadratic_time(text: str) -> None:
    assert "√" not in latex_of_unicode(text)
