"""Studies of In+Out: models that are trained on formulas alone, compared in one table on Task 2.

::

    definition ─▶ formula_study_run ─▶ measuring      train, index, search, measure; finished runs are not repeated
                          └──────────▶ summary        means over seeds, tests over the topics of all years
"""

from __future__ import annotations

from .definition import FORMULA_STUDIES as FORMULA_STUDIES
from .definition import FormulaStudy as FormulaStudy
from .formula_study_run import run_formula_study as run_formula_study
