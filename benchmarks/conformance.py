"""How many trees equal the reference converter's, and why the others differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyterrier_mathamr.formula import (
    FormulaError,
    FormulaTree,
    opt_from_latex,
    opt_from_mathml,
    slt_from_latex,
    slt_from_mathml,
)

Row = dict[str, Any]

_KINDS = (
    ("SLT from MathML", "slt", "pmml", slt_from_mathml),
    ("OPT from MathML", "opt", "cmml", opt_from_mathml),
    ("SLT from LaTeX", "slt", "latex", slt_from_latex),
    ("OPT from LaTeX", "opt", "latex", opt_from_latex),
)
_CAUSES: tuple[tuple[str, Callable[[Row, str], object]], ...] = (
    ("&lt; &gt; &amp; in the LaTeX: letters there, signs here", lambda row, _: has(row, r"&(lt|gt|amp);")),
    ("wrongly decoded characters", lambda row, _: "mojibake" in row["flags"]),
    (
        "typeset without the AMS packages: E! for a macro that we know",
        lambda row, _: row["year"] == 2020 and "merror" in row["pmml"],
    ),
    ("macro without a meaning in the reference", lambda row, _: "undefined-macro" in row["flags"]),
    ("equation inside a formula: an error message as text", lambda row, _: has(row, r"\\begin *\{equation")),
    ("Unicode signs and spaces: letters in the reference", lambda row, _: has(row, r"[^\x00-\x7f]")),
    ("final ? as query variable", lambda row, _: "qvar" in row["pmml"]),
    ("formula inside a text", lambda row, _: has(row, r"\\(text|mbox)\w*\s*\{[^{}]*\$")),
    ("row that the reference's grammar rejects", lambda row, kind: "O!fragments" in row[kind]["nodes"]),
    ("four and more bars: which open, which close", lambda row, _: row["latex"].count("|") >= 4),
    ("double prime or quotation mark", lambda row, _: has(row, "''|\"")),
    ("chain of relations", lambda row, _: "chain-operand-missing" in row["flags"]),
    ("sequence of statements", lambda row, _: "formula-sequence" in row["flags"]),
    ("differential", lambda row, _: has(row, r"\\int")),
)
"""Causes of a different tree; the first that applies is counted. Tests get the row and the kind of tree."""


def has(row: Row, pattern: str) -> bool:
    """Whether the formula's LaTeX matches a pattern."""
    return re.search(pattern, row["latex"]) is not None


def equal(convert: Callable[[str], FormulaTree], source: str, expected: Row) -> bool:
    """Whether a formula's tree is the expected one, node by node and edge by edge."""
    try:
        tree = convert(source)
    except FormulaError:
        return False
    return (list(tree.nodes), [list(edge) for edge in tree.edges]) == (expected["nodes"], expected["edges"])


def groups(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each year: all, rows without a flag, and rows with each flag (a row may have several)."""
    for year in sorted({row["year"] for row in rows}):
        of_year = [row for row in rows if row["year"] == year]
        yield f"{year} all", of_year
        yield f"{year} no flag", [row for row in of_year if not row["flags"]]
        for flag in sorted({flag for row in of_year for flag in row["flags"]}):
            yield f"{year} {flag}", [row for row in of_year if flag in row["flags"]]


def conformance(rows: Sequence[Row]) -> None:
    """Print the rates of equal trees by year and flag, and the ten most frequent causes of differences."""
    same = {
        (id(row), name): equal(convert, row[source], row[kind])
        for name, kind, source, convert in _KINDS
        for row in rows
        if "error" not in row[kind]
    }
    print(f"{'equal trees':28s}" + "".join(f"{name:>23s}" for name, *_ in _KINDS))
    for group, members in groups(rows):
        cells = []
        for name, *_ in _KINDS:
            found = [same[id(row), name] for row in members if (id(row), name) in same]
            rate = f"{sum(found) / len(found):.1%}" if found else "-"
            cells.append(f"{sum(found):6,d} /{len(found):5,d} {rate:>7s}")
        print(f"{group:28s}" + "".join(f"{cell:>23s}" for cell in cells))
    causes: Counter[tuple[str, str]] = Counter()
    for name, kind, *_ in _KINDS:
        for row in rows:
            if not same.get((id(row), name), True):
                causes[name, next((cause for cause, applies in _CAUSES if applies(row, kind)), "other")] += 1
    for name in sorted({name for name, _ in causes}, reverse=True):
        counts = Counter({cause: count for (of, cause), count in causes.items() if of == name})
        print(f"\n{name}: {counts.total()} other trees, by cause")
        for cause, count in counts.most_common(10):
            print(f"{count:6,d}  {cause}")
        if rest := counts.total() - sum(count for _, count in counts.most_common(10)):
            print(f"{rest:6,d}  less frequent causes")
