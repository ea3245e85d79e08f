"""LaTeX → Presentation MathML → trees."""

from __future__ import annotations

import functools

import math_core

from . import mathml
from .errors import FormulaError
from .latex_atoms import Atom
from .latex_mathml import RULES, _row
from .opt import tree_of as opt_tree_of
from .latex_source import prepare
from .slt import tree_of as slt_tree_of
from .tree import FormulaPair, FormulaTree


@functools.cache
def _converter() -> math_core.LatexToMathML:
    return math_core.LatexToMathML(ignore_unknown_commands=True, fancy_error=False, allow_unreliable_rendering=True)


def _mathml(latex: str) -> str:
    try:
        return _converter().convert_with_local_state(latex, displaystyle=True).replace("&ApplyFunction;", "\u2061")
    except math_core.LatexError as error:
        raise FormulaError(str(error), latex) from error


def _read(latex: str) -> tuple[Atom, bool]:
    root = mathml.parse(_mathml(prepare(latex)))
    atom, known = mathml.fold(root, RULES, _row)
    if atom is None:
        raise FormulaError("the formula is empty", latex)
    return atom, known


def slt_from_latex(latex: str) -> FormulaTree:
    """Convert LaTeX to a symbol layout tree."""
    atom, known = _read(latex)
    return slt_tree_of(atom.symbol, latex, partial=not known)


def opt_from_latex(latex: str) -> FormulaTree:
    """Convert LaTeX to an operator tree."""
    atom, known = _read(latex)
    return opt_tree_of(atom.node, latex, partial=not known)


def trees_from_latex(latex: str) -> FormulaPair:
    """Convert LaTeX to both trees; ``None`` where there is none. Never raises."""
    trees: list[FormulaTree | None] = []
    for convert in (slt_from_latex, opt_from_latex):
        try:
            trees.append(convert(latex))
        except FormulaError:
            trees.append(None)
    return FormulaPair(*trees)
