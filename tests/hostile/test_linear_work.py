r"""No text costs more than its length: work is counted while families of inputs grow.

`conftest.Work` and `regex_steps` explain what is counted, and why it is honest. A time would show less: a cubic
expression is fast at the lengths that a test has time for.
"""

import re
from contextlib import suppress

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regex_steps import Budget, TooMuchWorkError, spans

from mathamr_systems.amr.workers import read_answer
from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.amr.lenient import decode_leniently
from pyterrier_mathamr.formula import definitions, opt_from_latex, slt_from_latex, slt_from_mathml
from pyterrier_mathamr.formula.tex.converter import has_many_fences, sized
from pyterrier_mathamr.posts import MathPassager, post_from_any, post_from_html, read_posts
from pyterrier_mathamr.sparse import TokenOptions
from pyterrier_mathamr.sparse.tokens import post_tokens

SMALL = 40  # repetitions; with fewer, one scan for each character would be within the bounds
PLAIN = TokenOptions(stem=False)  # the stemmer is native


def defined(text):
    return definitions([text])


def tokens(text):
    return post_tokens(post_from_html(f'<span class="math-container" id="1">{text}</span> {text}'), PLAIN)


def sentences(text):
    return post_from_any(text).sentences


def bare_formulas(text):
    return post_from_any(text, bare_formulas=True)


def passages(text):
    frame = pd.DataFrame({"docno": ["d"], "text": [text]})
    MathPassager("text", 4, 2, prepend_attr=None)(frame)


def from_markdown(text):
    list(read_posts([{"id": "d", "markdown": text}]))


def from_latex(text):
    list(read_posts([{"id": "d", "latex": text}]))


READERS = [
    slt_from_latex, opt_from_latex, defined, post_from_html, sentences, tokens, slt_from_mathml, decode_leniently,
    read_answer, bare_formulas, from_markdown, from_latex, passages,
]  # fmt: skip
FAMILIES = [  # before, repeated, after
    ("\\newcommand\\a", " ", "x"), ("\\newcommand", " ", "x"), ("\\newcommand{\\a}", "[1] ", "x"),
    ("\\def\\a", "{", ""), ("", "\\def\\a{", ""), ("_", "'", ""), ("x", "' ", "_"), ("", "\\operatorname{\\a ", ""),
    ("\\operatorname{\\a", " ", "x"), ("\\mathrm{", " ", "x"), ("\\mathrm{ab", " ", "x"), ("\\begin{array}", "{", ""),
    ("", "\\begin{array}{c", ""), ("\\begin{array}{", "*{3}{c", "}"), ("", "\\begin{align}", ""),
    ("", "\\end{align}", ""), ("", "x^{", ""), ("", "x_{", "}" * SMALL), ("^{", "{}", "_"), ("", "\\left", "}"),
    ("", "\\right", ""), ("\\left(", "}", ""), ("", "\\frac", ""), ("", "\\sqrt[", ""), ("", "\\text{", ""),
    ("", "\\tag{", ""), ("", "&a", ""), ("", "\\", "x"), ("\\\\[", " ", ""), ("", "$", ""), ("", "$1,,,", ""),
    ("$1", ",", "$"), ("a", ".", "b"), ("", "!'", "b"), ("", "<", ""), ("", "<a ", ""), ("<a ", "'\"", ""),
    ("", '<a "', ""), ("", "<!--", ""), ("", '<span class="math-container">', "x"), ("", "\n ", "x"),
    ("", "FORMULA_1", "x"), ("<math>", "<mrow>", ""), ("<math>", "<mi>a</mi>", "</math>"),
    ("<math>", "<msup><mi>a</mi><mn>2</mn></msup>", "</math>"),
    ("<math><mtable>", "<mtr><mtd><mo>(</mo></mtd></mtr>", "</mtable></math>"), ("<math>", "<annotation>", "</math>"),
    ("", "<math>", ""), ("", "<m:math>", "</math>"), ("", "<mjx-math>", ""), ("", "</mjx-math ", "x"),
    ("<math>", ' a="', "'"), ('(a / b :c "', '\\"', ""), ("(a / b ", ":c ", ""), ("(a / b", "~1,1", ""),
    ("# ::a ", "::", "\n(a / b)"), ("# a", " ", "b"), ("# a", " #", "b"), ("---\ntitle: a", " ", "b\n---\n"),
    ("---\n", "\n--- ", "x"), ("\\section", " ", "x"), ("\\title", " ", "x"), ("\\label", " ", "x"),
    ("\\cite", "[a]", "x"), ("", "\\section{", ""), ("", "\\begin{comment}", ""), ("", "\\verb|", ""),
    ("", "\\url{", ""), ("", "{", ""), ("\\newcommand{\\a}[2]{#1}", "\\a{", "}" * SMALL),
    ("\\newcommand{\\a}[1]{b#1}", "\\a{", "}" * SMALL), ("", "\\def\\a{b}", ""), ("", "%", "\n"), ("", "```\n", "x"),
    ("", "`a", ""), ("", "x^(", ""), ("", "f(x", ")" * SMALL), ("", "a.", "@b"),
]  # fmt: skip


def measured(work, read, text, most=float("inf")):
    with suppress(MathAMRError):
        work(read, text, most=most)
    return work.budget.steps


def check_growth(work, read, before, repeated, after):
    """Four times the text is at most five times the work, and what a change of method costs a character once."""
    short = before + repeated * SMALL + after
    long = before + repeated * (4 * SMALL) + after
    most = 5 * measured(work, read, short) + 50 * len(long)
    try:
        measured(work, read, long, most)
    except TooMuchWorkError as error:
        pytest.fail(f"{read.__name__} on {before!r} + {repeated!r} * n + {after!r}: {error}")


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_four_times_the_text_is_not_much_more_than_four_times_the_work(work, read, half):
    for family in FAMILIES[(READERS.index(read) + half) % 2 :: 2]:  # each family is read by half of the readers
        check_growth(work, read, *family)


MORE = r"\newcommand \operatorname \mathrm \begin \end \big \pmod ( [ { } ' _ ^ & # ~ \( \[ \\[ ⟦ ⌈ . , 1 a"
PIECES = sorted({part for family in FAMILIES for part in family} | set(MORE.split()))


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from(PIECES), st.lists(st.sampled_from([*PIECES, " "]), min_size=1, max_size=3), st.sampled_from(PIECES)
)
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_so_it_is_for_what_repeats_any_pieces_of_those(work, read, before, repeated, after):
    check_growth(work, read, before, "".join(repeated) or " ", after)


@pytest.mark.parametrize(
    ("pattern", "text", "degree"), [("('+)(?=_)", "'", 2), (r"a\s*\s*\s*b", "a ", 1), (r"a\s*\s*b", " ", 1)]
)
def test_the_meter_sees_the_degree_of_an_expression(pattern, text, degree):
    steps = []
    for count in (100, 200):
        budget = Budget()
        list(spans(re.compile(pattern), text * count, 0, budget, "search"))
        steps.append(budget.steps)
    assert 2**degree * 0.9 < steps[1] / steps[0] < 2**degree * 1.1


@pytest.mark.parametrize("opener", [*"([⟨⌊⌈⟦⦅", "\\{", "\\lbrace ", "\\lAngle ", "\\\\[", "\\pmod(", "\\pmod\\sqrt "])
def test_many_fences_are_sized_since_math_core_doubles_its_time_for_each_unclosed_one(opener):
    assert has_many_fences(opener * 13)
    many = sized(opener * 13)
    assert many.count("\\Bigg") + many.count("\\bmod") >= 13
    assert "\\pmod" not in many
    assert sized(many) == many


def test_few_fences_are_not_many_and_delimiters_of_latex_are_none():
    for few in ("(" * 12, r"\pmod{12}" * 20, "\\[x\\]" * 20):
        assert not has_many_fences(few)
    assert len(slt_from_latex("\\[" * 1000).nodes) == 1000


def test_a_column_that_is_repeated_a_huge_number_of_times_is_repeated_a_hundred_times():
    repeats = "9" * 5000  # more digits than Python reads as a number
    assert slt_from_latex(rf"\begin{{array}}{{*{{{repeats}}}{{c}}}} a & b \end{{array}}").nodes[0] == "M!1x2"
