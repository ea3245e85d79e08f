r"""Commands that the converter does not know give the trees of those that it does; others are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr.formula import definitions, opt_from_latex, report_unknown_commands, trees_from_latex
from pyterrier_mathamr.formula.tex import converter


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        (r"A\smallsetminus B", r"A\setminus B"),
        (r"P(\hbox{two girls}|x)", r"P(\text{two girls}|x)"),
        (r"\root 3 \of{x}+\root{n}\of y", r"\sqrt[3]{x}+\sqrt[n] y"),
        (r"\sum_{\substack{i<n\\j}} a", r"\sum_{\begin{matrix}i<n\\j\end{matrix}} a"),
        (r"f=\cases{1,&x\cr 0,&y}", r"f=\begin{cases}1,&x\\ 0,&y\end{cases}"),
        (r"\eqalign{a&=b\cr &=c}", r"\begin{aligned}a&=b\\ &=c\end{aligned}"),
        (r"\bbox[5px,border:1px solid]{x}\smash[t]{y}\rlap{z}", "{x}{y}{z}"),
        (r"\delta*\delta", r"\delta *\delta"),
        ("a\\\nb\\", "a b"),
        (r"\begin{pmatrix}a\\[2pt]b\\*c\\[-.5 em] [d]\end{pmatrix}", r"\begin{pmatrix}a\\b\\c\\{[d]}\end{pmatrix}"),
        (r"\begin{smallmatrix}a\\b\end{smallmatrix}", r"\begin{matrix}a\\b\end{matrix}"),
        (r"\DeclareMathOperator{\ran}{ran}\ran A", r"\operatorname{ran}A"),
        (r"{\scr C}\mathds{1}\varinjlim", r"{\mathscr C}\mathbb{1}\injlim"),
    ],
)
def test_a_command_of_another_dialect_gives_the_trees_of_the_known_one(typed: str, known: str) -> None:
    assert trees_from_latex(typed, lines="all") == trees_from_latex(known, lines="all")
    assert not trees_from_latex(typed, lines="all").opt.partial


def test_unknown_commands_are_named_with_post_and_formula() -> None:
    with gathered() as problems:
        for latex in (r"\foo x+\foo{y}", r"\text{\foo}", r"\alpha\setminus\beta", r"\frac{a"):
            report_unknown_commands("d", latex, trees_from_latex(latex))
    assert [tuple(problem) for problem in problems] == [("d", r"the command \foo is unknown", r"\foo x+\foo{y}")]


def test_commands_that_a_post_defines_are_known_in_its_formulas() -> None:
    macros = definitions([r"\DeclareMathOperator{\rk}{rk} x", r"\newcommand{\Q}[1]{#1^2}", "y"])
    assert trees_from_latex(r"\rk A+\Q z", macros=macros) == trees_from_latex(r"\operatorname{rk}A+z^2")


WORDS = (
    r"\root 3\of \bbox [2pt] \\ \ * { } {x} {smallmatrix} \raise 2pt \smash [t] \cr \hbox \alpha \delta x \vspace "
    r"\intertext \DeclareMathOperator \rk \substack \class \qedhere \eqalign"
)
PIECES = st.sampled_from([*WORDS.split(), "\n", "\t", " "])


@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_formula_that_is_passed_over_has_nothing_to_rewrite(latex: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(converter, "_has_foreign", lambda _: True)
        whole = converter.known_commands(latex)
    assert converter.known_commands(latex) == whole


@pytest.mark.parametrize("latex", [r"\left< v, w\right>", r"\left<v,w\right\rangle", r"\bigl<v,w\bigr>", "⟨v,w⟩"])
def test_angles_are_an_operator_of_their_own_in_posts_and_a_list_as_in_the_reference(latex) -> None:
    assert opt_from_latex(latex, lines="all").nodes == ("M!D-⟩", "V!𝑣", "V!𝑤")
    assert opt_from_latex(latex).nodes == opt_from_latex(r"\langle v,w\rangle").nodes == ("M!L-2", "V!𝑣", "V!𝑤")
    assert opt_from_latex("v,w", lines="all").nodes == ("M!L-2", "V!𝑣", "V!𝑤")
