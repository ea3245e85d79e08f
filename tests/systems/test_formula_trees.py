"""Trees come back as they were read, once for each expression."""

from pathlib import Path

import numpy as np
import pytest

from mathamr_systems import FormulaTrees
from mathamr_systems.formula_trees import TreePairs
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.store import DamagedError, UnknownIdError

LATEX = ["x^2+1", "x^2", r"\frac{a}{b}", "x^2+1", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "y"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]


def test_trees_are_kept_once_for_each_expression(tmp_path: Path) -> None:
    trees = FormulaTrees(tmp_path / "f").index(POSTS)
    assert [trees.get(f"p{i}#0") for i in range(len(LATEX))] == list(map(trees_from_latex, LATEX))
    assert (len(trees), len(trees.snapshot().expressions.payload)) == (6, 5)
    with pytest.raises(UnknownIdError, match="elsewhere"):
        trees.get("elsewhere")


def test_damage_is_reported_and_an_empty_collection_warns(tmp_path: Path) -> None:
    part = FormulaTrees(tmp_path / "f").index(POSTS).snapshot().parts[0]
    whole = TreePairs.of_part(part)
    arrays = {**whole.arrays(), "slt_parents": np.zeros_like(whole.slt.parents)}
    changed = type("Changed", (), {"path": part.path, "__getitem__": lambda self, name: arrays[name]})()
    with pytest.raises(DamagedError, match="slt_parents"):
        TreePairs.of_part(changed)
    with pytest.warns(MathAMRWarning, match="none of 1 posts has a formula"):
        FormulaTrees(tmp_path / "g").index([{"docno": "1", "text": "nothing"}])
