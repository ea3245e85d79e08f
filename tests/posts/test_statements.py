"""Files of notes as units: statements with their proofs, sections, numbers, labels and lines; docnos that stay."""

import json
import os
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from post_helpers import latex_of, posts_of, text_of, write

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr.posts import (
    Document,
    DocumentError,
    ReadingOptions,
    accepted_posts,
    post_from_html,
    source_entries,
    statements,
)

FILLER = "Some words that make a section long enough to be a post of its own, and nothing else but that, here. " * 2
LONG = FILLER * 12  # too much for a small file


def read(folder, files, **options) -> dict[str, Document]:
    """Write files, and read the posts of their folder by docno; none is left out."""
    found = posts_of(write(folder, files), **options)
    assert [str(post) for post in found if isinstance(post, DocumentError)] == []
    return {post.docno: post for post in found}


def shown(post: Document) -> tuple[str, str, str, str, int]:
    return text_of(post.title), text_of(post.html), post.origin.section, post.origin.kind, post.origin.line


# ---- LaTeX

BOOK = {
    "main.tex": r"""\documentclass{book}
\newtheorem{thm}{Theorem}[section] \newtheorem{lem}[thm]{Lemma} \newtheorem*{rem}{Remark} % \newtheorem{no}{No}
\newcommand{\R}{\mathbb R}
\title{Analysis}
\begin{document}
\maketitle
\include{ch1}
\input{parts/ch2}
\end{document}""",
    "ch1.tex": rf"""\chapter{{Series}}
{FILLER} $s_1$
\section{{Inner products}}\label{{sec:inner}}
{FILLER} $s_2$
\begin{{thm}}[Cauchy--Schwarz]\label{{thm:cs}}
For $x\in\R$.
\begin{{equation}}\label{{eq:no}} y \end{{equation}}
\end{{thm}}
\begin{{rem}}
Not here, $r$.
\end{{rem}}
\begin{{proof}}
Expand $p$. \begin{{lem}} A claim $c$. \end{{lem}}
\end{{proof}}
\begin{{lem}} First $l_1$. \end{{lem}}
\begin{{lem}} Second $l_2$. \end{{lem}}""",
    "parts/ch2.tex": rf"""\chapter{{Later}}
\section*{{Without a number}}
\begin{{thm}} Theorem of nothing, $n$. \end{{thm}}
\section{{Numbered}} {FILLER}
\begin{{thm}} More, $m$. \end{{thm}}
\begin{{proof}}[Proof of Theorem~\ref{{thm:cs}}] Another one, $q$. \end{{proof}}""",
}


def test_a_book_is_split_at_statements_that_are_numbered_as_latex_prints_them(tmp_path) -> None:
    found = read(tmp_path, BOOK)
    assert list(found) == [
        "ch1.tex#series",
        "ch1.tex#sec:inner",
        "ch1.tex#thm:cs",
        "ch1.tex#sec:inner/remark-1",
        "ch1.tex#sec:inner/lemma-1",
        "ch1.tex#sec:inner/lemma-2",
        "main.tex",
        "parts/ch2.tex#later/without-a-number/theorem-1",
        "parts/ch2.tex#later/numbered",
        "parts/ch2.tex#later/numbered/theorem-1",
    ]
    proof = "For $x\\in\\mathbb R$. $\\begin{equation} y \\end{equation}$ Proof. Expand $p$. A claim $c$. "
    assert shown(found["ch1.tex#thm:cs"]) == (
        "Theorem 1.1.1 (Cauchy–Schwarz)", f"{proof}Proof. Another one, $q$.", "Series › Inner products", "theorem", 5
    )  # fmt: skip
    assert shown(found["ch1.tex#sec:inner/lemma-1"])[0] == "Lemma 1.1.3"  # after the claim in the proof
    assert shown(found["ch1.tex#sec:inner/remark-1"])[:2] == ("Remark", "Not here, $r$.")
    assert shown(found["parts/ch2.tex#later/without-a-number/theorem-1"])[0] == "Theorem 2.0.1"
    assert shown(found["parts/ch2.tex#later/numbered/theorem-1"])[0] == "Theorem 2.1.1"
    assert text_of(found["main.tex"].title) == "Analysis"
    assert text_of(found["ch1.tex#thm:cs"].parent_title) == "Series › Inner products"
    assert all(post.origin.file == post.docno.partition("#")[0] for post in found.values())


@pytest.mark.parametrize(
    ("preamble", "body", "titles"),
    [
        (r"\newtheorem{a}{Satz}", r"\begin{a}x\end{a}\begin{a}y\end{a}", ["Satz 1", "Satz 2"]),
        (r"\newtheorem{a}{A}[section]\numberwithin{a}{subsection}",
         r"\section{s}\subsection{t}\begin{a}x\end{a}\subsection{u}\begin{a}y\end{a}", ["A 1.1.1", "A 1.2.1"]),
        (r"\declaretheorem[name=Theorem,numberwithin=section]{t}\declaretheorem[sibling=t,name=Fact]{f}",
         r"\section{s}\begin{t}[name=N,label=x]x\end{t}\begin{f}y\end{f}", ["Theorem 1.1 (N)", "Fact 1.2"]),
        (r"\newaliascnt{l}{t}\newtheorem{t}{T}\newtheorem{l}[l]{L}\aliascntresetthe{l}",
         r"\begin{t}x\end{t}\begin{l}y\end{l}", ["T 1", "L 2"]),
        (r"\newtheorem{t}{T}\renewcommand{\thet}{\Alph{t}}", r"\begin{t}x\end{t}\begin{t}y\end{t}", ["T A", "T B"]),
        (r"\newtheorem{t}{T}[section]", r"\appendix\section{b}\begin{t}x\end{t}\begin{t*}y\end{t*}", ["T A.1"]),
        (r"\newtheorem{t}{T}\setcounter{t}{4}",
         r"\begin{t}x\end{t}\addtocounter{t}{2}\begin{t}y\end{t}", ["T 5", "T 8"]),
        (r"\newtcbtheorem[number within=section]{T}{Theorem}{}{th}",
         r"\section{s}\begin{T}{N $n$}{lab}x\end{T}\begin{T}{}{}y\end{T}", ["Theorem 1.1 (N $n$)", "Theorem 1.2"]),
        ("", r"\begin{thm}x\end{thm}\begin{lemma}[N \cite{a}]y\end{lemma}\begin{thm}z\end{thm}",
         ["Theorem 1", "Lemma 1 (N)", "Theorem 2"]),
        (r"\newtheorem{t}{T}\def\bt{\begin{t}}\def\et{\end{t}}", r"\bt x\et \bt y\et", ["T 1", "T 2"]),
        (r"\usepackage{thm-restate}\newtheorem{t}{T}",
         r"\begin{restatable}[N]{t}{goldbach}x\end{restatable}\begin{t}y\end{t}", ["T 1 (N)", "T 2"]),
        ("", "\\textbf{Theorem 3.2 (N).} x\n\n{\\it Proof.} y\n\n\\noindent{\\bf 3.3 Lemma.} z",
         ["Theorem 3.2 (N)", "Lemma 3.3"]),
    ],
)  # fmt: skip
def test_kinds_of_statements_and_counters_are_read(tmp_path, preamble, body, titles) -> None:
    source = f"{preamble}\n\\begin{{document}}\n{LONG}\n\n{body}\n\\end{{document}}"
    found = read(tmp_path, {"a.tex": source})
    assert [text_of(post.title) for post in found.values() if post.origin.kind != "section"] == titles


def test_included_files_are_read_once_and_never_from_outside_the_folder(tmp_path) -> None:
    (tmp_path / "secret.tex").write_text("the password")
    main = r"""\input{macros-of-mine}\begin{document}$\a$ \input{part} \input{part} \input{gone} \input{../secret}
\input{/etc/passwd} \input{part.tikz} \begin{proof} \input{inner} $\b$ \end{proof}\end{document}"""
    files = {
        "main.tex": main,
        "macros-of-mine.tex": r"\newcommand{\a}{\alpha}\newcommand{\b}{\beta}",
        "part.tex": r"Part $\a$.",
        "inner.tex": r"Inner $\b$.",
        "other.tex": r"\input{macros-of-mine}\begin{document} Other $\a$ \input{part}\end{document}",
        "loop1.tex": r"One \input{loop2}",
        "loop2.tex": r"Two \input{loop1}",
        "unused.sty": r"\input{of-a-package} \newcommand{\cc}{\gamma}",
        "of-a-package.tex": r"Read $\cc$.",
    }
    with gathered() as problems:
        found = read(tmp_path / "notes", files)
    assert {name: text_of(post.html) for name, post in found.items()} == {
        "loop1.tex": "One",
        "loop2.tex": "Two",
        "main.tex": r"$\alpha$ Proof. Inner $\beta$. $\beta$",
        "of-a-package.tex": r"Read $\gamma$.",
        "other.tex": r"Other $\alpha$",
        "part.tex": r"Part $\alpha$.",
    }
    assert [(problem.post, problem.what) for problem in problems] == [
        ("main.tex", "gone.tex is not a file of the folder"),
        ("main.tex", "../secret.tex leaves the folder, and is not followed"),
        ("main.tex", "/etc/passwd.tex leaves the folder, and is not followed"),
        ("loop2.tex", "loop1.tex includes itself, which is not followed"),
    ]
    assert [post.docno for post in posts_of(tmp_path / "notes" / "main.tex")] == ["main.tex", "part.tex"]


def test_a_statement_that_nothing_ends_goes_on_to_the_next_one(tmp_path) -> None:
    lemma = r"\begin{theorem} one $a$ \begin{lemma} two $b$ \end{lemma} "
    source = rf"\section{{A}}{FILLER}{lemma}\section{{B}} {FILLER} $c$"
    with gathered() as problems:
        found = read(tmp_path, {"a.tex": source})
    assert [text_of(post.html) for post in found.values()][1:3] == ["one $a$", "two $b$"]
    assert [problem.what for problem in problems] == [r"\begin{theorem} is never closed"]


# ---- Markdown

VAULT = f"""---
title: My notes
date: 2024-02-29
---
# Series {{#sec:series}}

{FILLER} $s$

**Theorem 3.2 (Cauchy–Schwarz).** For $a$.

*Proof.* Clear $p$. ∎

{FILLER} $t$

> [!theorem] Lagrange
> So $b$. ^lag

> [!proof]-
> Cosets $q$.

## Tests

::: {{.lemma #lem-x name="Zorn"}}
Chain $c$.
:::

```{{prf:corollary}} Named
:label: cor-y
Then $d$.
```

\\begin{{definition}}[Group]\\label{{def:g}}
A set $e$.
\\end{{definition}}

**Remark.** First $f$.

**Remark.** Second $g$.

```
**Theorem.** in code $no$
```

### Proof of Theorem 3.2

Again $h$.
"""


def test_markdown_is_split_in_every_form_in_which_statements_are_written(tmp_path) -> None:
    found = read(tmp_path, {"v.md": VAULT})
    assert {name.partition("#")[2]: shown(post)[0] for name, post in found.items()} == {
        "sec:series": "Series",
        "theorem-3.2": "Theorem 3.2 (Cauchy–Schwarz)",
        "^lag": "Theorem (Lagrange)",
        "lem-x": "Lemma (Zorn)",
        "cor-y": "Corollary (Named)",
        "def:g": "Definition (Group)",
        "sec:series/tests/remark-1": "Remark",
        "sec:series/tests/remark-2": "Remark",
    }
    section = "My notes › Series › Tests"
    assert shown(found["v.md#theorem-3.2"])[1:] == (
        "For $a$. Proof. Clear $p$. ∎ Proof. Again $h$.", "My notes › Series", "theorem", 9
    )  # fmt: skip
    assert shown(found["v.md#^lag"])[1:] == ("So $b$. Proof. Cosets $q$.", "My notes › Series", "theorem", 15)
    assert shown(found["v.md#lem-x"])[1] == "Chain $c$."  # without the heading above it, which is its section
    assert shown(found["v.md#cor-y"])[1:] == ("Then $d$.", section, "corollary", 27)
    assert shown(found["v.md#sec:series/tests/remark-2"])[1:4] == (
        "Second $g$. **Theorem.** in code $no$", section, "remark"
    )  # fmt: skip
    assert latex_of(found["v.md#sec:series/tests/remark-2"]) == ["g"]
    assert {post.origin.date for post in found.values()} == {"2024-02-29"}


def test_other_languages_and_numbered_paragraphs_are_units(tmp_path) -> None:
    arabic = f"## المتتاليات\n\n{FILLER}\n\n**مبرهنة 1.1 (فيتاغورس).** $a$\n\n**برهان.** $b$ ∎\n\n**تعريف.** $c$"
    numbered = f"# T\n\n**1.1. Compact.** {FILLER} $a$\n\n1.2 {FILLER} $b$\n\n**1.3 Satz (Heine).** $c$\n\n1.4 Last $d$"
    liters = f"# L\n\n2.5 liters of $x$ {LONG}"
    found = read(tmp_path, {"a.md": arabic, "n.md": f"{numbered}\n\n{LONG}", "l.md": liters})
    assert {name: shown(post)[0] for name, post in found.items()} == {
        "a.md#المتتاليات": "المتتاليات",
        "a.md#مبرهنة-1.1": "مبرهنة 1.1 (فيتاغورس)",
        "a.md#المتتاليات/تعريف-1": "تعريف",
        "l.md#l": "L",
        "n.md#1.1": "1.1. Compact",
        "n.md#1.2": "1.2",
        "n.md#satz-1.3": "Satz 1.3 (Heine)",
        "n.md#1.4": "1.4",
    }
    assert found["a.md#مبرهنة-1.1"].origin.kind == "theorem"


def test_a_small_file_stays_whole_and_is_what_its_only_statement_is(tmp_path) -> None:
    two = "# T\n\n**Lemma.** $x$\n\n**Lemma.** $y$"
    files = {"one.md": "**Theorem (Zorn).** $x$\n\n*Proof.* $y$", "none.md": "$z$", "two.md": two}
    found = read(tmp_path, files)
    assert list(found) == ["none.md", "one.md", "two.md#t/lemma-1", "two.md#t/lemma-2"]
    assert shown(found["one.md"]) == ("Theorem (Zorn)", "$x$ Proof. $y$", "", "theorem", 0)
    assert shown(found["none.md"]) == ("none", "$z$", "", "file", 0)
    whole = read(tmp_path, {}, whole_files=True)
    assert list(whole) == ["none.md", "one.md", "two.md"]
    assert shown(whole["two.md"])[:2] == ("T", "Lemma. $x$ Lemma. $y$")
    size = statements.SMALL
    sections = "# A\n\n{}\n\n# B\n\nb"
    short, long = sections.format("x" * (size - 2)), sections.format("x" * (size - 1))
    assert len(read(tmp_path / "s", {"short.md": short})) == 1
    assert len(read(tmp_path / "l", {"long.md": long})) == 2


@pytest.mark.parametrize("ending", ["md", "tex"])
def test_a_docno_stays_whatever_is_edited_elsewhere(tmp_path, ending) -> None:
    heading, theorem, body = {
        "md": ("## {}\n\n", "**Theorem{}.** {}\n\n", f"{FILLER}\n\n"),
        "tex": ("\\section{{{}}}\n", "\\begin{{theorem}}{}{}\\end{{theorem}}\n", f"{FILLER}\n"),
    }[ending]
    named = {"md": " (Zorn)", "tex": "[Zorn]"}[ending]
    last = heading.format("Last") + body
    last += theorem.format("", "$a$") + theorem.format("", "$b$") + theorem.format(named, "$c$")

    def docnos(before: str) -> list[str]:
        found = read(tmp_path, {f"f.{ending}": before + last})
        return [name for name in found if "last" in name or "zorn" in name]

    expected = [f"f.{ending}#{name}" for name in ("last", "last/theorem-1", "last/theorem-2", "theorem-zorn")]
    assert docnos("") == expected
    assert docnos(heading.format("New") + body + theorem.format("", "$n$") * 3) == expected
    assert docnos(body + theorem.format("", "$n$") + heading.format("Last but one") + body)[1:] == expected


def test_two_of_one_label_or_name_have_different_docnos_and_a_label_comes_first(tmp_path) -> None:
    source = FILLER + "".join(
        [r"\begin{lemma}[A] 1 \end{lemma}", r"\begin{lemma}[A] 2 \end{lemma}",
         r"\begin{lemma}\label{lemma-a} 3 \end{lemma}", r"\begin{lemma}\label{lemma-a} 4 \end{lemma}"]
    )  # fmt: skip
    found = read(tmp_path, {"a.tex": source})
    by_text = {text_of(post.html)[-1]: name for name, post in found.items()}
    assert by_text == {
        "1": "a.tex#lemma-a-3", "2": "a.tex#lemma-a-4", "3": "a.tex#lemma-a", "4": "a.tex#lemma-a-2", ".": "a.tex"
    }  # fmt: skip
    found = read(tmp_path, {"a.tex": rf"{LONG}\section{{{'word ' * 500}}}{FILLER}"})
    (long,) = (name for name in found if "#" in name)
    assert len(long) < 200


def test_callouts_in_callouts_marks_of_the_end_and_labels_before_a_text_are_read(tmp_path) -> None:
    source = f"""## A

{LONG}

> [!note] Basis
> Before $a$.
> > [!THEOREM] Satz
> > Inner $b$.
>
> After $c$.

> [!theorem] Theorem §34.1: Fundamental theorem
> Then $d$.

^thm-34-1

(not-a-label)=
A paragraph of its own.

**Lemma.** So $e$.

**Proof.** As $f$. \\(\\square\\)

Outside $g$.

:::::{{prf:theorem}}
:label: outer
Outer $h$.
:::{{prf:proof}}
:nonumber:
Inner $i$.
:::
:::::
"""
    found = read(tmp_path, {"a.md": source})
    assert {name: (text_of(post.title), latex_of(post)) for name, post in found.items()} == {
        "a.md#a": ("A", ["a", "c", "g"]),
        "a.md#a/satz-1": ("Satz", ["b"]),
        "a.md#^thm-34-1": ("Theorem §34.1 (Fundamental theorem)", ["d"]),
        "a.md#a/lemma-1": ("Lemma", ["e", "f", r"\square"]),
        "a.md#outer": ("Theorem", ["h", "i"]),
    }
    assert "nonumber" not in found["a.md#outer"].html


def test_a_proof_belongs_to_the_last_theorem_and_a_solution_to_the_last_exercise(tmp_path) -> None:
    leads = ["Theorem", "Exercise", "Proof", "Remark", "Solution", "Second proof", "Proof of Lemma 9"]
    source = f"## A\n\n{LONG}\n\n" + "\n\n".join(f"**{lead}.** ${i}$" for i, lead in enumerate(leads))
    files = {
        "a.md": source,
        "b.md": f"# B\n\n*Proof.* ${7}$ {LONG}",
        "c.md": f"# C\n\n{LONG} Claimed.\n\n### Proof\n\n$8$",
    }
    found = read(tmp_path, files)
    assert {name: latex_of(post) for name, post in found.items()} == {
        "a.md#a": [],
        "a.md#a/theorem-1": ["0", "2", "5"],
        "a.md#a/exercise-1": ["1", "4"],
        "a.md#a/remark-1": ["3"],
        "a.md#proof-of-lemma-9": ["6"],
        "b.md#b/proof-1": ["7"],
        "c.md#c": ["8"],
    }
    assert found["a.md#proof-of-lemma-9"].origin.kind == found["b.md#b/proof-1"].origin.kind == "proof"


# ---- other forms


def test_notebooks_rst_and_org_are_split_at_headings_and_cells(tmp_path) -> None:
    cells = [
        ("markdown", f"# Rules\n\n{FILLER} $a$"),
        ("code", "x = '$no$'"),
        ("markdown", f"{FILLER} $b$"),
        ("markdown", f"## Simpson\n\n**Theorem.** $c$ {LONG}"),
        ("markdown", "Short $d$."),
    ]
    written = [(kind, f"i{i}", text.splitlines(keepends=True)) for i, (kind, text) in enumerate(cells)]
    notebook = {"cells": [dict(zip(("cell_type", "id", "source"), cell, strict=True)) for cell in written]}
    rst = f"""
Optics
======

:date: 2023-01-02

{FILLER} :math:`a_{{1}}` of gauss_ and $b_{{2}}$

.. _snell:

Snell's law
-----------

So ``$no$`` and :ref:`x <snell>` and :math:`b`. {LONG}

.. math::
   :label: eq

   c = d

.. prf:theorem:: Fermat
   :label: thm-f

   Light $e$.

.. code-block:: python

   "$no$"

.. image:: a.png
"""
    org = f"""#+title: Diary
#+date: <2022-03-04>
#+latex_header: \\newcommand{{\\H}}{{\\mathcal H}}
* TODO Operators :tag:
:PROPERTIES:
:CUSTOM_ID: ops
:END:
{FILLER} $\\H$ and =$no$=.
** Spectrum
{LONG}
#+begin_theorem :name Spectral
For $a$.
#+end_theorem
#+begin_proof
Maximise $b$.
#+end_proof
#+begin_src python
"$no$"
#+end_src
"""
    files = {"n.ipynb": json.dumps(notebook, indent=1), "o.org": org, "r.rst": rst}
    found = read(tmp_path, files)
    assert {name: (shown(post)[0], latex_of(post)) for name, post in found.items()} == {
        "n.ipynb#rules": ("Rules", ["a"]),
        "n.ipynb#rules/cell-i2": ("Rules", ["b"]),
        "n.ipynb#rules/simpson/theorem-1": ("Theorem", ["c", "d"]),
        "o.org#ops": ("Operators", [r"\mathcal H"]),
        "o.org#ops/spectrum": ("Spectrum", []),
        "o.org#theorem-spectral": ("Theorem (Spectral)", ["a", "b"]),
        "r.rst#optics": ("Optics", ["a_{1}", "b_{2}"]),
        "r.rst#snell": ("Snell's law", ["b", "c = d"]),
        "r.rst#thm-f": ("Theorem (Fermat)", ["e"]),
    }
    assert (found["r.rst#snell"].origin.date, found["o.org#ops"].origin.date) == ("2023-01-02", "2022-03-04")
    for name, file, words in [
        ("n.ipynb#rules/cell-i2", "n.ipynb", "$b$"),
        ("r.rst#snell", "r.rst", "Snell's law"),
        ("r.rst#thm-f", "r.rst", "prf:theorem"),
        ("o.org#theorem-spectral", "o.org", "begin_theorem"),
        ("o.org#ops", "o.org", "TODO Operators"),
    ]:
        assert words in files[file].split("\n")[found[name].origin.line - 1]


def test_an_underlined_heading_has_one_of_two_levels_and_an_author_is_no_title(tmp_path) -> None:
    markdown = f"Fields\n======\n\nRings\n-----\n\n{LONG} $a$\n\nIdeals\n------\n\n{LONG} $b$\n"
    org = f"#+author: Noether\n#+title: Fields\n#+title: More\n* Rings\n{LONG} $c$\n** Ideals\n{LONG} $d$\n"
    found = read(tmp_path, {"m.md": markdown, "o.org": org, "p.org": org.replace("#+title", "#+email")})
    assert {name: shown(post)[2] for name, post in found.items()} == {
        "m.md#fields/rings": "Fields",
        "m.md#fields/ideals": "Fields",
        "o.org#rings": "Fields",
        "o.org#rings/ideals": "Fields › Rings",
        "p.org#rings": "",
        "p.org#rings/ideals": "Rings",
    }


def test_macros_of_the_folder_of_a_file_and_of_the_text_apply(tmp_path) -> None:
    given = tmp_path / "given.tex"
    given.write_text(r"\newcommand{\G}{\Gamma} \newtheorem{koan}{Koan}")
    files = {
        "macros.tex": r"\newcommand{\R}{\mathbb R}",
        "a.md": r"$\R \G$",
        "b.txt": "\\def\\x{\\xi}\n$\\x \\R$",
        "c.html": r"<p>$\R$</p>",
        "d.tex": rf"{LONG}\begin{{koan}} $\R$ \end{{koan}}",
        "e.md": "$$\\newcommand{\\R}{R}$$\n\n$\\R$",
    }
    found = read(tmp_path / "notes", files, macros=str(given))
    assert {name: latex_of(post) for name, post in found.items() if name != "d.tex"} == {
        "a.md": [r"\mathbb R\Gamma"],
        "b.txt": [r"\xi\mathbb R"],
        "c.html": [r"\mathbb R"],
        "d.tex#koan-1": [r"\mathbb R"],
        "e.md": ["R"],
    }
    records = [{"id": 1, "latex": r"$\G$"}, {"id": 2, "markdown": r"$\G$"}, {"id": 3, "text": r"$\G$"}]
    assert [latex_of(post) for post in posts_of(records, macros=str(given))] == [[r"\Gamma"]] * 3
    with pytest.raises(DocumentError, match=r"none\.tex: the file of macros: it cannot be read"):
        read(tmp_path / "notes", {}, macros=str(tmp_path / "none.tex"))


def test_skipped_files_are_listed_once_with_the_reason(tmp_path) -> None:
    files = {"good.md": "good $x$", "empty.md": " \n", "only.tex": "% a comment", **{f"{i}.pdf": "" for i in range(12)}}
    write(tmp_path, {**files, "a.png": "", "b.docx": "", "code.py": ""})
    (tmp_path / "latin.txt").write_bytes("naïve façade $x$".encode("latin-1"))
    (tmp_path / "wide.txt").write_bytes("naïve $x$".encode("utf-16"))
    (tmp_path / "declared.TEX").write_bytes(r"\usepackage[koi8-r]{inputenc} Теорема".encode("koi8-r"))
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    with pytest.warns(MathAMRWarning) as caught:
        found = {post.docno: text_of(post.html) for post in accepted_posts(tmp_path)}
    assert found == {
        "declared.TEX": "Теорема", "good.md": "good $x$", "latin.txt": "naïve façade $x$", "wide.txt": "naïve $x$"
    }  # fmt: skip
    (message,) = (str(warning.message) for warning in caught)
    place = str(tmp_path)
    assert message == (
        f"3 of 7 posts were left out: {place}/binary.txt: it is not UTF-8 from byte 128 on, nor Latin-1; save it as "
        f"UTF-8. {place}/empty.md: the file is empty. {place}/only.tex: the file has neither a word nor a "
        "formula. Not read: 12 PDF files (0.pdf, 1.pdf, 10.pdf, …): "
        "PDF is not read, use the LaTeX source. 1 image (a.png): text in images is "
        "not read. 1 word processor file (b.docx): save it as HTML or Markdown. 1 other file (1 .py): "
        "they are not notes."
    )
    only = write(tmp_path / "only", {"a.pdf": ""})
    with pytest.raises(DocumentError, match=r"it holds no posts; 1 PDF file \(a\.pdf\): PDF is not read"):
        list(accepted_posts(only))
    with pytest.raises(DocumentError, match=r"a\.pdf: PDF is not read, use the LaTeX source"):
        list(accepted_posts(only / "a.pdf"))


def test_the_digest_of_a_file_changes_with_whatever_its_posts_depend_on(tmp_path) -> None:
    folder = write(tmp_path, {**BOOK, "macros.tex": r"\newcommand{\a}{1}", "other.md": "$x$", "sub/x.tex": "alone"})

    def digests(**options) -> dict[str, int]:
        return {entry.key: entry.digest for entry in source_entries(folder, ReadingOptions(**options))}

    before = digests()
    assert list(before) == ["ch1.tex", "macros.tex", "main.tex", "other.md", "parts/ch2.tex", "sub/x.tex"]
    assert digests() == before

    def changed(now: dict[str, int]) -> set[str]:
        return {key for key in before if now[key] != before[key]}

    os.utime(folder / "other.md", (1, 1))
    assert changed(digests()) == set()
    write(folder, {"other.md": "$y$"})
    assert changed(digests()) == {"other.md"}
    write(folder, {"other.md": "$x$", "parts/ch2.tex": "changed"})
    assert changed(digests()) == {"ch1.tex", "main.tex", "parts/ch2.tex"}
    write(folder, {"parts/ch2.tex": BOOK["parts/ch2.tex"], "macros.tex": r"\newcommand{\a}{2}"})
    assert changed(digests()) == set(before)
    write(folder, {"macros.tex": r"\newcommand{\a}{1}"})
    assert changed(digests()) == set()
    assert changed(digests(whole_files=True)) == changed(digests(bare_formulas=False)) == set(before)


# ---- each formula is in one unit

LATEX_BLOCKS = [
    "\\section{S %}\n", "\\subsection{S} x %\n", "\\begin{theorem}[N %] y\\end{theorem}\n",
    "\\begin{lemma}\\label{l@} % \\end{lemma}\n", "\\begin{proof} \\[%\\] \\end{proof}\n",
    "\\begin{proof}[Proof of \\ref{l1}] % \\end{proof}\n", "Text %.\n\n", "\\begin{theorem} %\n", "{\\small %\n\n",
    "}\n", "\\textbf{Theorem.} %\n\n", "\\paragraph{P} %\n", "\\% $no$\n", "\\end{proof}\n",
    "\\begin{proof} a \\begin{lemma} % \\end{lemma} b\n", "\\begin{align} % &= 1 \\end{align}\n", "x " * 800,
]  # fmt: skip
MARKDOWN_BLOCKS = [
    "# S %\n\n", "### S\n\nx %\n\n", "**Theorem (%).** y\n\n", "**Lemma 1.@.** % {#l@}\n\n", "*Proof.* %\n\n",
    "*Proof of Lemma 1.1.* % ∎\n\n", "Text %.\n\n", "> [!theorem] T\n> %\n> > [!proof]\n> > x\n\n",
    "::: theorem\n%\n", ":::\n\n", "```{prf:lemma} %\nx\n```\n\n", "```\n$no$\n```\n\n", "---\n\n", "$$\n%\n$$\n\n",
    "\\begin{theorem}[N]\n%\n\\end{theorem}\n\n", "\\begin{theorem} %\n\n", "> quoted %\n\n", "- item %\n",
    "Setext %\n===\n\n", "1.@ number %\n\n", "x " * 800 + "\n\n",
]  # fmt: skip


@pytest.mark.parametrize(("ending", "blocks"), [("tex", LATEX_BLOCKS), ("md", MARKDOWN_BLOCKS)])
@pytest.mark.parametrize("whole", [False, True])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_units_of_a_file_hold_each_of_its_formulas_once(tmp_path_factory, ending, blocks, whole, data) -> None:
    text, expected = "Begin.\n\n", []
    for block in data.draw(st.lists(st.sampled_from(blocks), max_size=25)):
        name, number = f"v_{{{len(text)}}}", str(len(text))
        if "%" in block.replace("\\%", ""):
            expected.append(name)
        has_delimiters = any(f"{delimiter}%" in block for delimiter in ("\\[", "$$\n", "{align} "))
        formula = name if has_delimiters else f"${name}$"
        text += re.sub(r"(?<!\\)%", lambda _: formula, block).replace("\\%", "%").replace("@", number)  # noqa: B023
    folder = write(tmp_path_factory.mktemp("units"), {f"a.{ending}": text})
    with gathered():
        found = [post for post in posts_of(folder, whole_files=whole) if isinstance(post, Document)]
    latex = [formula for post in found for formula in latex_of(post_from_html(post.html, post.title))]
    assert sorted(name for formula in latex for name in expected if name in formula) == sorted(expected)
    assert len(latex) == len(expected)


# ---- whatever the file holds


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tex", r"\begin{theorem}" * 20_000),
        ("a.tex", r"\begin{theorem}" * 10_000 + r"\end{theorem}" * 10_000),
        ("a.tex", r"\begin{theorem}x\begin{proof}" * 5_000),
        ("a.tex", "\n\\noindent " * 20_000),
        ("a.tex", r"\section{" * 20_000),
        ("a.tex", "word " * 100_000),
        ("a.tex", r"\newtheorem{a}{A}[a]" * 10_000),
        ("a.md", "> [!theorem] a\n" * 10_000),
        ("a.md", "::: theorem\n" * 20_000),
        ("a.md", "**" * 100_000),
        ("a.md", "1.1 x\n\n" * 10_000),
        ("a.rst", "a\n====\n\n" * 8_000),
        ("a.rst", "   .. note:: a\n" * 8_000),
        ("a.org", "#+begin_theorem\n" * 15_000),
        ("a.ipynb", "[" * 100_000),
    ],
)
def test_hostile_files_are_split_in_linear_time(tmp_path, name, text) -> None:
    folder = write(tmp_path, {name: text})
    start = time.process_time()
    with gathered():
        for entry in source_entries(folder):
            next(entry.documents(), None)
    assert time.process_time() - start < 10


ANYTHING = [
    *"\\{}[]()$#*_>:`~^=-. \n", "\\begin", "{theorem}", "\\end", "\\section", "**Proof.**", "1.1", "x", "\\input{a}",
    "::: theorem\n", "> [!proof] ", ".. math::\n   ", "* ", "#+begin_", "\\label{a}",
]  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["tex", "md", "rst", "org", "ipynb"]), st.lists(st.sampled_from(ANYTHING), max_size=60))
def test_any_file_is_read(tmp_path_factory, ending, pieces) -> None:
    folder = write(tmp_path_factory.mktemp("any"), {f"a.{ending}": "x " + "".join(pieces)})
    with gathered():
        found = posts_of(folder)
    assert all(isinstance(post, Document) for post in found) or ending == "ipynb", found
