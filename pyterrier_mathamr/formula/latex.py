"""LaTeX → Presentation MathML → trees."""

from __future__ import annotations

import functools

import math_core

from .errors import FormulaError
from .opt import Node
from .opt import tree_of as opt_tree_of
from .slt import slt_from_mathml
from .tree import FormulaPair, FormulaTree


@functools.cache
def _converter() -> math_core.LatexToMathML:
    return math_core.LatexToMathML(ignore_unknown_commands=True, fancy_error=False)


def _mathml(latex: str) -> str:
    try:
        return _converter().convert_with_local_state(latex, displaystyle=True)
    except math_core.LatexError as error:
        raise FormulaError(str(error), latex) from error


def slt_from_latex(latex: str) -> FormulaTree:
    """Convert LaTeX to a symbol layout tree (first version)."""
    return slt_from_mathml(_mathml(latex).replace("\u2212", "-"))


def opt_from_latex(latex: str) -> FormulaTree:
    """Convert LaTeX to an operator tree (first version: the symbols in a row)."""
    slt = slt_from_latex(latex)
    leaves = [Node(label if label[1:2] == "!" else "-!" + label) for label in slt.nodes]
    return opt_tree_of(leaves[0] if len(leaves) == 1 else Node("E!", [Node("O!fragments"), *leaves]), latex, partial=True)


def trees_from_latex(latex: str) -> FormulaPair:
    """Convert LaTeX to both trees; ``None`` where there is none. Never raises."""
    trees: list[FormulaTree | None] = []
    for convert in (slt_from_latex, opt_from_latex):
        try:
            trees.append(convert(latex))
        except FormulaError:
            trees.append(None)
    return FormulaPair(*trees)
