"""Formulas are altered in one place, the same ones everywhere, and a system that finds them again has a rank of 1."""

from pathlib import Path

import pandas as pd
import pytest

import pyterrier_mathamr
from mathamr_systems.experiments.measuring import TimedPipeline
from mathamr_systems.experiments.workdir import Artifacts, distinct
from pyterrier_mathamr.formula import trees_from_latex
from studies.formulas.known_items import (
    RANDOM_FORMULAS,
    alterations,
    compare_known_formulas,
    draw_known_formulas,
    known_formulas,
    search_known_formulas,
)

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
SUM = r"\frac{a+b}{c_n}+\sum_{i=1}^n i^2"


def test_a_variable_is_renamed_throughout_and_in_commands_nothing() -> None:
    renamed = [made for made in alterations(SUM) if made.how == "renamed"]
    source = trees_from_latex(SUM).slt.nodes
    assert len(renamed) == 5  # a b c n i
    for made in renamed:
        changed = {(old, new) for old, new in zip(source, made.trees.slt.nodes, strict=True) if old != new}
        [(old, new)] = changed
        assert old not in made.trees.slt.nodes
        assert new not in source
        assert r"\frac" in made.latex
        assert r"\sum" in made.latex


def test_a_cut_removes_one_run_of_symbols() -> None:
    cut = {made.latex.replace(" ", "") for made in alterations("x^{2n}+y+z") if made.how == "cut"}
    assert cut == {"x+y+z", "x^{2n}+z", "x^{2n}+y"}
    source = trees_from_latex(SUM).slt.nodes
    for made in alterations(SUM):
        if made.how == "cut":
            left = made.trees.slt.nodes
            gone = len(source) - len(left)
            assert any(source[:start] + source[start + gone :] == left for start in range(len(left) + 1))
            assert 2 * len(left) >= len(source)


@pytest.mark.parametrize("latex", ["x+1", "", r"\frac{a", r"\unknown{a}+b+c+d"])
def test_small_or_partial_formulas_are_not_altered(latex: str) -> None:
    assert list(alterations(latex)) == []


def test_the_same_formulas_are_altered_alike_and_never_into_one_of_the_collection() -> None:
    formulas = [("1", "x^2+y^2=z"), ("2", "x"), ("3", "a_1+a_2+a_3"), ("4", SUM)]
    first = known_formulas(formulas, lambda trees: False)
    assert first["docno"].tolist() == ["1", "3", "4"]
    pd.testing.assert_frame_equal(known_formulas(iter(formulas), lambda trees: False, 2), first.head(2))
    taken = {trees_from_latex(latex, lines="all") for latex in first["latex"]}
    others = known_formulas(formulas, lambda trees: trees in taken)
    assert others["docno"].tolist() == ["1", "3", "4"]
    assert not set(others["latex"]) & set(first["latex"])


def test_systems_are_measured_by_the_rank_of_the_source(tmp_path: Path) -> None:
    shared = Artifacts(SAMPLE, tmp_path)
    queries = draw_known_formulas(shared, 20)
    assert len(queries) == 20
    assert set(queries["how"]) == {"renamed", "cut"}
    pd.testing.assert_frame_equal(queries, draw_known_formulas(shared, 20))
    retriever = shared.tangent.retriever(100)
    found = search_known_formulas({"Tangent": TimedPipeline(distinct(retriever))}, queries)
    compared = compare_known_formulas(found, queries, len(shared.visual_ids))
    assert {how: one.topics for how, one in compared.items()} == {
        "all": 20,
        **queries["how"].value_counts().to_dict(),
    }
    table = compared["all"].table.set_index("name")
    assert table["RR@10"]["Tangent"] > 0.8
    assert table["RR@10"][RANDOM_FORMULAS] < 0.05
