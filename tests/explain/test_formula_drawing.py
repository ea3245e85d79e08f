"""The drawing of a formula."""

import pytest

from pyterrier_mathamr.explain import draw_formula
from pyterrier_mathamr.formula import FormulaError


@pytest.mark.parametrize("latex", [r"\sqrt", "", "  "])
def test_a_formula_without_trees_is_an_error_and_not_an_empty_picture(latex: str) -> None:
    with pytest.raises(FormulaError):
        draw_formula(latex)
    assert "operator tree" in draw_formula("x^2").svg
