"""Content MathML → operator tree.

An ``apply`` is its operator with the operands below it; an operator that is itself a tree becomes operand 0 of a new
``+!`` node::

    <apply><plus/><ci>𝑥</ci><cn>1</cn></apply>         U!plus ──0── V!𝑥
                                                       └──────0── N!1

Each element has one rule: a small function from the element and the nodes of its children to a node.
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
from .nodes import DEGREE, SHARED, Node, Nodes, applied, fragments, matrix, present, share_operands, tree_of

_CLOSURES = {"open": "O-O", "closed": "C-C", "open-closed": "O-C", "closed-open": "C-O"}


def _token(prefix: str) -> mathml.Rule[Node]:
    """Make the rule of a token: its type and its own text (that of an element inside it is lost)."""

    def rule(element: etree._Element, _: Nodes) -> Node:
        content = clean(element.text)
        return Node(prefix + content if content else "W!")

    return rule


def _wildcard(element: etree._Element, _: Nodes) -> Node:
    """``qvar``: a query variable, ``?`` and its name."""
    return Node("?" + (element.get("name") or clean(element.text)))


def _symbol(element: etree._Element, _: Nodes) -> Node:
    """``csymbol``: by its dictionary; see :data:`.names.SYMBOLS`."""
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


def _degree(_: etree._Element, nodes: Nodes) -> Node:
    """``degree``: the index of a root; taken out by the root's ``apply``."""
    return Node(DEGREE, present(nodes))


def _sized(letter: str) -> mathml.Rule[Node]:
    """Make the rule of a collection: ``M!``, its letter and its size."""
    return lambda _, nodes: Node(f"M!{letter}-{len(nodes)}", present(nodes))


def _interval(element: etree._Element, nodes: Nodes) -> Node:
    """``interval``: ``O!interval(<left>-<right>)``, C for a closed end and O for an open one."""
    closure = element.get("closure", "closed").strip().lower()
    return Node(f"O!interval({_CLOSURES.get(closure, 'C-C')})", present(nodes))


def _first(_: etree._Element, nodes: Nodes) -> Node | None:
    """``math`` and ``semantics``: the first child."""
    return nodes[0] if nodes else None


def _unknown(element: etree._Element, nodes: Nodes) -> Node:
    """Any other element: of unknown role, with its children below it."""
    tag = str(element.tag).rpartition("}")[2]
    return Node("-!" + (clean(element.text) or tag), present(nodes))


def _named(label: str) -> mathml.Rule[Node]:
    """Make the rule of an element that is an operator or a constant by its name."""
    return lambda _, __: Node(label)


_RULES: dict[str, mathml.Rule[Node]] = mathml.table(
    {
        **{name: _named("F!" + name) for name in FUNCTIONS},
        **{name: _named("U!" + name) for name in UNORDERED},
        **{name: _named("O!" + name) for name in ORDERED},
        **{name: _named("C!" + name) for name in CONSTANTS},
        "determinant": _named("F!det"),
        "math": _first,
        "semantics": _first,
        "ci": _token("V!"),
        "cn": _token("N!"),
        "mtext": _token("T!"),
        "qvar": _wildcard,
        "csymbol": _symbol,
        "cerror": lambda _, nodes: fragments(present(nodes)),
        "apply": lambda _, nodes: applied(present(nodes)) if nodes else None,
        "degree": _degree,
        "vector": _sized("V"),
        "list": _sized("L"),
        "set": _sized("S"),
        "matrix": lambda _, nodes: matrix(present(nodes)),
        "matrixrow": lambda _, nodes: Node("M!R!", present(nodes)),
        "interval": _interval,
        "share": _named(SHARED),
    }
)


def opt_from_mathml(
    source: str, *, chains: Chains = "reference", applications: Applications = "reference"
) -> FormulaTree:
    """Convert Content MathML to an operator tree in the form of Tangent-S.

    Args:
        source: one ``math`` element as text, with or without namespace; broken XML is read as far as it goes.
        chains: the middle operand of ``a<b<c`` belongs to the first relation only (``"reference"``, as in the official
            files of 2022) or to both (``"shared"``).
        applications: ``f(x)`` is a product (``"reference"``, as in LaTeXML), or the function ``f`` of ``x``
            (``"function"``) where parentheses are certain or likely; see :func:`~.applications.apply_functions`.

    Returns:
        The tree; ``partial`` when an element was unknown.

    Raises:
        FormulaError: there is no MathML in it.
        ConfigError: an option has no such value.
    """
    check(chains=chains, applications=applications)
    node, known = mathml.fold(mathml.parse(source), _RULES, _unknown)
    if node is None:
        raise FormulaError("the MathML is empty", source)
    if chains == "shared":
        share_operands(node)
    if applications == "function":
        apply_functions(node)
    return tree_of(node, source, partial=not known)
