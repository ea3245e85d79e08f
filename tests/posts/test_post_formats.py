r"""Markdown and LaTeX documents as posts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr.posts.latex_document import text_from_latex
from pyterrier_mathamr.posts.markdown import title_of_markdown
from pyterrier_mathamr.posts.reading import post_from_latex, post_from_markdown


def latex_of(post) -> list[str]:
    return [formula.latex for formula in post.formulas]


def test_markdown_does_not_read_what_is_inside_formulas() -> None:
    post = post_from_markdown(r"Text *with* $a_1*b*c$, \(x\\y\) and [a *link* $z$](http://x.y/$q$).")
    assert post.text == "Text with FORMULA_0, FORMULA_1 and a link FORMULA_2."
    assert latex_of(post) == ["a_1*b*c", r"x\\y", "z"]


def test_code_holds_no_formulas() -> None:
    source = "`code $x$` and ``a ` $y$`` or\n\n```python\nz = '$not$'\n```\n\n    $indented$\n\nbut $w$"
    post = post_from_markdown(source)
    assert latex_of(post) == ["w"]
    assert post.text.split("\n") == ["code $x$ and a ` $y$ or", "z = '$not$'", "$indented$", "but FORMULA_0"]


def test_displays_environments_and_gitlab_formulas_are_read() -> None:
    display = "\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}"
    source = f"$$\n\\int_0^1 x \\\\ y\n$$\n\n{display}\n\nand $`\\sqrt{{3}}`$ or \\[y\\]"
    assert latex_of(post_from_markdown(source)) == ["\\int_0^1 x \\\\ y", display, r"\sqrt{3}", "y"]


def test_a_formula_goes_on_in_the_next_line_but_not_in_the_next_block() -> None:
    assert latex_of(post_from_markdown("so $a +\nb$ holds")) == ["a +\nb"]
    post = post_from_markdown("- costs $5\n- costs $6\n\n# of $x\n\ny$")
    assert post.formulas == ()
    assert post.text == "costs $5\ncosts $6\nof $x\ny$"


def test_headings_lists_tables_and_html_are_blocks() -> None:
    post = post_from_markdown(
        "# On $x<y$\n\n1. one\n2. two\n\n| $a$ | b |\n|---|---|\n| c | d |\n\n<b>bold</b> &amp;", "A $t$"
    )
    assert post.text.split("\n") == ["A FORMULA_0", "On FORMULA_1", "one", "two", "FORMULA_2 b", "c d", "bold &"]
    assert latex_of(post)[1] == "x<y"


@pytest.mark.parametrize(
    ("source", "title", "body"),
    [
        ('---\ntitle: "On $x_1$"\ntags: a\n---\ntext', "On $x_1$", "text"),
        ("\n# A heading #\n\ntext", "A heading", "\n\ntext"),
        ("text\n# later", "", "text\n# later"),
        ("---\nno title\n---\n# H\nt", "H", "\nt"),
    ],
)
def test_the_title_of_markdown_is_its_front_matter_or_first_heading(source: str, title: str, body: str) -> None:
    assert title_of_markdown(source) == (title, body)


LATEX = r"""\documentclass{article} % comment $no$
\newcommand{\R}{\mathbb{R}} \newcommand{\norm}[1]{\|#1\|} \DeclareMathOperator{\rank}{rank}
\title{On $x^2$}
\begin{document}
\maketitle
\section{First \emph{part}}
We show \emph{that} $\sum 1/n^2$ converges~\cite{a}. It costs \$5, see \eqref{eq:1}.
\begin{equation}\label{eq:1}
a = b % why
\end{equation}
\begin{itemize}
\item One $x \in \R$
\item Two \[ \rank A = 2 \]
\end{itemize}
\begin{verbatim}
$code$
\end{verbatim}
Schr\"odinger
\end{document}"""


def test_a_latex_document_is_text_with_formulas_and_its_macros_written_out() -> None:
    post = post_from_latex(LATEX)
    lines = post.text.split("\n")
    assert lines[:2] == ["On FORMULA_0", "First part"]
    assert "We show that FORMULA_1 converges. It costs $5" in lines[2]
    assert lines[-1] == "Schrödinger"
    equation = r"\begin{equation} a = b \end{equation}"
    expected = ["x^2", r"\sum 1/n^2", equation, r"x \in {\mathbb{R}}", r"{\operatorname{rank}} A = 2"]
    assert [" ".join(latex.split()) for latex in latex_of(post)] == expected


def test_a_part_of_a_document_is_read_without_a_frame() -> None:
    assert text_from_latex(r"Let $x$ be \textbf{bold}.") == ("", "Let $x$ be bold.")


def test_a_heading_that_a_text_begins_with_is_its_title() -> None:
    text = "\\documentclass{article}\n\\begin{document}\n\\section{On $x$}\nBody. \\section{More} End.\n\\end{document}"
    assert text_from_latex(text) == ("On $x$", "Body. \n\nMore\n\n End.")
    assert text_from_latex(r"Text. \section{Later}")[0] == ""
    assert text_from_latex(r"\title{T} \section{S} Body")[0] == "T"


def test_a_macro_that_holds_itself_and_groups_without_end_do_not_go_on_for_ever() -> None:
    assert len(text_from_latex(r"\newcommand{\a}{\a\a} " + r"\a" * 100)[1]) < 200_000
    assert text_from_latex("$x$ " + "{" * 5_000)[1].startswith("$x$")


@pytest.mark.parametrize(
    ("defined", "used", "written"),
    [
        (r"\newcommand{\norm}[1]{\|#1\|}", r"\norm{x+\norm y}", r"{\|x+{\|y\|}\|}"),
        (r"\newcommand{\pd}[2][f]{\frac{d#1}{d#2}}", r"\pd{x} \pd[g]{y}", r"{\frac{df}{dx}} {\frac{dg}{dy}}"),
        (
            r"\def\inner#1#2{\langle #1,#2\rangle}",
            r"\inner{a}{b} \inner ab",
            r"{\langle a,b\rangle} {\langle a,b\rangle}",
        ),
        (r"\DeclarePairedDelimiter\abs{\lvert}{\rvert}", r"\abs*{x}", r"{\lvert x \rvert}"),
        (r"\newcommand{\R}{\mathbb R}\newcommand{\Rn}[1]{\R^{#1}}", r"\Rn\alpha", r"{{\mathbb R}^{\alpha}}"),
        (r"\newcommand{\n}[1]{|#1|}", r"\n", r"\n"),  # without its argument: as it is
    ],
)
def test_macros_with_arguments_are_written_out(defined: str, used: str, written: str) -> None:
    document = f"\\documentclass{{article}}{defined}\\begin{{document}}Let ${used}$ be.\\end{{document}}"
    assert latex_of(post_from_latex(document)) == [written]
    assert latex_of(post_from_latex(f"{defined} Let ${used}$ be.")) == [written]


def test_macros_with_arguments_do_not_grow_without_bound() -> None:
    assert len(text_from_latex(r"\newcommand{\a}[1]{\a{#1}\a{#1}} $" + r"\a{x}" * 100 + "$")[1]) < 1_000_000
    assert "x" in text_from_latex(r"\newcommand{\a}[1]{#1#1} x" + r"\a{" * 5_000)[1]


@given(st.text(alphabet="ab12 *_[](){}<>&|#-+=^\\\\!'\"", min_size=1, max_size=40))
def test_a_formula_goes_through_markdown_unchanged(body: str) -> None:
    latex = f"x{body.rstrip(chr(92))}y"
    if latex.count("{") != latex.count("}") or is_escape_of_delimiter(latex):
        return
    assert latex_of(post_from_markdown(f"A *b* ${latex}$ c_d_.")) == [latex]


def is_escape_of_delimiter(latex: str) -> bool:
    return any(mark in latex for mark in ("\\(", "\\[", "\\)", "\\]")) or "}" in latex.partition("{")[0]


def test_images_give_their_alternative_text_and_raw_html_is_read() -> None:
    post = post_from_markdown("![a $x$ b](p.png) <span>c $y$</span>\n\n<div>\n$z$\n</div>\n\n> quoted $w$")
    assert latex_of(post)[-3:] == ["y", "z", "w"]
    assert "p.png" not in post.text


@given(st.text(alphabet="ab $`*_#[](){}\\-\n~>|<", max_size=80))
def test_any_text_is_read(text: str) -> None:
    for post in (post_from_markdown(text), post_from_latex(text)):
        assert post.text.count("FORMULA_") >= len(post.formulas)


@pytest.mark.parametrize(
    "text", ["`" * 50_000, "` " * 20_000, "$ " * 20_000, "```\n" * 5_000, r"\begin{align}" * 5_000]
)
def test_hostile_markdown_takes_no_quadratic_time(text: str) -> None:
    assert post_from_markdown(text).formulas is not None
