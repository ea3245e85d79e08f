"""The study of patterns: its alterations, and its figures for the search."""

from pathlib import Path

import pytest

import pyterrier_mathamr
from pyterrier_mathamr.formula import opt_from_latex
from studies.formulas.patterns import (
    ALTERED,
    SIZE,
    TIMES,
    distinct_symbols,
    lines_of,
    make_queries,
    renamed,
    run_patterns,
    with_wildcard,
)

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


@pytest.mark.parametrize("latex", ["x^2+y=0", r"\sum_{i=1}^{n} i = \lambda n", r"\operatorname{lcm}(a,b)+e^{a}"])
def test_every_letter_has_another_name_one_to_one(latex: str) -> None:
    made = renamed(latex)
    assert made is not None
    before, after = opt_from_latex(latex), opt_from_latex(made)
    names = dict(zip(before.nodes, after.nodes, strict=True))
    assert before.edges == after.edges
    assert len(set(names.values())) == len(names)
    changed = {old for old, new in names.items() if old != new}
    assert changed == {label for label in before.nodes if label[:2] == "V!" and label not in ("V!𝑒", "V!lcm")}


def test_what_has_no_letters_or_sub_trees_is_not_altered() -> None:
    assert renamed("1+2=3") is renamed(r"\foo{x}") is None

    assert with_wildcard("x") is None

    latex = r"\begin{align}a&=b\label{one}\\&=c\\d^2&<e\nonumber\end{align}"
    assert lines_of(latex) == ["a =b", "d^2 <e"]
    assert lines_of("a=b") == []

    formulas = [("1", "xx"), ("2", "x^2+y"), ("3", "a+b=c")]
    assert distinct_symbols("xx") == 1
    found = make_queries(formulas, "renamed", 5, lines=False, holds=lambda latex: "=" in latex)
    assert [query.docno for query in found] == ["2"]
    assert len(make_queries(formulas, "renamed", 1, lines=False, holds=lambda _: False)) == 1


@pytest.mark.parametrize("latex", ["x^2+y=0", r"\frac{a+b}{2}", r"\begin{align}a&=b\\c&=d\end{align}"])
def test_one_sub_tree_is_a_wildcard(latex: str) -> None:
    made = with_wildcard(latex)
    assert made is not None
    assert made.count("?w") == 1
    left = opt_from_latex(made.replace("?w", r"\qvar{w}"), lines="all")
    assert left.nodes.count("?w") == 1
    assert len(left.nodes) <= len(opt_from_latex(latex, lines="all").nodes)


def test_altered_formulas_of_the_sample_are_found(tmp_path: Path) -> None:
    report = run_patterns(SAMPLE, tmp_path / "work", count=20, verbose=False)
    table = report.tables[ALTERED].set_index(["of", "query"])
    assert table.loc[("formulas", "renamed"), "first, ties shared"] == 1.0
    assert table.loc[("formulas", "wildcard"), "first ten, ties shared"] == 1.0
    assert (table["first"] <= table["first, ties shared"]).all()
    assert report.tables[TIMES]["median"].iloc[0] > 0
    assert report.tables[SIZE]["bytes a formula"].iloc[0] > 10
    assert (tmp_path / "work" / "patterns" / "report.md").exists()
