r"""Markdown and LaTeX documents as posts: their text is read, whatever they contain, and their macros are known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from post_helpers import BOMB, latex_of, posts_of, read

from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr._common.running.worker import OverLimitError, Worker
from pyterrier_mathamr.posts import document_post, markdown, post_from_html

FORMS = pytest.mark.parametrize("form", ["markdown", "latex"])


def lines(form: str, source: str) -> list[str]:
    return read(form, source).text.split("\n")


def title_of(form: str, source: str) -> str:
    (document,) = posts_of([{"id": "d", form: source}], bare_formulas=False)
    return post_from_html(document.title).text


def problems_of(form: str, source: str) -> list[str]:
    with gathered() as found:
        posts_of([{"id": "p", form: source}])
    assert all(problem.post == "p" for problem in found)
    return [problem.what for problem in found]


@pytest.mark.parametrize(
    ("source", "text", "formulas"),
    [
        (r"Text *with* $a_1*b*c$, \(x\\y\) and [a *link* $z$](http://x.y/$q$).",
         "Text with FORMULA_0, FORMULA_1 and a link FORMULA_2.", ["a_1*b*c", r"x\\y", "z"]),
        ("`code $x$` and ``a ` $y$`` or\n\n```python\nz = '$not$'\n```\n\n    $indented$\n\nbut $w$",
         "code $x$ and a ` $y$ or\nz = '$not$'\n$indented$\nbut FORMULA_0", ["w"]),
        ("`\\newcommand{\\a}{b}` $\\a$\n\n    \\def\\c{d}\n\n```\n\\let\\e\\f\n```",
         "\\newcommand{\\a}{b} FORMULA_0\n\\def\\c{d}\n\\let\\e\\f", [r"\a"]),
        ("$$\n\\int_0^1 x\n$$\n\n\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}\n\nand $`\\sqrt{3}`$ or \\[y\\]",
         "FORMULA_0\nFORMULA_1\nand FORMULA_2 or FORMULA_3",
         ["\\int_0^1 x", "\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}", r"\sqrt{3}", "y"]),
        ("so $a +\nb$ holds", "so FORMULA_0 holds", ["a +\nb"]),
        ("- costs $5\n- costs $6\n\n# of $x\n\ny$", "costs $5\ncosts $6\nof $x\ny$", []),
        ("# On $x<y$\n\n1. one\n2. two\n\n| $a$ | b |\n|---|---|\n| c | d |\n\n<b>bold</b> &amp;\n\n> quoted",
         "On FORMULA_0\none\ntwo\nFORMULA_1 b\nc d\nbold &\nquoted", ["x<y", "a"]),
        ("![a $x$ b](p.png) <span>c $y$</span>\n\n<div>\n$z$\n</div>", "c FORMULA_0\nFORMULA_1", ["y", "z"]),
    ],
    ids=range(8),
)  # fmt: skip
def test_markdown_is_blocks_of_text_with_formulas_outside_code(source, text, formulas) -> None:
    post = document_post({"markdown": source})
    assert (post.text, latex_of(post)) == (text, formulas)


@pytest.mark.parametrize("blanks", ["", " " * 64_000])
@pytest.mark.parametrize(
    ("source", "title", "body"),
    [
        ('---\ntitle: "On $x_1$ {}"{}\ntags: a\n---\ntext', "On FORMULA_0", "text"),
        ("\n# A {}heading #{}\n\ntext", "A heading", "text"),
        ("text {}\n# later", "", "text\nlater"),
        ("---\nno title {}\n---\n# H\nt", "H", "t"),
    ],
)
def test_the_title_of_markdown_is_its_front_matter_or_first_heading(source, title, body, blanks) -> None:
    (document,) = posts_of([{"id": "d", "markdown": source.replace("{}", blanks)}], bare_formulas=False)
    assert (post_from_html(document.title).text, post_from_html(document.html).text) == (title, body)


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
    post = read("latex", LATEX)
    found = post.text.split("\n")
    assert found[:2] == ["On FORMULA_0", "First part"]
    assert "We show that FORMULA_1 converges. It costs $5" in found[2]
    assert found[-1] == "Schrödinger"
    equation = r"\begin{equation} a = b \end{equation}"
    expected = ["x^2", r"\sum 1/n^2", equation, r"x \in \mathbb{R}", r"\operatorname{rank}A = 2"]
    assert [" ".join(latex.split()) for latex in latex_of(post)] == expected
    assert lines("latex", r"Let $x$ be \textbf{bold}.") == ["Let FORMULA_0 be bold."]


def test_a_heading_that_a_text_begins_with_is_its_title() -> None:
    text = "\\documentclass{article}\n\\begin{document}\n\\section{On $x$}\nBody. \\section{More} End.\n\\end{document}"
    assert lines("latex", text) == ["On FORMULA_0", "Body.", "More", "End."]
    assert title_of("latex", text) == "On FORMULA_0"
    assert title_of("latex", r"Text. \section{Later}") == ""
    assert title_of("latex", r"\title{T} \section{S} Body") == "T"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"so \href{x}_{", "so _"),
        (r"a \sqrt[b", "a [b"),
        (r"a \begin{array}[]{rcl}\end{array}", "a"),
        (r"} { a } \begin \end{ \" \c", 'a "'),
        (r"\section{ never closed", "never closed"),
        ("so \\", "so \\"),
        (r"\emph{a} \foo{b} {\bf c}", "a b c"),
        ("a $x$ " + "{" * 5_000, "a FORMULA_0"),
    ],
)
def test_latex_without_balance_is_read_with_its_words(source, text) -> None:
    assert " ".join(read("latex", source).text.split()) == text


@pytest.mark.parametrize(
    ("defined", "used", "written"),
    [
        (r"\newcommand{\norm}[1]{\|#1\|}", r"\norm{x+\norm y}", r"\|x+\|y\|\|"),
        (r"\def\inner#1#2{<#1,#2>}", r"\inner{a}{b} \inner ab", "<a,b> <a,b>"),
        (r"\newcommand{\R}{\mathbb R}\newcommand{\Rn}[1]{\R^{#1}}", r"\Rn\alpha", r"\mathbb R^{\alpha}"),
        (r"\newcommand{\n}[1]{|#1|}", r"\n", r"\n"),  # without its argument: unchanged
        (r"\def\a{\b} \def\b{\a x}", r"\a", r"\a"),  # a macro that holds itself
        (r"\newcommand{\a}[1]{\a{#1}\a{#1}}", r"\a{x}", r"\a{x}"),
    ],
)
def test_macros_are_written_out(defined: str, used: str, written: str) -> None:
    document = f"\\documentclass{{article}}{defined}\\begin{{document}}Let ${used}$ be.\\end{{document}}"
    assert latex_of(read("latex", document)) == [written]
    for form in ("latex", "markdown"):
        assert latex_of(read(form, f"{defined} Let ${used}$ be.")) == [written]


@FORMS
def test_definitions_are_removed_and_apply_in_text_and_title(form) -> None:
    source = r"""\usepackage{amsmath} \newtheorem{thm}{Theorem}[section] \newtheorem*{rem}{Remark}
\newcommand{\R}{\mathbb{R}} \DeclareMathOperator*{\argmax}{arg\,max} \def\N#1{N_{#1}} \let\phi\varphi
\NewDocumentCommand{\half}{m m}{\frac{#1}{#2}} \newenvironment{ex}{begin}{end}

$\newcommand{\Q}{\mathbb{Q}}$ Let $\R \argmax \N2 \half34 \phi \Q$ be."""
    written = r"\mathbb{R}\operatorname*{arg\,max}N_{2} \frac{3}{4} \varphi\mathbb{Q}"
    post = read(form, source)
    assert (post.text, latex_of(post)) == ("Let FORMULA_0 be.", [written])
    titled = {"markdown": "# On $\\R$\n\n\\def\\R{\\mathbb R} x", "latex": r"\def\R{\mathbb R}\section{On $\R$} x"}
    assert latex_of(read(form, titled[form])) == [r"\mathbb R"]


@FORMS
def test_macros_that_write_too_much_are_refused_by_name_and_other_posts_are_read(form) -> None:
    first, bomb, last = posts_of([{"id": 1, "text": "x"}, {"id": 2, form: BOMB + r"$\a$"}, {"id": 3, form: "y"}])
    assert str(bomb).startswith("post 2: its macros write more than 1,00")
    assert (first.docno, last.docno) == ("1", "3")
    if form == "markdown":
        with pytest.raises(OverLimitError, match="document 'd7': its macros write more than"):
            document_post({"docno": "d7", form: BOMB + r"$\a$"})
    assert latex_of(read(form, r"\def\a{\b\b}\def\b{yy} $\a$")) == ["yyyy"]
    assert len(read(form, r"\newcommand{\a}{\a\a} x " + r"\a" * 100).text) < 200_000


def test_slow_markdown_is_the_error_of_its_post(monkeypatch) -> None:
    monkeypatch.setattr(markdown, "_guarded", Worker(markdown.rendered, seconds=0.2))
    good, slow, other = posts_of([{"id": i, "markdown": text} for i, text in enumerate(("a", "![" * 60_000, "b"))])
    assert str(slow) == "post 2: it needs more than 0.2 s."
    assert (good.docno, other.docno) == ("0", "2")


def test_marks_written_as_entities_are_no_formulas_and_long_addresses_are_not_written_for_each_link() -> None:
    post = read("markdown", "$x$ &#xe005;0&#xe005; &#xe005;99&#xe005; &#xe007;0&#xe007; y")
    assert (post.text, latex_of(post)) == ("FORMULA_0 y", ["x"])
    assert read("markdown", "[a]: http://" + "x" * 1000 + " 't'\n\n" + "[a] " * 100).text == " ".join("a" * 100)


@FORMS
def test_unknown_commands_and_files_that_a_text_includes_are_reported(form) -> None:
    source = r"a \frobnicate{b} and \input{chapter} $x$ \emph{c} \alpha {"
    expected = [r"the command \frobnicate is unknown", r"\input is not followed, index that file too"]
    assert problems_of(form, source)[:2] == expected
    assert problems_of(form, r"a \emph{b} $x$ \textbf{c}") == []
    assert problems_of("latex", r"a {\bf b") == ["{ is never closed"]
    assert problems_of("latex", r"a {\bf b}") == []
    assert problems_of("markdown", r"C:\Users\me \verb|\x| `\y`") == []


def test_blocks_that_are_too_deep_are_reported_and_others_are_read() -> None:
    assert problems_of("markdown", ">" * 60 + " deep\n\nnext") == ["blocks more than 40 deep are left out"]
    assert read("markdown", ">" * 60 + " deep\n\nnext").text == "next"
    assert read("markdown", ">" * 30 + " deep\n\nnext").text == "deep\nnext"
    assert problems_of("markdown", ">" * 30 + " deep") == []


@given(st.text(alphabet="ab12 *_[](){}<>&|#-+=^\\\\!'\"", min_size=1, max_size=40))
def test_a_formula_goes_through_markdown_unchanged(body: str) -> None:
    latex = f"x{body.rstrip(chr(92))}y"
    delimits = any(mark in latex for mark in ("\\(", "\\[", "\\)", "\\]")) or "}" in latex.partition("{")[0]
    if not delimits and latex.count("{") == latex.count("}"):
        assert latex_of(document_post({"markdown": f"A *b* ${latex}$ c_d_."})) == [latex]


@FORMS
@settings(max_examples=50)
@given(st.text(alphabet="ab $`*_#[](){}\\-\n~>|<", max_size=80))
def test_any_text_is_read(form: str, text: str) -> None:
    post = read(form, f"x {text}")
    assert post.text.count("FORMULA_") >= len(post.formulas)


@pytest.mark.parametrize(
    "text", ["`" * 50_000, "` " * 20_000, "$ " * 20_000, "```\n" * 5_000, r"\begin{align}" * 5_000]
)
def test_hostile_markdown_needs_no_quadratic_time(text: str) -> None:
    assert document_post({"markdown": text}).formulas == ()
