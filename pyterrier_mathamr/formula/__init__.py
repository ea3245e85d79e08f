"""Formula trees: MathML or LaTeX to symbol layout trees and operator trees, and the store of official trees.

::

    Presentation MathML ──mathml, slt/──▶ SLT ┐                      store/    FormulaStore: official trees by id,
    Content MathML      ──mathml, opt/──▶ OPT ├─▶ tree: FormulaTree            from the official tables
    LaTeX ──latex, tex/──▶ both trees         ┘                      display/  formulas and trees for people

    packed_trees: many trees in a few arrays      options: corrections of the reference's form
"""

from __future__ import annotations

from .errors import FormulaError, FormulaTableError
from .latex import opt_from_latex, slt_from_latex, tell_unknown_commands, trees_from_latex, trees_of_posts
from .opt.from_mathml import opt_from_mathml
from .opt.names import RELATIONS
from .slt.from_mathml import slt_from_mathml
from .store.formula_store import FormulaStore
from .store.tables import FormulaRow, read_formula_table
from .tex.converter import one_text
from .tex.source import definitions
from .tree import FormulaPair, FormulaTree, unified_label

__all__ = [
    "RELATIONS",
    "FormulaError",
    "FormulaPair",
    "FormulaRow",
    "FormulaStore",
    "FormulaTableError",
    "FormulaTree",
    "definitions",
    "one_text",
    "opt_from_latex",
    "opt_from_mathml",
    "read_formula_table",
    "slt_from_latex",
    "slt_from_mathml",
    "tell_unknown_commands",
    "trees_from_latex",
    "trees_of_posts",
    "unified_label",
]
