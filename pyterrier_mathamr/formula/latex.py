r"""LaTeX → both trees.

``math-core`` (in Rust, 200,000 formulas a second) writes Presentation MathML; :mod:`.tex` reads it as symbols, matches
fences, and builds the operator tree with an operator-precedence grammar.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from lxml import etree

from pyterrier_mathamr._common.feedback import report_problem

from . import mathml
from .opt import Applications, Chains, Lines, check_options, share_operands
from .opt import tree_of as opt_tree
from .slt import tree_of as slt_tree
from .tex.atoms import Atom
from .tex.converter import expanded, presentation
from .tex.elements import LineRules, row, rules
from .tex.grammar import ANGLES
from .tree import FormulaError, FormulaPair, FormulaTree


def slt_from_latex(latex: str, *, macros: str = "", lines: Lines = "reference") -> FormulaTree:
    r"""Convert LaTeX to a symbol layout tree, as LaTeXML and Tangent-S would.

    Args:
        latex: one formula, without dollars.
        macros: commands of the same post (``\newcommand``, ``\def``), see :func:`definitions`.
        lines: of a derivation in lines (``align``, ``split``, ``gather``, …) ``"reference"`` reads the first cell;
            ``"all"`` reads all lines and cells as a table: ``M!3x2``.

    Returns:
        The tree; ``partial`` when the formula had to be repaired or an unknown command was left out.

    Raises:
        FormulaError: no converter accepts the formula; it points to the position.
        ConfigError: an option has no such value.
    """
    check_options(lines=lines)
    root, repaired, _ = _read(latex, macros)
    atom, partial = _atom(root, rules(False, "first" if lines == "reference" else "layout"), latex, repaired)
    return slt_tree(atom.symbol, latex, partial=partial)


def opt_from_latex(
    latex: str,
    *,
    macros: str = "",
    chains: Chains = "reference",
    applications: Applications = "reference",
    lines: Lines = "reference",
) -> FormulaTree:
    """Convert LaTeX to an operator tree, as LaTeXML and Tangent-S would.

    Args:
        latex: one formula, without dollars.
        macros: commands of the same post, see :func:`definitions`.
        chains: with ``"shared"`` the middle operand of ``a<b<c`` belongs to both relations; see
            :func:`opt_from_mathml`.
        applications: with ``"function"`` ``f(x)`` is the function ``F!𝑓`` of ``x``, for the letters of
            :data:`~.opt.FUNCTION_LETTERS` directly before parentheses; a product otherwise.
        lines: ``"all"`` reads a derivation in lines as the sequence of its statements, ``O!form-seq``; a line that
            begins with a relation continues the one before. Otherwise only its first cell is read.

    Returns:
        The tree; ``partial`` as in :func:`slt_from_latex`.

    Raises:
        FormulaError, ConfigError: as in :func:`slt_from_latex`.
    """
    check_options(chains=chains, applications=applications, lines=lines)
    root, repaired, _ = _read(latex, macros)
    kind: LineRules = "first" if lines == "reference" else "operators"
    atom, partial = _atom(root, rules(applications == "function", kind), latex, repaired)
    return _operator_tree(atom, latex, chains, lines, partial)


def trees_from_latex(
    latex: str,
    *,
    macros: str = "",
    chains: Chains = "reference",
    applications: Applications = "reference",
    lines: Lines = "reference",
) -> FormulaPair:
    """Convert LaTeX to both trees, reading it once.

    Args:
        latex: one formula, without dollars.
        macros: commands of the same post, see :func:`definitions`.
        chains: with ``"shared"`` the middle operand of ``a<b<c`` belongs to both relations.
        applications: with ``"function"`` ``f(x)`` is a function of ``x``; a product otherwise; see
            :func:`opt_from_latex`.
        lines: with ``"all"`` all lines of a derivation (``align``, ``split``, …) are read; otherwise only the first
            cell.

    Returns:
        Both trees, or ``None`` twice where no converter accepts the formula.

    Raises:
        ConfigError: an option has no such value.
    """
    check_options(chains=chains, applications=applications, lines=lines)
    functions = applications == "function"
    try:
        root, repaired, has_tables = _read(latex, macros)
        if lines == "reference" or not has_tables:  # which are all that the two tables of rules read in their own ways
            atom, partial = _atom(root, rules(functions, "first"), latex, repaired)
            layout = atom
        else:
            layout, _ = _atom(root, rules(functions, "layout"), latex, repaired)
            atom, partial = _atom(root, rules(functions, "operators"), latex, repaired)
    except FormulaError:
        return FormulaPair(None, None)
    return FormulaPair(
        slt_tree(layout.symbol, latex, partial=partial), _operator_tree(atom, latex, chains, lines, partial)
    )


@lru_cache(maxsize=8192)
def trees_of_posts(latex: str, macros: str) -> FormulaPair:
    """Convert LaTeX to both trees as graphs and indexes of posts have them, and remember them.

    Half of a collection's formulas are repetitions, and the graph of a post and the indexes of its formulas
    need the same trees.

    Args:
        latex: one formula, without dollars; all of its lines are read.
        macros: commands of the same post, see :func:`definitions`.

    Returns:
        Both trees, or ``None`` twice where no converter accepts the formula.
    """
    return trees_from_latex(latex, macros=macros, lines="all")


def report_unknown_commands(post: str, latex: str, trees: FormulaPair) -> None:
    """Warn about the commands of a formula that its trees leave out.

    Args:
        post: the docno or qid.
        latex: the formula.
        trees: of the formula, from its LaTeX.
    """
    for command in trees.opt.unknown_commands() if trees.opt is not None else ():
        report_problem(post, f"the command {command} is unknown", latex)


def _operator_tree(atom: Atom, latex: str, chains: Chains, lines: Lines, partial: bool) -> FormulaTree:
    r"""Freeze the operator tree of a formula; ``\langle x,y\rangle`` is a list as for LaTeXML, or an inner product."""
    waiting = [atom.node]
    while waiting:
        node = waiting.pop()
        waiting += node.kids
        if node.label.startswith(ANGLES):
            node.label = f"M!L-{node.label[len(ANGLES) :]}" if lines == "reference" else "M!D-⟩"
    if chains == "shared":
        share_operands(atom.node)
    return opt_tree(atom.node, latex, partial=partial)


def _read(latex: str, macros: str) -> tuple[etree._Element, bool, bool]:
    """Read a formula as Presentation MathML; return whether part of it is a guess, and whether it may have tables."""
    source, repaired = presentation(expanded(latex, macros), latex)
    return mathml.parse(source), repaired or "merror" in source, "mtable" in source or "mtd" in source


def _atom(
    root: etree._Element, by_tag: Mapping[str, mathml.Rule[Atom]], latex: str, repaired: bool
) -> tuple[Atom, bool]:
    """Make one atom of a formula's MathML; return it and whether part of it is a guess."""
    atom, known = mathml.fold(root, by_tag, row)
    if atom is None:
        raise FormulaError("the formula is empty", latex)
    return atom, repaired or not known
