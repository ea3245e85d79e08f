r"""LaTeX is read as TeX reads it: macros, conditionals, own environments and files, through the readers of posts."""

import pytest
from post_helpers import BOMB, latex_of, posts_of, read, text_of, units, write

from pyterrier_mathamr._common.running.worker import OverLimitError
from pyterrier_mathamr.formula import opt_from_latex
from pyterrier_mathamr.posts import Document, DocumentError, post_from_html
from pyterrier_mathamr.posts.tex_expansion import Expander


def expanded(definitions: str, used: str) -> str:
    """Expand a text after some definitions, without the marks of these."""
    return Expander().read("", f"{definitions}\n\n{used}").text.rpartition("\n\n")[2]


@pytest.mark.parametrize(
    ("definitions", "used", "written"),
    [
        (r"\newcommand{\ol}{\overline}", r"\ol z + \ol{ab}", r"\overline z + \overline{ab}"),
        (r"\newcommand{\inv}{^{-1}}", r"S\inv A", r"S^{-1}A"),
        (r"\newcommand*\half{\frac12}", r"\half x", r"\frac12x"),
        (r"\newcommand{\abs}[1]{\lvert#1\rvert}", r"\abs{x} \abs\alpha", r"\lvert x\rvert \lvert\alpha\rvert"),
        (r"\newcommand{\m}[2]{#1#2a}", r"\m\alpha b \m c\beta", r"\alpha ba c\beta a"),
        (r"\newcommand{\R}{\mathbb R}\newcommand{\n}{a+b}", r"\hat\R \frac\n2 \frac 1\n", r"\hat{\mathbb R} \frac{a+b} 2 \frac 1{a+b}"),  # noqa: E501
        (r"\DeclareMathOperator{\Gal}{Gal}", r"\Gal(K/F)", r"\operatorname{Gal}(K/F)"),
        (r"\DeclareMathOperator*{\colim}{colim}", r"\colim_i X_i", r"\operatorname*{colim}_i X_i"),
        (r"\newcommand{\be}{\begin{align}}\newcommand{\ee}{\end{align}}", r"\be x \ee", r"\begin{align}x \end{align}"),
        (r"\newcommand{\pd}[2][f]{\frac{d#1}{d#2}}", r"\pd x \pd[g]{y}", r"\frac{df}{dx} \frac{dg}{dy}"),
        (r"\def\p(#1|#2){\langle #1,#2\rangle}", r"\p(a|{b)}) c", r"\langle a,b)\rangle c"),
        (r"\def\make#1{\def\inner##1{#1(##1)}}\make{q}", r"\inner{r}", r"q(r)"),
        (r"\let\old\vec\renewcommand{\vec}[1]{\mathbf{\old{#1}}}", r"\vec{\vec a}", r"\mathbf{\vec{\mathbf{\vec{a}}}}"),
        (r"\providecommand{\phi}{x}\providecommand{\mine}{y}", r"\phi \mine", r"\phi y"),
        (r"\makeatletter\def\a@b{x}\newcommand{\c}{\a@b}\makeatother", r"\c", "x"),
        (r"\expandafter\newcommand\csname my\endcsname[1]{<#1>}", r"\my{a}", "<a>"),
        (r"\def\a{1}\edef\b{\a}\def\a{2}", r"\a\b", "21"),
        (r"\def\a{1}{\def\a{2}\gdef\b{3}}", r"\a\b", "13"),
        (r"\newcommand{\R}{\ensuremath{\mathbb R}\xspace}", r"\R is\R.",
         r"\ensuremath{\mathbb R} is\ensuremath{\mathbb R}."),
        ("\\newcommand{\\a}{x}% a comment\n", "\\a\n y % z\n  w", "xy w"),
        (r"\newcommand* \f {\mathrm{f}}\DeclareRobustCommand \g {g}\DeclareDocumentMacro \h {h}", r"\f \g \h",
         r"\mathrm{f}gh"),
        (r"\NewDocumentCommand{\n}{s o m}{\IfBooleanTF{#1}{S}{}\IfNoValueTF{#2}{}{(#2)}#3}", r"\n*{a} \n[2]{b} \n*[3]c",
         "Sa (2)b S(3)c"),
        (r"\DeclareDocumentCommand \P { t{/} o } {\IfBooleanTF{#1}{\nvdash}{\vdash}\IfValueT{#2}{_{#2}}}",
         r"A \P B \P/[L] C", r"A \vdash B \nvdash_{L} C"),  # the sign of an optional token is in braces
    ],
)  # fmt: skip
def test_a_macro_is_its_text_without_braces_of_our_own(definitions, used, written) -> None:
    assert expanded(definitions, used) == written


@pytest.mark.parametrize(
    ("definitions", "used", "tree"),
    [
        (r"\newcommand{\ol}{\overline}", r"x^\ol y", r"x^{\overline{y}}"),
        (r"\newcommand{\R}{\mathbb R}", r"A_\R^2", r"A_{\mathbb{R}}^2"),
        (r"\newcommand{\a}[1]{\left|#1\right|}", r"2^\a{x+1}", r"2^{\left|x+1\right|}"),
        (r"\newcommand{\half}{{1\over 2}}", r"x^\half", r"x^{{1\over 2}}"),
        (r"\newcommand{\n}{12}", r"x^\n", r"x^12"),  # as TeX prints it
    ],
)
def test_a_script_gets_braces_only_where_tex_needs_a_group(definitions, used, tree) -> None:
    assert opt_from_latex(expanded(definitions, used)).nodes == opt_from_latex(tree).nodes


@pytest.mark.parametrize(
    ("spec", "used", "written"),
    [
        ("m m", r"\a{x}y", "[x][y]"),
        ("o m", r"\a{x} \a[p]{x}", "[][x] [p][x]"),
        ("O{2} m", r"\a{x} \a[p [q]]{x}", "[2][x] [p [q]][x]"),
        ("s m", r"\a*{x} \a x", "[][x] [][x]"),
        ("t! m", r"\a!{x}", "[][x]"),
        ("r() m", r"\a(p){x} \a{x}", r"[p][x] \a{x}"),
        ("d<> D(){7}", r"\a<p>(q) \a", "[p][q] [][7]"),
        ("e{_^}", r"\a^2_1 \a_1", "[1][2] [1][]"),
        ("E{_^}{{i}{j}}", r"\a_1", "[1][j]"),
        ("+m g", r"\a{x}{y} \a{x}", "[x][y] [x][]"),
        (">{\\TrimSpaces} m !O{z}", r"\a{x}", "[x][z]"),
    ],
)
def test_arguments_of_document_commands(spec, used, written) -> None:
    count = len(spec.replace("{\\TrimSpaces}", "").replace(">", "").replace("{_^}", "ee").split()) + ("{_^}" in spec)
    definition = rf"\NewDocumentCommand{{\a}}{{{spec}}}{{[#1][#2]}}" if count > 1 else ""
    assert expanded(definition, used).strip() == written


def test_an_end_of_a_line_in_a_macro_is_a_blank_and_a_comment_is_none() -> None:
    body = "{\n  \\IfNoValueTF{#1}% one\n  {\\vdash}\n\t{\\vdash_{#1}}\n \n\nx\\%y\\\\% two\n}"
    source = rf"\DeclareDocumentCommand \proves {{ o }} {body}<\proves[T]>"
    assert Expander().read("", source).text.partition("<")[2] == " \\vdash_{T}\n \n\nx\\%y\\\\>"


def test_paired_delimiters_take_a_star_and_a_size() -> None:
    plain = r"\DeclarePairedDelimiter{\n}{\lVert}{\rVert}"
    norms = [opt_from_latex(expanded(plain, used)).nodes for used in (r"\n{x}", r"\n*{x}", r"\n[\Big]{x}")]
    assert norms == [("O!norm", "V!𝑥")] * 3
    given = r"\DeclarePairedDelimiterX\set[2]\{\}{#1 \delimsize\vert #2}"
    assert expanded(given, r"\set{x}{y}").split() == [r"\{", "x", r"\vert", "y", r"\}"]
    assert r"\middle" in expanded(given, r"\set*{x}{y}")
    around = r"\DeclarePairedDelimiterXPP\E[1]{\mathbb{E}}[]{_p}{#1}"
    assert expanded(around, r"\E{X}").replace(" ", "") == r"\mathbb{E}[X]_p"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"\iffalse a \iftrue b\else c\fi d\else e\fi{} f", "e f"),
        (r"\newif\iflong \iflong a\else b\fi{} \longtrue \iflong a\else b\fi", "b a"),
        (r"\let\ifshort\iftrue \ifshort a\else b\fi", "a"),
        (r"\def\a{x}\def\b{x}\ifx\a\b same\else other\fi{} \ifx\a\undefined no\else yes\fi", "same yes"),
        (r"\ifnum 1<2 less\else more\fi", "less"),
        (r"\newcommand{\c}[1]{\ifx&#1&empty\else full\fi} \c{} \c{x}", "empty full"),
        (r"\newcommand{\m}{\ifmmode M\else T\fi} \m", "T"),
        (r"\makeatletter\newcommand{\y}{\@ifstar{star}{plain}}\makeatother \y* \y", "star plain"),
        ("\\newcommand{\\hide}{\\iffalse}\nkept \\hide gone\\fi more", "kept more"),
    ],
)  # fmt: skip
def test_only_the_branch_that_tex_takes_is_read(source, text) -> None:
    assert " ".join(read("latex", source).text.split()) == text


def test_an_undecided_conditional_is_read_whole_and_reported() -> None:
    source = r"\ifnum\value{page}>3 late $x$\else early $y$\fi."
    assert latex_of(read("latex", source)) == ["x", "y"]
    problems = Expander().read("", source).problems
    assert problems == {r"\ifnum cannot be decided here, and each of its branches is read": 0}
    assert list(Expander().read("", r"\iffalse x").problems) == [r"\iffalse is never closed"]
    assert Expander().read("", r"\iffalse x").text == "x"


@pytest.mark.parametrize("body", [r"\a", r"x\a", r"\a\a", r"\b", r"{\a}"])
def test_a_recursive_macro_is_kept_and_reported(body) -> None:
    file = Expander().read("", rf"\def\b{{\a}}\def\a{{{body}}} so \a{{z}} and \alpha")
    assert [what.endswith("expands to itself, and is left as it is") for what in file.problems] == [True]
    assert file.text.endswith(r" and \alpha")
    assert len(file.text) < 60


def test_a_definition_ends_with_its_group_and_an_undefined_command_takes_the_folder_s() -> None:
    assert Expander().read("", r"{\def\q{1}\q}\q").text.endswith(r"\q")
    post = read("latex", r"\begin{center}\newcommand{\q}{1}$\q$\end{center} $\q+\alpha$")
    assert latex_of(post) == ["1", r"1+\alpha"]


BOOK = {
    "main.tex": r"""\documentclass{article}
\newtheorem{satz}{\protect\satzname}
\newcommand{\dir}{sub}
\providecommand{\satzname}{Satz}
\newenvironment{mysatz}[1]{\begin{satz}[#1]}{\end{satz}}
\NewDocumentEnvironment{claimed}{O{none} m}{\begin{claim}[#2]}{by #1 \end{claim}}
\newtheorem{claim}{\color{blue}Th\'eor\`eme}
\input{\dir/macros}
\begin{document}
\section{S}
\chapters{one}
\begin{mysatz}{Zorn} A $\Q=1$. \end{mysatz}

\begin{claimed}[me]{Name} B $b$. \end{claimed}
\end{document}""",
    "sub/macros.tex": r"\newcommand{\Q}{\mathbb Q}\newcommand{\chapters}[1]{\input{sub/#1}}"
    r"\newcommand{\thm}[2]{\begin{satz}[#1]#2\end{satz}}",
    "sub/one.tex": "\n\n\\thm{Fermat}{\n  Let $\\Q$ be.\n\n  $x$}\n\nAfter.",
}


def test_structure_that_macros_make_is_seen(tmp_path) -> None:
    found = units(tmp_path, BOOK)
    assert {
        docno: (text_of(post.title), text_of(post.html), post.origin.kind, post.origin.line)
        for docno, post in found.items()
        if post.origin.kind == "theorem"
    } == {
        "sub/one.tex": ("S", r"Satz 1 (Fermat). Let $\mathbb Q$ be. $x$ After.", "theorem", 0),
        "main.tex#satz-zorn": ("Satz 2 (Zorn)", r"A $\mathbb Q=1$.", "theorem", 12),
        "main.tex#théorème-name": ("Théorème 1 (Name)", "B $b$. by me", "theorem", 14),
    }


def test_places_in_the_text_lead_back_to_line_and_column() -> None:
    source = "\\newcommand{\\a}[1]{<#1>}\nx % c\n  \\a{yy} zz \\a{}\nend"
    file = Expander().read("f", source)
    for word, position in {"zz": (3, 10), "end": (4, 1), "x": (2, 1), "<yy>": (3, 3)}.items():
        assert file.position(file.text.index(word)) == position


def test_definitions_of_a_folder_are_for_commands_that_a_file_does_not_define(tmp_path) -> None:
    files = {
        "preamble.sty": r"\newcommand{\bvec}[1]{\mathbf{#1}} \newcommand{\two}{2}",
        "a.md": "# A\n\n$\\bvec x + \\two + \\own + \\phi + \\RR$",
        "b.md": "# B\n\n$\\def\\own{o}\\two$",
        "c.tex": r"\newcommand{\two}{II}\renewcommand{\phi}{\varphi} $\two \phi$ and more",
        "mkdocs.yml": 'extra:\n  macros:\n    RR: "\\\\mathbb{R}"\n    set: ["\\\\{#1\\\\}", 1]\n',
    }
    found = {name: latex_of(post) for name, post in units(tmp_path, files).items()}
    assert found == {
        "a.md": [r"\mathbf{x} + \two + o+ \phi + \mathbb{R}"],  # two has two meanings
        "b.md": [r"\two"],
        "c.tex": [r"II\varphi"],
    }


def test_of_differing_definitions_the_nearest_in_a_folder_around_a_file_counts(tmp_path) -> None:
    files = {
        "all.sty": r"\newcommand{\two}{2}\newcommand{\one}{1}",
        "algebra/defs.sty": r"\newcommand{\two}{II}",
        "logic/defs.sty": r"\newcommand{\two}{\beta}\newcommand{\one}{\alpha}",
        "logic/other.sty": r"\newcommand{\one}{a}",
    }
    notes = ["a.md", "algebra/a.md", "algebra/week/a.tex", "logic/a.rst", "physics/a.md"]
    found = units(tmp_path, {**files, **dict.fromkeys(notes, r"So $\two\one$.")})
    assert {name: latex_of(post) for name, post in found.items()} == {
        "a.md": ["21"],
        "algebra/a.md": ["II1"],
        "algebra/week/a.tex": ["II1"],
        "logic/a.rst": [r"\beta\one"],  # one has two meanings there
        "physics/a.md": ["21"],
    }


def test_an_included_file_depends_on_the_macros_around_the_file_that_includes_it(tmp_path) -> None:
    files = {
        "a/defs.sty": r"\newcommand{\two}{2}",
        "b/defs.sty": r"\newcommand{\two}{II}",
        "a/main.tex": r"\begin{document}\input{../b/child}\end{document}",
        "b/child.tex": r"So $\two$.",
    }
    found = []
    for number in ("2", "3"):
        files["a/defs.sty"] = files["a/defs.sty"].replace("2", number)
        post = units(tmp_path, files)["b/child.tex"]
        found.append((latex_of(post), post.digest))
    assert [formulas for formulas, _ in found] == [["2"], ["3"]]
    assert found[0][1] != found[1][1]


def test_commands_of_packages_are_known() -> None:
    def tree(latex):
        return opt_from_latex(expanded("", latex)).nodes

    assert tree(r"\dv{f}{x}") == tree(r"\frac{d f}{d x}")
    assert tree(r"\pdv[2]{f}{x}") == tree(r"\frac{\partial^2 f}{\partial x^2}")
    assert tree(r"\abs{x}+\norm{y}") == tree(r"|x|+\|y\|")
    assert tree(r"2\qty(a+b)") == tree(r"2\left(a+b\right)")
    assert expanded("", r"\SI{3}{\kilo\meter} \num{1.5}") == r"3\,\mathrm{km} 1.5"
    assert expanded(r"\newcommand{\abs}[1]{A(#1)}", r"\abs{x}") == "A(x)"
    assert expanded(r"\newcommand{\ct}{\mathchoice{a}{b}{c}{d}}", r"\ct e \mathsfit{f}\qedhere") == r"ae \mathsf{f}"
    assert expanded(r"\makeatletter\let\pick\@secondoftwo\makeatother", r"\pick{a}{b}") == "b"


@pytest.mark.parametrize(
    "source",
    [
        "\\[ \\begin{tikzcd} A \\arrow[r, \"f\"] & B \\end{tikzcd} \\]",
        "\\begin{tikzpicture}\\draw (0,0) -- node {$x$} (1,1);\\end{tikzpicture}",
        "\\begin{asy}label(\"$x$\");\\end{asy}",
        "\\begin{algorithm}\\begin{algorithmic}\\State $x \\gets 1$\\end{algorithmic}\\end{algorithm}",
        "\\begin{prooftree}\\AxiomC{$A$}\\UnaryInfC{$B$}\\end{prooftree}",
        "\\AxiomC{$A$}\\UnaryInfC{$B$}\\DisplayProof",
        "\\xymatrix@C=2em{A \\ar[r] & B}",
        "\\ce{H2O -> H+}",
        "\\begin{verbatim}$x$\\end{verbatim}",
        "\\begin{lstlisting}\nif x_1 = y^2:\n\\end{lstlisting}",
    ],
)  # fmt: skip
def test_drawings_and_programs_are_shown_as_source_and_are_neither_words_nor_formulas(source) -> None:
    text = f"before {source} after $z$"
    forms = {"latex": text, "markdown": text.replace("\\[", "$$").replace("\\]", "$$")}
    for form in forms if source.startswith("\\[") else ["latex"]:
        (document,) = posts_of([{"id": "d", form: forms[form]}])
        assert " ".join(post_from_html(document.html).text.split()) == "before after FORMULA_0"
        assert latex_of(document) == ["z"]
        assert '<pre class="latex-source">' in document.html


@pytest.mark.parametrize(
    ("definition", "html"),
    [
        ("", '<pre class="latex-source">Foo.bar</pre>'),
        (r"\newcommand{\lean}[1]{}", '<pre class="latex-source">Foo.bar</pre>'),
        (r"\def\lean#1{}", '<pre class="latex-source">Foo.bar</pre>'),
        (r"\newcommand{\lean}{Lean}", "LeanFoo.bar"),
    ],
)
def test_data_of_a_blueprint_is_no_text_and_the_names_of_declarations_are_kept(definition, html) -> None:
    source = rf"{definition}\lean{{Foo.bar}}\leanok\uses{{lem:a, lem:b}}\proves{{thm:c}} A map $f$."
    (document,) = posts_of([{"id": "d", "latex": source}])
    assert html in document.html
    assert text_of(document.html).removeprefix("LeanFoo.bar ") == "A map $f$."


LONG = 50_000


@pytest.mark.parametrize(
    "text",
    [
        r"\newcommand{\n}[1]{|#1|}" + r"\n{" * 300_000,
        r"\newcommand{\ol}{\overline}" + r"x^\ol y " * 100_000,
        r"\newcommand{\a}[2][x]{#1}" + r"\a[" * 300_000,
        r"\def\a#1\b{#1}" + r"\a " * 300_000,
        r"\def\a{\a}\a " * 80_000,
        r"\iffalse " * 100_000,
        r"\begin{tikzpicture}" * 50_000,
        r"\begin{algorithm}" * 60_000,
        r"\newenvironment{q}{\begin{thm}}{\end{thm}}" + r"\begin{q}" * 100_000 + r"\end{q}" * 100_000,
        r"\csname " * 120_000,
        r"{\def\a{x}" * 90_000,
        "{" * 500_000 + "}" * 500_000,
        "}" * LONG,
        "\\" * LONG,
        r"\newcommand{\a}{" * 60_000,
    ],
    ids=range(15),
)
def test_a_long_text_that_nests_or_never_ends_is_read_in_linear_time(text) -> None:
    Expander().read("", text[:LONG])


def test_macros_that_write_too_much_are_the_error_of_their_file(tmp_path) -> None:
    files = {"a.tex": r"\input{b} Fine $x$", "b.tex": rf"{BOMB} Bad $\a$", "c.md": "also $z$"}
    found = posts_of(write(tmp_path, files))
    assert {"a.tex", "c.md"} <= {post.docno for post in found if isinstance(post, Document)}
    assert any("its macros write more than 1,00" in str(post) for post in found if isinstance(post, DocumentError))
    with pytest.raises(OverLimitError):
        Expander().text(BOMB + r"\a")
