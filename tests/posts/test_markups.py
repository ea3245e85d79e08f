r"""Markups of notes: formulas, statements and text in Markdown, MyST, Obsidian, reStructuredText and LaTeX."""

import pytest
from post_helpers import latex_of, posts_of, read, units

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr.posts import Document, accepted_posts, document_post, plain_text


def texts(posts: dict[str, Document]) -> dict[str, str]:
    return {docno: document_post(post.record()).text for docno, post in posts.items()}


NESTED = r"f(x) = 1 \quad \text{when $x$ is large, \textbf{or $y$$z$}}"


@pytest.mark.parametrize(
    ("form", "source"),
    [
        ("markdown", f"a\n\n$$\n{NESTED}\n$$\n\nso"),
        ("markdown", f"a ${NESTED}$ so"),
        ("text", f"a $${NESTED}$$ so"),
        ("html", f"<p>a $${NESTED}$$ so</p>"),
        ("html", f'a <span class="math-container">{NESTED}</span> so'),
        ("html", f'a <script type="math/tex; mode=display">{NESTED}</script> so'),
        ("latex", rf"a \[{NESTED}\] so"),
        ("latex", f"a $${NESTED}$$ so"),
    ],
)
def test_formulas_in_the_text_of_a_formula_do_not_end_it(form, source) -> None:
    post = read(form, source)
    assert (post.text.split(), latex_of(post)) == (["a", "FORMULA_0", "so"], [NESTED])


def test_several_formulas_in_one_container_stay_several() -> None:
    assert latex_of(read("html", '<span class="math-container">$a_1$ and $b_1$</span>')) == ["a_1", "b_1"]


MYST = r"""# One

```{math}
:label: energy
E = m c^2
```

:::{math}
:nowrap:

a &= b \\
c &= d
:::

```{math}
---
label: third
---
x = \begin{pmatrix} a & b \\ c & d \end{pmatrix}
```

$$
z = 1
$$ (eq:z)

A {math}`u
 + v` and $w$ (a).
"""
RST = r"""Spaces
======

A :math:`d(x,y)
< M` and ``:math:`kept` ``.

.. math::

   a &= b + c \\
   d &= e

.. math:: x^2 = 1
   :label: circle

.. math::
   :nowrap:

   \begin{align}
   p &= q
   \end{align}
"""
OBSIDIAN = r"""See [[Other|the $L^2$ norm]], [[Plain]] and [[Note#Part]]. %% hidden $x$ %% ![[pic.png|200]]

%%
over lines $y$
%%

- $\empty$ a $k[[t]]$ and `[[code]] %% %%`

| a |
|---|
| [[N\|in a table]] |
"""
SLIDES = r"""\documentclass{beamer}\begin{document}
\begin{frame}<1>[fragile]{Sums}
\frametitle{More sums}
\begin{itemize}[<+->]
\item<2-> \alert<3>{one} $\alert<2>{a}$ \pause
\only<1,2>{two}\onslide<3->
\end{itemize}
\end{frame}
\end{document}"""


@pytest.mark.parametrize(
    ("name", "source", "text", "formulas"),
    [
        ("a.md", MYST, "One\nFORMULA_0\nFORMULA_1\nFORMULA_2\nFORMULA_3\nA FORMULA_4 and FORMULA_5 (a).",
         ["E = m c^2", r"\begin{split} a &= b \\ c &= d \end{split}",
          r"x = \begin{pmatrix} a & b \\ c & d \end{pmatrix}", "z = 1", "u + v", "w"]),
        ("a.rst", RST, "Spaces\nA FORMULA_0 and :math:`kept` .\nFORMULA_1\nFORMULA_2\nFORMULA_3",
         ["d(x,y) < M", r"\begin{split} a &= b + c \\ d &= e \end{split}", "x^2 = 1",
          r"\begin{align} p &= q \end{align}"]),
        ("a.md", OBSIDIAN,
         "a\nSee the FORMULA_0 norm, Plain and Note Part.\na FORMULA_1 and [[code]] %% %%\na\nin a table",
         ["L^2", "k[[t]]"]),
        ("a.md", '+++ {"tags": []}\n# One\n\n```{prf:definition}\n:label: top\n\n$$\nx = 1\n$$ (top-1)\n```\n+++\n',
         "One\nDefinition.\nFORMULA_0", ["x = 1"]),
        ("a.md", r"For \\(x\\): \\[x^2\\]", "a\nFor FORMULA_0: FORMULA_1", ["x", "x^2"]),  # with two backslashes
        ("a.md", "$$\\newcommand{\\R}{\\mathbb{R}}$$\n# Reals\n\nOf $\\R$.", "Reals\nOf FORMULA_0.", [r"\mathbb{R}"]),
        ("a.md", r"`\(x\)` and `\begin{align}y\end{align}` and `$z$`",
         "a\n\\(x\\) and \\begin{align}y\\end{align} and $z$", []),
        ("a.html", r"<pre>\[x\]</pre> and \(y\)", "a\n\\[x\\]\nand FORMULA_0", ["y"]),
        ("a.qmd", "$$\na=b\n$$ {#eq-one}\n\n$$c=d (\\#eq:two)$$\n", "a\nFORMULA_0\nFORMULA_1", ["a=b", "c=d"]),
        ("a.tex", r"One $\empty$ and $ \empty x$.", "a\nOne and FORMULA_0.", [r"\empty x"]),
        ("a.tex", SLIDES, "a\nSums\nMore sums\none FORMULA_0 two", ["a"]),
        ("a.org", "| $n$ | of |\n|-----+----|\n| 3 | 6 |\n", "a\nFORMULA_0 of\n3 6", ["n"]),
    ],
    ids=range(12),
)  # fmt: skip
def test_a_file_is_read_as_its_markup_shows_it(tmp_path, name, source, text, formulas) -> None:
    with gathered() as problems:
        [post] = units(tmp_path, {name: source}).values()
    read = document_post(post.record())
    assert (read.text, [" ".join(latex.split()) for latex in latex_of(read)]) == (text, formulas)
    assert [*problems] == []


def test_directives_whose_title_is_that_of_a_statement_are_statements(tmp_path) -> None:
    rst = (
        "Spaces\n======\n\n.. topic:: Definition\n\n    Bounded :math:`B`.\n\n.. admonition:: Theorem 3.1 (Heine)\n\n"
        "    Compact.\n\n.. prf:theorem:: Borel\n    :label: borel\n\n    Closed.\n\n.. note:: Remember\n\n    "
        "Well.\n\n.. rubric:: Lemma\n\nOpen.\n"
    )
    myst = (
        "# Sets\n\n```{admonition} Theorem 4.1 (Cantor)\n:class: tip\nNot countable.\n```\n\n:::{topic} Definition\n"
        "Countable.\n:::\n\n:::{note} Remember\nWell.\n:::\n"
    )
    found = units(tmp_path, {"a.rst": rst, "b.md": myst})
    assert {docno: (post.origin.kind, post.origin.line) for docno, post in found.items()} == {
        "a.rst#spaces": ("section", 1),
        "a.rst#spaces/definition-1": ("definition", 4),
        "a.rst#theorem-3.1": ("theorem", 8),
        "a.rst#borel": ("theorem", 12),
        "a.rst#spaces/lemma-1": ("lemma", 21),
        "b.md#sets": ("section", 1),
        "b.md#theorem-4.1": ("theorem", 3),
        "b.md#sets/definition-1": ("definition", 8),
    }
    assert texts(found)["b.md#theorem-4.1"] == "Theorem 4.1 (Cantor)\nNot countable."


@pytest.mark.parametrize(
    ("printed", "kind"),
    [
        (r"\protect\theoremname", "theorem"), (r"Th\'eor\`eme principal", "theorem"), (r"\bf Lemma", "lemma"),
        (r"\color{blue}Theorem", "theorem"), ("Afirmación", "claim"), ("Congettura", "conjecture"),
        ("Hipótese", "assumption"), ("Обозначение", "notation"), ("练习题", "exercise"), ("補題", "lemma"),
        ("予想", "conjecture"), ("Anmerkung", "remark"),
    ],
)  # fmt: skip
def test_the_kind_of_a_statement_is_what_is_printed_in_any_language(tmp_path, printed, kind) -> None:
    source = (
        rf"\documentclass{{article}}\newtheorem{{zz}}{{{printed}}}\begin{{document}}\section{{S}}"
        "\n\\begin{zz}one $a$\\end{zz}\n\\begin{zz}two $b$\\end{zz}\n\\end{document}"
    )
    found = units(tmp_path, {"a.tex": source})
    assert [post.origin.kind for post in found.values()] == [kind, kind]
    assert not any(sign in docno for docno in found for sign in "\\{}")


def test_macros_of_front_matter_are_those_of_the_file_and_the_folder(tmp_path) -> None:
    front = "---\nmath:\n  '\\Spec': '\\operatorname{Spec}'\nmacros:\n"
    front += '  RR: "\\\\mathbb{R}"\n  sq:\n    - "#1^2\\\\!"\n---\n'
    found = units(tmp_path, {"a.md": front + "$\\Spec A$ and $\\sq{x}$", "b.md": "$\\RR$"})
    assert {docno: latex_of(post) for docno, post in found.items()} == {
        "a.md": [r"\operatorname{Spec}A", r"x^2\!"],
        "b.md": [r"\mathbb{R}"],
    }


def test_excluded_files_are_not_read_and_each_kind_of_skipped_file_is_named_once(tmp_path) -> None:
    files = dict.fromkeys(
        ["n.md", "templates/t.md", "node_modules/x/r.md", "_build/b.md", ".obsidian/h.md", "sub/draft.md", "sub/k.md",
         "old/o.md", "x.bib", "y.py", "z.py"], "Some $x$",
    )  # fmt: skip
    rules = {".gitignore": "/old/\n", "sub/.mathamrignore": "draft*\n"}
    assert [*units(tmp_path, {**files, **rules})] == ["n.md", "sub/k.md"]
    assert [post.docno for post in posts_of(tmp_path, exclude="k.md\n!_build/") if isinstance(post, Document)] == [
        "_build/b.md", "n.md"
    ]  # fmt: skip
    with pytest.warns(MathAMRWarning) as caught:
        list(accepted_posts(tmp_path))
    [warning] = [str(each.message) for each in caught]
    assert warning == (
        "Not read: 3 other files (2 .py, 1 .bib): they are not notes. 5 files and folders (_build/, node_modules/, "
        "old/, …): excluded by --exclude, .gitignore, .mathamrignore or by default."
    )


def test_patterns_that_are_wrong_or_could_take_too_long_are_reported_and_others_apply(tmp_path) -> None:
    with gathered() as problems:
        found = units(tmp_path, {"a" * 60 + ".md": "$x$", "b.md": "$y$", ".gitignore": f"!\n[z-a]\n{'*a' * 25}\nb.*\n"})
    assert [*found] == ["a" * 60 + ".md"]
    assert [problem.where for problem in problems] == ["!", "[z-a]", "*a" * 25]


def test_a_paragraph_between_statements_never_belongs_to_the_next_one_and_titles_of_sections_are_not_repeated(
    tmp_path,
) -> None:
    latex = r"""\documentclass{article}\newtheorem{thm}{Theorem}\begin{document}
\section{Series}
A few words.
\begin{thm}One $a$.\end{thm}
In between.
\begin{thm}Two $b$.\end{thm}
\section{Limits}
\begin{thm}Three $c$.\end{thm}
\end{document}"""
    markdown = "# Series\n\nFew.\n\n**Theorem.** One.\n\n---\n\nBetween.\n\n**Theorem.** Two.\n\n"
    markdown += "# Limits\n\n## Inner\n\n**Theorem.** Three.\n"
    assert texts(units(tmp_path, {"a.tex": latex, "b.md": markdown})) == {
        "a.tex#series": "Series\nA few words.\nIn between.",
        "a.tex#series/theorem-1": "Theorem 1\nOne FORMULA_0.",
        "a.tex#series/theorem-2": "Theorem 2\nTwo FORMULA_0.",
        "a.tex#limits/theorem-1": "Theorem 3\nThree FORMULA_0.",
        "b.md#series": "Series\nFew.\nBetween.",
        "b.md#series/theorem-1": "Theorem\nOne.",
        "b.md#series/theorem-2": "Theorem\nTwo.",
        "b.md#limits/inner/theorem-1": "Theorem\nThree.",
    }


@pytest.mark.parametrize(
    ("front", "title"),
    [
        (r'title: "The \"number\" $\\pi$"', r'The "number" $\pi$'),
        (r'title: "The number $\pi$"', r"The number $\pi$"),
        (r"title: 'The number $\pi$'", r"The number $\pi$"),
        (r'title = "The number $\\pi$"', r"The number $\pi$"),
    ],
)
def test_the_title_in_front_matter_is_read_as_yaml_and_toml_quote_it(tmp_path, front, title) -> None:
    date, fence = ("date = 2025-01-31", "+++") if " = " in front else ("date: 2025-01-31", "---")
    [post] = units(tmp_path, {"a.md": f"{fence}\n{date}\n{front}\n{fence}\nText."}).values()
    assert plain_text(document_post(post.record())) == f"{title}\nText."
    assert post.origin.date == "2025-01-31"


def test_gated_directives_captions_roles_and_substitutions_are_read(tmp_path) -> None:
    myst = (
        "# Sums\n\nAs {cite}`euler` says in {ref}`part <two>`.\n\n"
        "```{exercise-start}\n:label: ex-one\n```\nShow\n```{math}\na=b\n```\n```{exercise-end}\n```\n\n"
        "```{figure} one.png\n:name: fig\nThe sum $s$.\n```\n\n```{note}\n:class: dropdown\nWell.\n```\n\n"
        ":::{lemma-start} Two\n:::\nIf $c$.\n:::{lemma-end}\n:::\n"
    )
    rst = (  # a role over two lines ends no directive
        ".. |R| replace:: the reals :math:`\\mathbb{R}`\n\n.. prf:lemma:: One\n\n    In |R|, :math:`a\n    <b`.\n\n"
        ".. math:: |R|=1\n\n.. note:: So |R| and ``|R|`` or :math:`|R|`.\n\n.. prf:lemma:: Two\n\n    In |S|.\n"
    )
    found = units(tmp_path, {"a.md": myst, "b.rst": rst})
    assert texts(found) == {
        "a.md#sums": "Sums\nAs euler says in part <two>.\nThe sum FORMULA_0.\nWell.",
        "a.md#ex-one": "Exercise\nShow FORMULA_0",
        "a.md#lemma-two": "Lemma (Two)\nIf FORMULA_0.",
        "b.rst": "b\nFORMULA_0\nSo the reals FORMULA_1 and |R| or FORMULA_2.",
        "b.rst#lemma-one": "Lemma (One)\nIn the reals FORMULA_0, FORMULA_1 .",
        "b.rst#lemma-two": "Lemma (Two)\nIn |S|.",
    }
    assert latex_of(found["b.rst"]) == ["|R|=1", r"\mathbb{R}", "|R|"]


@pytest.mark.parametrize(
    ("note", "title"),
    [
        (r"\cite[Thm.~2]{x}", "Theorem 1"), (r"(\cite{x})", "Theorem 1"), (r"{\cite{x}}", "Theorem 1"),
        (r"\textcite{x}, \parencite{y}.", "Theorem 1"), (r"Euler, \cite{x}", "Theorem 1 (Euler)"),
        (r"$\star$", r"Theorem 1 ($\star$)"),
    ],
)  # fmt: skip
def test_a_name_that_is_only_a_citation_is_no_name(tmp_path, note, title) -> None:
    source = rf"\newtheorem{{t}}{{Theorem}}\begin{{t}}[{note}]One (\ref{{a}}).\end{{t}}\begin{{t}}Two.\end{{t}}"
    post = next(iter(units(tmp_path, {"a.tex": source}).values()))
    assert plain_text(document_post(post.record())).startswith(f"{title}\nOne")
    assert "()" not in post.html
