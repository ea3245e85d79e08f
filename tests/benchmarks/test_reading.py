"""The benchmark of reading: its own count of the formulas in a source, and what is lost against it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pyterrier_mathamr._common.feedback import gathered

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, not a part of the package

import reading

LATEX = r"""\newcommand{\x}{$a$}
$ b $ % $c$
\verb|$d$| \[e\text{ if $f$}\] \(g\)\$"""
DOCUMENT = "$a$\\begin{document}\\begin{gather}b\\end{gather}\\iffalse $c$\\fi\n$d\n\n$\\end{document}$e$"
FENCED = "```{note}\nIn $a$.\n```\nand $b$\n```python\n$c$\n```\n```{math}\n:label: one\nd\n```\n`$e$` {math}`f`"
AMOUNTS = "---\ntitle: $a$\n---\nFrom $1 to $2, or $ 3 $; $$4$$ %% $b$ %%"
RST = ":math:`a` ``:math:`b```\n\n.. math:: c\n   :label: d\n\n   e\n\nAs::\n\n  :math:`f`\n\ng"
ORG = "$a$ =$b$=\n# $c$\n#+BEGIN_SRC latex\n$d$\n#+END_SRC\n\\(e\\)"
NOTEBOOK = '{"cells": [{"cell_type": "code", "source": "$a$"}, {"cell_type": "markdown", "source": ["$b", "$"]}]}'


@pytest.mark.parametrize(
    ("form", "source", "formulas"),
    [
        ("latex", LATEX, ["b", r"e\text{ if $f$}", "g"]),
        ("latex", DOCUMENT, [r"\begin{gather}b\end{gather}"]),
        ("markdown", FENCED, ["a", "b", "d", "f"]),
        ("markdown", AMOUNTS, ["4"]),
        ("rst", RST, ["a", "c", "e"]),
        ("org", ORG, ["a", "e"]),
        ("html", "<code>$a$</code><math><mi>b</mi></math> $c$", ["<math><mi>b</mi></math>", "c"]),
        ("notebook", NOTEBOOK, ["b"]),
        ("text", r"$a$ and \[b\]", ["a", "b"]),
    ],
)
def test_formulas_between_delimiters_are_counted_by_a_scan_of_the_source(form, source, formulas) -> None:
    found = reading.delimited(form, source)
    assert sorted(each.strip() for each in found) == sorted(formulas)


def test_what_the_scan_finds_and_the_reader_does_not_is_lost_unless_it_is_in_another_file(
    tmp_path, monkeypatch
) -> None:
    (tmp_path / "a.md").write_text("In $x$ and $\\nosuch$.")
    (tmp_path / "b.txt").write_text("In $y$.")
    scans = {"markdown": ["x", "y ", "z", "\\nosuch", "w"], "text": []}
    monkeypatch.setattr(reading, "delimited", lambda form, source: iter(scans[form]))
    with gathered() as problems:
        files = reading.readings(tmp_path, problems)
    assert [(file.name, file.counts["lost"]) for file in files] == [("a.md", 2), ("b.txt", 0)]  # z and w
    rows = {line[:18].strip(): line[18:].split() for line in reading.table(files).splitlines()}
    assert {name: rows[name] for name in ("", "files", "file", "formulas", "unknown commands", "partial", "lost")} == {
        "": ["markdown", "text", "all"], "files": ["1", "1", "2"], "file": ["1", "1", "2"], "formulas": ["2", "1", "3"],
        "unknown commands": ["1", "0", "1"], "partial": ["1", "0", "1"], "lost": ["2", "0", "2"],
    }  # fmt: skip
