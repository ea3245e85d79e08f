"""Pages whose formulas are rendered: the LaTeX next to them is read, once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr.posts import post_from_html
from pyterrier_mathamr.posts.html import with_latex

MATHML = '<math xmlns="http://www.w3.org/1998/Math/MathML"{}><semantics><mrow><mi>a</mi><mo>&lt;</mo><mi>b</mi></mrow>{}</semantics></math>'
TEX = '<annotation encoding="application/x-tex">{}</annotation>'
WIKIPEDIA = (
    '<span class="mwe-math-element"><span class="mwe-math-mathml-inline" style="display: none;">'
    + MATHML.format(r' alttext="{\displaystyle a&lt;b}"', TEX.format(r"{\displaystyle a&lt;b}"))
    + r'</span><img src="x.svg" class="mwe-math-fallback-image-inline" alt="{\displaystyle a&lt;b}"></span>'
)
KATEX = (
    '<span class="katex"><span class="katex-mathml">' + MATHML.format("", TEX.format("a&lt;b")) + "</span>"
    '<span class="katex-html" aria-hidden="true"><span class="base"><span class="strut"></span>'
    '<span class="mord mathnormal">a</span><span class="mrel">&lt;</span>b</span></span></span>'
)
MATHJAX = (  # the copy that it shows is left out
    '<mjx-container class="MathJax" jax="CHTML" tabindex="0"><mjx-math><mjx-mi><mjx-utext>a</mjx-utext></mjx-mi>'
    '</mjx-math><mjx-assistive-mml display="inline">' + MATHML.format("", "") + "</mjx-assistive-mml></mjx-container>"
)


@pytest.mark.parametrize(
    "rendered",
    [
        WIKIPEDIA,
        KATEX,
        MATHJAX,
        MATHML.format(' alttext="a&lt;b"', ""),
        MATHML.format("", ""),
        '<math><semantics><mi>x</mi><annotation encoding="LaTeX">a&lt;b</annotation></semantics></math>',
        r"<MATH><ANNOTATION ENCODING='TeX'>{ \textstyle a&lt;b }</ANNOTATION></MATH>",
        '<script type="math/tex">a<b</script>',
        '<script type="math/tex; mode=display">% <![CDATA[\na<b %]]></script>',
        '<span class="math-container">a&lt;b</span>',
    ],
    ids=range(10),
)
def test_a_rendered_formula_is_its_latex_once(rendered: str) -> None:
    post = post_from_html(f"<p>If {rendered}, then stop.</p>")
    assert [formula.latex for formula in post.formulas] == ["a<b"]
    assert post == post_from_html('<p>If <span class="math-container">a&lt;b</span>, then stop.</p>')


def test_other_scripts_stay_and_are_no_text() -> None:
    script = "<script>let math = 'math/tex'</script>"
    assert with_latex(script, []) == script
    assert "let" not in post_from_html(f"<p>x {script}</p>").text


def test_letters_that_are_longer_in_lower_case_move_no_place() -> None:
    before = "İ" * 40
    post = post_from_html(f"<p>{before} {WIKIPEDIA} and {KATEX}.</p>")
    span = '<span class="math-container">a&lt;b</span>'
    assert [formula.latex for formula in post.formulas] == ["a<b", "a<b"]
    assert post == post_from_html(f"<p>{before} {span} and {span}.</p>")


def test_elements_that_never_end_are_not_changed() -> None:
    source = "<math><script type='math/tex'>" + "<math " * 1000
    assert with_latex(source, []) == source


PIECES = ["<math>", "</math>", TEX.format("x"), '<script type="math/tex">', "</script>", "y", "<", '"', ">"]


@given(st.lists(st.sampled_from(PIECES)))
def test_no_text_outside_is_lost(pieces: list[str]) -> None:
    source = "".join(pieces)
    assert with_latex(f"before {source}", []).startswith("before ")
    assert with_latex(f"{source}</math></script> after", []).endswith(" after")
    post_from_html(source)
