"""Presentation MathML as LaTeX: each element, refused input, and trees that equal the MathML's."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr.formula import FormulaError, read_formula_table, slt_from_latex, slt_from_mathml
from pyterrier_mathamr.posts import document_post, post_from_html
from pyterrier_mathamr.posts.mathml_latex import latex_of_mathml, text_of_mathml

X, N2 = "<mi>x</mi>", "<mn>2</mn>"
ROW = "<mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow>"
TABLE = (
    f"<mtable><mtr><mtd><mn>1</mn></mtd><mtd>{N2}</mtd></mtr><mtr><mtd><mn>3</mn></mtd><mtd>{X}</mtd></mtr></mtable>"
)
CELLS = r"1 & 2 \\ 3 & x"

WRITTEN = [
    (f"<msup><mi>r</mi>{N2}</msup>", "r^{2}"),
    (f"<msup>{X}{N2}</msup><mo>+</mo><mfrac><mn>1</mn><mi>y</mi></mfrac><mo>=</mo><mn>0</mn>", r"x^{2}+\frac{1}{y}=0"),
    (f"<msub>{ROW}{N2}</msub>", "{a+b}_{2}"),
    (f"<msubsup>{X}<mi>i</mi>{N2}</msubsup>", "x_{i}^{2}"),
    ("<msup><mi>f</mi><mo>′</mo></msup>", "f'"),
    ("<msup><msup><mi>f</mi><mo>′</mo></msup><mn>2</mn></msup>", "{f'}^{2}"),
    ("<mfrac linethickness='0'><mi>n</mi><mi>k</mi></mfrac>", r"{n\atop k}"),
    ("<mo>(</mo><mfrac linethickness='0pt'><mi>n</mi><mi>k</mi></mfrac><mo>)</mo>", r"\binom{n}{k}"),
    (f"<msqrt>{X}<mo>+</mo>{N2}</msqrt>", r"\sqrt{x+2}"),
    (f"<mroot>{X}<mn>3</mn></mroot>", r"\sqrt[{3}]{x}"),
    ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>0</mn></mrow><mi>n</mi></munderover>", r"\sum_{i=0}^{n}"),
    ("<munderover><mo>∫</mo><mn>0</mn><mn>1</mn></munderover>", r"\int\limits_{0}^{1}"),
    ("<munder><mo>lim</mo><mi>n</mi></munder>", r"\lim_{n}"),
    (f"<munder><mi>argmax</mi>{X}</munder>", r"\operatorname*{argmax}_{x}"),
    (f"<mover accent='true'>{X}<mo>→</mo></mover>", r"\vec{x}"),
    (f"<mover>{X}<mo accent='true'>^</mo></mover>", r"\hat{x}"),
    (f"<mover>{ROW}<mo>¯</mo></mover>", r"\overline{a+b}"),
    (f"<munder>{ROW}<mo>_</mo></munder>", r"\underline{a+b}"),
    (f"<munder><munder>{ROW}<mo>⏟</mo></munder><mi>n</mi></munder>", r"\underbrace{a+b}_{n}"),
    ("<mover><mo>=</mo><mtext>def</mtext></mover>", r"\overset{\text{def}}{=}"),
    (f"<mmultiscripts>{X}<mi>a</mi><none/><mprescripts/><none/><mi>b</mi></mmultiscripts>", "{}^{b}x_{a}"),
    (f"<mrow><mo>(</mo>{TABLE}<mo>)</mo></mrow>", rf"\begin{{pmatrix}}{CELLS}\end{{pmatrix}}"),
    (f"<mi>f</mi><mo>=</mo><mrow><mo>{{</mo>{TABLE}</mrow>", rf"f=\begin{{cases}}{CELLS}\end{{cases}}"),
    (TABLE.replace("<mtable>", "<mtable displaystyle='true'>"), rf"\begin{{aligned}}{CELLS}\end{{aligned}}"),
    (TABLE.replace("<mtable>", "<mtable columnalign='left right'>"), rf"\begin{{array}}{{lr}}{CELLS}\end{{array}}"),
    ("<mfenced open='[' close=')'><mi>a</mi><mi>b</mi></mfenced>", "[a,b)"),
    ("<mrow><mo>(</mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mo>)</mo></mrow>", r"\left(\frac{a}{b}\right)"),
    (f"<menclose notation='box'>{X}</menclose>", r"\boxed{x}"),
    ("<mstyle mathvariant='bold'><mi>v</mi></mstyle>", r"\mathbf{v}"),
    ("<mi mathvariant='double-struck'>R</mi><mi>ℝ</mi><mi>𝐱𝐲</mi>", r"\mathbb{R}\mathbb{R}\mathbf{xy}"),
    ("<mi mathvariant='normal'>d</mi><mi>𝑑</mi><mi>𝑖𝑠</mi>", r"\mathrm{d}d\mathit{is}"),
    ("<mi>sin</mi><mo>&ApplyFunction;</mo><mi>&alpha;</mi><mi>foo</mi>", r"\sin\alpha\mathrm{foo}"),
    ("<mi>tr</mi><mo>&#x2061;</mo><mi>A</mi>", r"\operatorname{tr}A"),
    ("<mtext>50 % of &amp;</mtext><ms>a_b</ms>", r"\text{50 \% of \& }\text{a\_b}"),
    ("<mi>a</mi><mspace width='1em'/><mi>b</mi><mphantom><mi>c</mi></mphantom>", r"a\quad b\phantom{c}"),
    (f"<semantics>{X}<annotation-xml><apply><ci>y</ci></apply></annotation-xml></semantics>", "x"),
    ("<mn>7</mn><msup><mn>10</mn><mn>2</mn></msup>", "7{}10^{2}"),
    ("<mo>&lt;</mo><mo>&#8804;</mo><mo>&</mo><mi>lt</mi><mo>;</mo>", r"<\leq\& \mathrm{lt};"),
    ("<mtable><mtr><mtd/><mtd><mi>g</mi></mtd></mtr></mtable>", r"\begin{matrix} & g\end{matrix}"),
]  # fmt: skip


@pytest.mark.parametrize(("mathml", "latex"), WRITTEN, ids=range(len(WRITTEN)))
def test_each_element_is_its_latex(mathml, latex):
    assert latex_of_mathml(f"<math>{mathml}</math>") == latex
    whole = f'<MATH xmlns="http://www.w3.org/1998/Math/MathML">\n{mathml}\n</MATH>'
    assert latex_of_mathml(whole) == latex
    prefixed = re.sub(r"<(/?)(?=[a-zA-Z])", r"<\1mml:", f"<math>{mathml}</math>")
    assert latex_of_mathml(prefixed) == latex


REFUSED = [
    "<mglyph/>", "<mi mathvariant='bold-fraktur'>x</mi>", "<merror><mtext>no</mtext></merror>", "<mo>^</mo>",
    "<mfrac><mi>a</mi></mfrac>", "<msup><mi>a</mi></msup>", "<menclose notation='roundedbox'><mi>a</mi></menclose>",
    "<mrow><mi>a</mrow></mi>", "<mi>a", "loose text", "<mtable><mi>a</mi></mtable>", "<mi>\ue000</mi>", "<b>x</b>",
    "<mtext>a$b</mtext>", "<mi>&nosuchthing;</mi><p>",
]  # fmt: skip


@pytest.mark.parametrize("mathml", REFUSED)
def test_an_uncertain_part_makes_the_whole_formula_text_and_is_reported(mathml):
    source = f"<p>If <math><mi>x</mi>{mathml}<mi>y2</mi></math>, stop.</p>"
    assert latex_of_mathml(f"<math><mi>x</mi>{mathml}<mi>y2</mi></math>") == ""
    with gathered() as problems:
        post = document_post({"docno": "d", "html": source}, bare_formulas=True)
    assert not post.formulas
    assert "x" in post.text
    assert "y2" in post.text
    what = "the MathML of a formula cannot be read, and is text"
    assert [(problem.post, problem.what) for problem in problems] == [("d", what)]
    with gathered() as problems:
        assert document_post({"docno": "d", "html": "<math><mi>x</mi></math>"}).formulas[0].latex == "x"
    assert not problems


def test_depth_and_length_cost_no_more_than_reading():
    for begin, end in (("<mrow>", "</mrow>"), ("<msqrt>", "</msqrt>"), ("<mfrac><mi>a</mi>", "</mfrac>"),
                       ("<msup><mn>1</mn>", "</msup>"), ("<mtable><mtr><mtd>", "</mtd></mtr></mtable>")):  # fmt: skip
        latex = latex_of_mathml(f"<math>{begin * 5_000}<mi>α</mi>{end * 5_000}</math>")
        assert latex.count(r"\alpha") == 1
    assert latex_of_mathml(f"<math>{'<mi>x</mi>' * 30_000}</math>") == "x" * 30_000
    assert latex_of_mathml(f"<math>{'<msup>' * 30_000}") == ""
    bomb = '<!DOCTYPE math [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><math><mi>&b;</mi></math>'
    assert "ha" not in post_from_html(bomb).formulas[0].latex


TAGS = [
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "munder", "mover",
    "mtable", "mtr", "mtd", "mfenced", "semantics",
]  # fmt: skip
PIECES = [*(f"<{tag}>" for tag in TAGS), *(f"</{tag}>" for tag in TAGS), "<!--", "-->", "<annotation>", "</annotation>",
          "x", "1", "&amp;", "&", "<", "∑", "\\", "{", "}", "$", "%", "\0", "\ud800", "\u0301"]  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_latex_that_is_read_or_nothing(source):
    latex = latex_of_mathml(f"<math>{source}</math>")
    text_of_mathml(f"<math>{source}</math>")
    post_from_html(f"<math>{source}</math>")
    if latex:
        try:
            tree = slt_from_latex(latex)
        except FormulaError as error:
            pytest.fail(str(error))
        assert tree.nodes


def test_trees_of_the_latex_equal_trees_of_the_mathml(shared_data):
    table = shared_data / "arqmath-mini/slt_representation_v3/1.tsv.gz"
    sources = list(dict.fromkeys(row.formula for row in read_formula_table(table)))[::32]
    same = 0
    for source in sources:
        if latex := latex_of_mathml(source):
            expected, made = slt_from_mathml(source), slt_from_latex(latex, lines="all")
            same += sorted(expected.nodes) == sorted(made.nodes)
    assert same / len(sources) >= 0.94
