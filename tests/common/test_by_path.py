"""Objects that are a folder are equal where they name the same place."""

import pickle
from pathlib import Path

import pytest

import pyterrier_mathamr as mathamr
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.formula import FormulaStore

KINDS = [
    mathamr.MathAMRIndex,
    mathamr.MathAMRFormulaIndex,
    mathamr.GraphStore,
    mathamr.BM25Index,
    mathamr.TangentIndex,
    FormulaStore,
    ARQMathCollection,
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_place_is_equal_by_a_relative_or_an_absolute_path(kind, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    here = kind(tmp_path / "a")
    assert here == kind("a")
    assert hash(here) == hash(kind("a"))
    assert here != kind(tmp_path)
    assert pickle.loads(pickle.dumps(here)) == here
    assert repr(kind("a")) == f"{kind.__name__}('a')"


@pytest.mark.parametrize("kind", KINDS)
def test_another_kind_in_the_same_place_is_another(kind, tmp_path: Path):
    assert [other for other in KINDS if kind(tmp_path) == other(tmp_path)] == [kind]
