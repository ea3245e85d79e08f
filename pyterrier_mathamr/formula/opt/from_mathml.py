"""Content MathML → operator tree.

An ``apply`` is its operator with the operands below it; an operator that is itself a tree stands as operand 0 of a
new ``+!`` node::

    <apply><plus/><ci>𝑥</ci><cn>1</cn></apply>         U!plus ──0── V!𝑥
                                                       └──────0── N!1

Each element has one rule, a small function whose docstring says what becomes of it.
"""

from __future__ import annotations

from lxml import etree

from pyterrier_mathamr.formula import mathml
from pyterrier_mathamr.formula.errors import FormulaError
from pyterrier_mathamr.formula.mathml import clean
from pyterrier_mathamr.formula.options import Applications, Chains, check
from pyterrier_mathamr.formula.tree import FormulaTree

from .applications import apply_functions
from .names import CONSTANTS, FUNCTIONS, ORDERED, SYMBOLS, UNORDERED
from .nodes import (
    DEGREE,
    SHARED,
    Node,
    Nodes,
    applied,
    fragments,
    matrix,
    present,
    share_operands,
    tree_of,
)

_CLOSURES = {"open": "O-O", "closed": "C-C", "open-closed": "O-C", "closed-open": "C-O"}


def _identifier(element: etree._Element, _: Nodes) -> Node:
    """``ci``: ``V!`` and its own text; text of an element inside it is lost."""
    content = clean(element.text)
    return Node("V!" + content if content else "W!")


def _number(element: etree._Element, _: Nodes) -> Node:
    """``cn``: ``N!`` and its text."""
    content = clean(element.text)
    return Node("N!" + content if content else "W!")


def _text(element: etree._Element, _: Nodes) -> Node:
    """``mtext``: ``T!`` and its text."""
    content = clean(element.text)
    return Node("T!" + content if content else "W!")


def _wildcard(element: etree._Element, _: Nodes) -> Node:
    """``qvar``: a query variable, ``?`` and its name."""
    return Node("?" + (element.get("name") or clean(element.text)))


def _symbol(element: etree._Element, _: Nodes) -> Node:
    """``csymbol``: by its dictionary; see :data:`opt_symbols.SYMBOLS`."""
    content = clean(element.text).lower()
    dictionary = element.get("cd", "")
    if dictionary == "unknown":
        return Node("-!" + content)
    if dictionary == "mws":
        return Node("?" + content.removeprefix("qvar_"))
    if content.startswith("delimited-"):  # its first character is lost, as in the reference
        return Node("M!D-" + content[11:])
    label = SYMBOLS.get(content)
    if label is not None:
        return Node(label)
    try:
        return Node(f"N!{float(content)}")
    except ValueError:
        return Node("O!" + content)  # a symbol that the reference rejects


def _error(_: etree._Element, nodes: Nodes) -> Node:
    """``cerror``: ``E!`` with its parts below it; see :func:`fragments`."""
    return fragments(present(nodes))


def _apply(_: etree._Element, nodes: Nodes) -> Node | None:
    """``apply``: the operator with its operands; see :func:`applied`."""
    return applied(present(nodes)) if nodes else None


def _degree(_: etree._Element, nodes: Nodes) -> Node:
    """``degree``: the index of a root; taken out by the root's ``apply``."""
    return Node(DEGREE, present(nodes))


def _vector(_: etree._Element, nodes: Nodes) -> Node:
    """``vector``: ``M!V-<size>``."""
    return Node(f"M!V-{len(nodes)}", present(nodes))


def _list(_: etree._Element, nodes: Nodes) -> Node:
    """``list``: ``M!L-<size>``."""
    return Node(f"M!L-{len(nodes)}", present(nodes))


def _set(_: etree._Element, nodes: Nodes) -> Node:
    """``set``: ``M!S-<size>``."""
    return Node(f"M!S-{len(nodes)}", present(nodes))


def _matrix(_: etree._Element, nodes: Nodes) -> Node:
    """``matrix``: ``M!M-<rows>x<columns>``; a cell that is missing is ``E!``."""
    return matrix(present(nodes))


def _matrix_row(_: etree._Element, nodes: Nodes) -> Node:
    """``matrixrow``: ``M!R!``."""
    return Node("M!R!", present(nodes))


def _interval(element: etree._Element, nodes: Nodes) -> Node:
    """``interval``: ``O!interval(<left>-<right>)``, C for a closed end and O for an open one."""
    closure = element.get("closure", "closed").strip().lower()
    return Node(f"O!interval({_CLOSURES.get(closure, 'C-C')})", present(nodes))


def _share(_: etree._Element, __: Nodes) -> Node:
    """``share``: the operand before it in a chain of relations; put in by :func:`applied`."""
    return Node(SHARED)


def _first(_: etree._Element, nodes: Nodes) -> Node | None:
    """``math`` and ``semantics``: the first child."""
    return nodes[0] if nodes else None


def _unknown(element: etree._Element, nodes: Nodes) -> Node:
    """Any other element: of unknown role, with its children below it."""
    tag = str(element.tag).rpartition("}")[2]
    return Node("-!" + (clean(element.text) or tag), present(nodes))


def _named(label: str) -> mathml.Rule[Node]:
    """Make the rule of an element that is an operator or a constant by its name."""

    def rule(_: etree._Element, __: Nodes) -> Node:
        return Node(label)

    return rule


_RULES: dict[str, mathml.Rule[Node]] = mathml.table(
    {
        **{name: _named("F!" + name) for name in FUNCTIONS},
        **{name: _named("U!" + name) for name in UNORDERED},
        **{name: _named("O!" + name) for name in ORDERED},
        **{name: _named("C!" + name) for name in CONSTANTS},
        "determinant": _named("F!det"),
        "math": _first,
        "semantics": _first,
        "ci": _identifier,
        "cn": _number,
        "mtext": _text,
        "qvar": _wildcard,
        "csymbol": _symbol,
        "cerror": _error,
        "apply": _apply,
        "degree": _degree,
        "vector": _vector,
        "list": _list,
        "set": _set,
        "matrix": _matrix,
        "matrixrow": _matrix_row,
        "interval": _interval,
        "share": _share,
    }
)


def opt_from_mathml(
    source: str, *, chains: Chains = "reference", applications: Applications = "reference"
) -> FormulaTree:
    """Convert Content MathML to an operator tree in the form of Tangent-S.

    Args:
        source: one ``math`` element as text, with or without namespace; broken XML is read as far as it goes.
        chains: the middle operand of ``a<b<c``: ``"reference"`` as in the official files of 2022, where it belongs to
            the first relation only; ``"shared"`` gives it to both.
        applications: ``f(x)``: ``"reference"`` is the product that LaTeXML makes of it; ``"function"`` applies the
            letters of :data:`~.applications.FUNCTION_LETTERS` where there were parentheses for certain or in all
            likelihood, see :func:`~.applications.apply_functions`: Content MathML itself has lost them.

    Returns:
        The tree; ``partial`` when an element was not known.

    Raises:
        FormulaError: there is no MathML in it.
        ConfigError: an option has no such value.
    """
    check("chains", chains, Chains)
    check("applications", applications, Applications)
    node, known = mathml.fold(mathml.parse(source), _RULES, _unknown)
    if node is None:
        raise FormulaError("the MathML is empty", source)
    if chains == "shared":
        share_operands(node)
    if applications == "function":
        apply_functions(node)
    return tree_of(node, source, partial=not known)
