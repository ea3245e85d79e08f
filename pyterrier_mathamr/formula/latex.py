r"""LaTeX → both trees.

``math-core`` (in Rust, 200,000 formulas a second) writes Presentation MathML; :mod:`.tex` reads it as symbols, matches
fences, and an operator-precedence grammar makes the operator tree. What cannot be read as it stands is repaired, or
given to ``latex2mathml`` where that is installed; the tree is then ``partial``.
"""

from __future__ import annotations

import math_core

from pyterrier_mathamr._common.errors import MissingExtraError
from pyterrier_mathamr._common.extras import require

from . import mathml
from .errors import FormulaError
from .opt_node import Chains, share_operands
from .opt_node import tree_of as opt_tree
from .slt_symbol import tree_of as slt_tree
from .tex.atoms import Atom
from .tex.elements import RULES, unknown
from .tex.native import to_mathml
from .tex.repair import repaired
from .tex.source import prepare
from .tree import FormulaPair, FormulaTree


def slt_from_latex(latex: str, *, macros: str = "") -> FormulaTree:
    r"""Convert LaTeX to a symbol layout tree, as LaTeXML and Tangent-S would.

    Args:
        latex: one formula, without dollars.
        macros: commands of the same post (``\newcommand``, ``\def``), see :func:`definitions`.

    Returns:
        The tree; ``partial`` when the formula had to be repaired or an unknown command was left out.

    Raises:
        FormulaError: no converter takes the formula; with the place.
    """
    atom, partial = _read(latex, macros)
    return slt_tree(atom.symbol, latex, partial=partial)


def opt_from_latex(latex: str, *, macros: str = "", chains: Chains = "reference") -> FormulaTree:
    """Convert LaTeX to an operator tree, as LaTeXML and Tangent-S would.

    Args:
        latex: one formula, without dollars.
        macros: commands of the same post, see :func:`definitions`.
        chains: ``"shared"`` gives the middle operand of ``a<b<c`` to both relations; see :func:`opt_from_mathml`.

    Returns:
        The tree; ``partial`` when the formula had to be repaired or an unknown command was left out.

    Raises:
        FormulaError: no converter takes the formula; with the place.
    """
    atom, partial = _read(latex, macros)
    if chains == "shared":
        share_operands(atom.node)
    return opt_tree(atom.node, latex, partial=partial)


def trees_from_latex(latex: str, *, macros: str = "") -> FormulaPair:
    """Convert LaTeX to both trees, reading it once. Never raises.

    Args:
        latex: one formula, without dollars.
        macros: commands of the same post, see :func:`definitions`.

    Returns:
        Both trees, or ``None`` twice where no converter takes the formula.
    """
    try:
        atom, partial = _read(latex, macros)
    except FormulaError:
        return FormulaPair(None, None)
    return FormulaPair(slt_tree(atom.symbol, latex, partial=partial), opt_tree(atom.node, latex, partial=partial))


def _read(latex: str, macros: str) -> tuple[Atom, bool]:
    """Read a formula; tell whether part of it is a guess."""
    source, mended = _presentation(macros + latex if macros else latex, latex)
    atom, known = mathml.fold(mathml.parse(source), RULES, unknown)
    if atom is None:
        raise FormulaError("the formula is empty", latex)
    return atom, mended or not known or "merror" in source


def _presentation(text: str, latex: str) -> tuple[str, bool]:
    """Convert LaTeX to Presentation MathML; tell whether it had to be mended."""
    if not text.strip():
        raise FormulaError("the formula is empty", latex)
    text = prepare(mathml.NOT_XML.sub(" ", text))
    try:
        return to_mathml(text), False
    except math_core.LatexError as error:
        first = error
    try:
        return to_mathml(repaired(text)), True
    except math_core.LatexError:
        pass
    source = _fallback(text)
    if source is None:
        place, _, message = str(first).partition(": ")
        raise FormulaError(message or str(first), latex, int(place) if place.isdecimal() else 0) from first
    return source, True


def _fallback(text: str) -> str | None:
    """Convert by ``latex2mathml``; ``None`` when it is not installed or does not take the formula either."""
    try:
        converter = require("latex2mathml.converter", "latex")
        source: str = converter.convert(text)
    except MissingExtraError:
        return None
    except Exception:  # it has no base class of errors, and lets those of its parsing out
        return None
    return source
