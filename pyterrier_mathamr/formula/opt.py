"""Content MathML → operator tree.

An ``apply`` is its operator with the operands below it; an operator that is itself a tree becomes operand 0 of a new
``+!`` node::

    <apply><plus/><ci>𝑥</ci><cn>1</cn></apply>         U!plus ──0── V!𝑥
                                                       └──────0── N!1

Each element has one rule: a small function from the element and the nodes of its children to a node.

A csymbol is ordered (``O!``) unless listed as unordered, even if Tangent-S does not know it. On request a letter
that usually names a function is applied to the parentheses after it::

    U!times ──0── V!𝑓                F!𝑓 ──0── V!𝑡
            └─0── O!interval(O-O)        └─1── V!𝑥

LaTeX shows the parentheses; Content MathML has lost them, see :func:`apply_functions`.
"""

from __future__ import annotations

import string
import unicodedata
from collections import deque
from itertools import pairwise
from typing import Literal, get_args

from lxml import etree

from pyterrier_mathamr._common.parameters import one_of

from . import mathml
from .mathml import clean
from .tree import Edge, FormulaError, FormulaTree

Chains = Literal["reference", "shared"]
"""How the middle operand of a chain of relations is read."""

Applications = Literal["reference", "function"]
"""How a letter that usually names a function is read before parentheses."""

Lines = Literal["reference", "all"]
"""How much of a derivation in lines is read: its first cell, or all of it."""

_OPTIONS = {
    "chains": one_of(*get_args(Chains)),
    "applications": one_of(*get_args(Applications)),
    "lines": one_of(*get_args(Lines)),
}  # "reference" is the form of LaTeXML and Tangent-S, which the published graphs have


def check_options(**options: str) -> None:
    """Raise an error for an option with an unknown value."""
    for option, value in options.items():
        _OPTIONS[option].check(option, value)


_POSITIONS = string.digits + string.ascii_uppercase


def position(operand: int) -> str:
    """Return the edge label of an operand's position: 0-9, A-Z, then from "a" on through Unicode."""
    if operand < len(_POSITIONS):
        return _POSITIONS[operand]
    return chr(61 + operand) if operand < 50_000 else chr(0x10000 + operand)  # past the surrogates, no characters


_ELEMENTS = {
    "F": """
        sin cos tan cot sec csc sinh cosh tanh coth sech csch arccos arccot arccsc arcsec arcsin arctan arccosh arccoth
        arccsch arcsech arcsinh arctanh abs exp log ln min max ceiling floor arg gcd real imaginary
        """,
    "U": "approx eq neq equivalent union intersect plus times and or",  # operands in any order
    "O": """
        lt gt leq geq minus divide subset prsubset notsubset notprsubset in notin forall exists setdiff not implies int
        sum partialdiff limit factorial compose root
        """,
    "C": "infinity emptyset imaginaryi exponentiale reals integers naturalnumbers complexes rationals",
}
"""The elements that are a function, an operator or a constant by their name, by the type of their label."""

FUNCTIONS = frozenset(_ELEMENTS["F"].split())
"""Elements that become ``F!``."""

_UNORDERED_SYMBOLS = """
    not-asymptotically-equals not-not-equals join not-less-than-nor-greater-than approximately-equals-or-equals
    coproduct double-union exclusive-or double-intersection geometrically-equals greater-than-or-equals-or-less-than
    greater-than-or-less-than iff inner-product not-and not-approximately-equals not-equivalent-to
    less-than-or-equals-or-greater-than similar-to similar-to-or-equals less-than-or-greater-than not-parallel-to
    not-perpendicular-to equivalent-to not-proportional-to not-similar-to parallel-to proper-intersection not-direct-sum
    square-intersection square-union subset-plus superset-plus symmetric-difference tensor-product not-iff
    not-intersection not-exclusive-or not-times not-or not-proper-intersection intersection-plus additive-conjunction
    additive-disjunction multiplicative-conjunction multiplicative-disjunction not-difference-between
    not-approximately-equals-or-equals not-equivalent-to-nor-equals not-geometrically-equals approximately-equals
    not-not-equivalent-to times not-not-approximately-equals not-coproduct
    """
SYMBOLS = {
    **{name: "U!" + name for name in _UNORDERED_SYMBOLS.split()},
    "not-empty-set": "C!not-empty-set",
    "empty-set": "C!empty-set",
    "absent": "W!",
    "for-all": "O!forall",
    "hyperbolic-cotangent": "F!coth",
    "modulo": "O!rem",
    "planck-constant-over-2-pi": "C!hbar",
    "square-root": "O!root",
    "formulae-sequence": "O!form-seq",
    "missing-subexpression": "W!",
    "subscript": "O!SUB",
    "superscript": "O!SUP",
}
"""Label of each csymbol of LaTeXML that is not ``O!`` and its name."""

_RELATIONS = """
    U!eq U!neq U!equivalent U!approx U!similar-to U!similar-to-or-equals U!approximately-equals U!iff U!parallel-to O!lt
    O!gt O!leq O!geq O!subset O!prsubset O!in O!notin O!implies O!implied-by O!assign O!maps-to O!contains O!superset-of
    O!superset-of-or-equals O!much-less-than O!much-greater-than O!precedes O!succeeds O!proportional-to
    O!asymptotically-equals O!perpendicular-to F!→ F!← F!↔ F!⇒ F!⇐ F!⇔ F!⟶ F!⟵ F!⟹ F!⟺
    """
RELATIONS = frozenset(_RELATIONS.split())
"""Labels of relations that form chains."""


DEGREE, SHARED = "$!degree", "$!share"
"""Labels of temporary nodes, resolved when the node around them is made."""

_MOST = 500  # operands of one unordered node
_LARGEST_SHARED = 1000  # nodes


class Node:
    """A node under construction: its label and its operands."""

    __slots__ = ("kids", "label")

    def __init__(self, label: str, kids: list[Node] | None = None) -> None:
        self.label = label
        self.kids: list[Node] = [] if kids is None else kids


Nodes = list[Node | None]


def present(nodes: Nodes) -> list[Node]:
    """Fill the place of an element without a node with ``W!``."""
    return [node or Node("W!") for node in nodes]


def fragments(nodes: list[Node]) -> Node:
    """Make ``E!``; adjacent symbols of unknown role are joined to one text."""
    kids: list[Node] = []
    run: list[str] = []  # the text of the last node, in parts
    for node in nodes:
        if run and node.label[:2] == "-!":
            run.append(node.label[2:])
            continue
        if len(run) > 1:
            kids[-1].label = "T!" + "".join(run)
        kids.append(node)
        run = [node.label[2:]] if node.label[:2] in ("-!", "T!") else []
    if len(run) > 1:
        kids[-1].label = "T!" + "".join(run)
    return _halved(Node("E!", kids))


def applied(nodes: list[Node]) -> Node:
    """Put operands below their operator."""
    operator, operands = nodes[0], nodes[1:]
    if operator.label[:2] == "V!":
        operator.label = "F!" + operator.label[2:]
    if operator.kids:
        label = "+!"
        if operator.label in ("O!SUB", "O!SUP"):
            label += operator.kids[0].label
        return Node(label, [operator, *operands])
    if operator.label == "U!and":
        for before, after in pairwise(operands):
            if before.kids and after.kids and after.kids[0].label == SHARED:
                after.kids[0] = _last_operand(before)
    elif operator.label == "O!int":
        operands = [operands[0] if operands else Node("W!"), Node("W!"), Node("W!")]
    elif operator.label == "O!root":  # its content, then its degree, 2 by default
        content = [node for node in operands if node.label != DEGREE]
        degrees = [node.kids[0] for node in operands if node.label == DEGREE and node.kids]
        operands = [content[0] if content else Node("W!"), degrees[0] if degrees else Node("N!2")]
    node = Node(operator.label, operands)
    return _halved(node) if len(operands) > _MOST else node


def _last_operand(relation: Node) -> Node:
    """Return the right operand of a relation again; a very large one is left out, since copies of copies grow."""
    count, stack = 0, [relation.kids[-1]]
    while stack:
        count += 1
        stack += stack.pop().kids
        if count + len(stack) > _LARGEST_SHARED:
            return Node("W!")
    return relation.kids[-1]


def share_operands(root: Node) -> None:
    """Add to the later relations of each chain the operand that LaTeXML of 2022 omits: ``and(lt(a, b), lt(b, c))``."""
    stack = [root]
    while stack:
        node = stack.pop()
        stack += node.kids
        if node.label == "U!and":
            for before, after in pairwise(node.kids):
                if len(after.kids) == 1 and before.kids and after.label in RELATIONS:
                    after.kids.insert(0, _last_operand(before))


def _halved(node: Node) -> Node:
    """Halve the operands of an unordered node or an error until no node has more than 500."""
    if len(node.kids) > _MOST and node.label[:2] in ("U!", "E!"):
        todo = [node]
        while todo:
            full = todo.pop()
            if len(full.kids) > _MOST:
                half = (len(full.kids) + 1) // 2
                full.kids = [Node(full.label, full.kids[:half]), Node(full.label, full.kids[half:])]
                todo += full.kids
    return node


def matrix(rows: list[Node]) -> Node:
    """Make a matrix; rows are padded with ``E!`` to the length of the longest."""
    width = max((len(row.kids) for row in rows), default=0)
    for row in rows:
        row.kids += [Node("E!") for _ in range(width - len(row.kids))]
    return Node(f"M!M-{len(rows)}x{width}", rows)


def tree_of(root: Node, source: str, *, partial: bool) -> FormulaTree:
    """Number the nodes below ``root`` depth first and freeze them into a tree."""
    nodes: list[str] = []
    edges: list[Edge] = []
    stack: list[tuple[int, str, Node]] = [(-1, "", root)]
    while stack:
        parent, label, node = stack.pop()
        index = len(nodes)
        nodes.append(node.label if node.label[:1] != "$" else "W!")  # a misplaced share or degree
        if label:
            edges.append((parent, index, label))
        kids = node.kids
        if kids:
            if node.label[0] == "U":
                stack += [(index, "0", kid) for kid in reversed(kids)]
            else:
                stack += [(index, position(i), kids[i]) for i in range(len(kids) - 1, -1, -1)]
    return FormulaTree(tuple(nodes), tuple(edges), partial, source, "opt")


FUNCTION_LETTERS = frozenset("V!" + letter for letter in ("italic-ϕ", *"fghFGH𝑓𝑔ℎ𝐹𝐺𝐻ϕφψ𝜑𝜓ΦΨ"))
"""Labels of the letters that name functions: f, g, h, F, G, H, phi, psi, Phi, Psi, italic or upright."""

_WORD_ENDS = frozenset({"log", "deg", "arg", "inh", "osh", "anh"})
_SCRIPTS = ("O!SUB", "O!SUP")
_LOOSER = frozenset({"U!plus", "O!minus"})
_LOOKED_AT = 64  # nodes of the arguments that are searched for the letter


def letter_of(node: Node) -> Node | None:
    """Find the function letter of a node, below its scripts; ``None`` for any other node."""
    while node.label in _SCRIPTS and node.kids:
        node = node.kids[0]
    return node if node.label in FUNCTION_LETTERS else None


def is_application(factors: list[Node], arguments: list[Node]) -> bool:
    """Whether the last of some factors is a function letter that may be applied to the arguments."""
    letter = letter_of(factors[-1])
    if letter is None:
        return False
    before = "".join(factor.label[2:] for factor in factors[-3:-1])
    if unicodedata.normalize("NFKC", before + letter.label[2:]) in _WORD_ENDS:
        return False
    waiting, looked_at = deque(arguments), 0
    while waiting and looked_at < _LOOKED_AT:
        node = waiting.popleft()
        looked_at += 1
        if node.label == letter.label:
            return False
        waiting.extend(node.kids[: _LOOKED_AT - looked_at])
    return True


def application(operator: Node, arguments: list[Node]) -> Node:
    """Apply a function letter; one with scripts is an operator that is a tree, as in ``sin^2(x)``."""
    letter = letter_of(operator)
    if letter is not None:
        letter.label = "F!" + letter.label[2:]
    return applied([operator, *arguments])


def apply_functions(root: Node) -> None:
    """Apply function letters in a tree of Content MathML to the factors after them, certain or likely arguments."""
    nodes, stack = [], [root]
    while stack:
        nodes.append(stack.pop())
        stack += nodes[-1].kids
    products = {id(node) for node in nodes if node.label == "U!times"}  # ids, since an application replaces the label
    for product in reversed(nodes):  # arguments before the functions that are applied to them
        if product.label != "U!times":
            continue
        whole = sum(factor.label != "O!differential-d" for factor in product.kids) == 2
        factors: list[Node] = []
        for factor in product.kids:
            arguments = [factor] if id(factor) in products else _arguments(factor, whole)
            if factors and arguments and is_application(factors, arguments):
                factors[-1] = application(factors[-1], arguments)
            else:
                factors.append(factor)
        if len(factors) == 1:
            product.label, product.kids = factors[0].label, factors[0].kids
        else:
            product.kids = factors


def _arguments(factor: Node, whole: bool) -> list[Node]:
    """List the contents of the parentheses that became a factor; empty if there may have been none."""
    if factor.label == "O!interval(O-O)" or factor.label[:4] == "M!V-":
        return factor.kids
    if factor.label in _LOOSER:
        return [factor]
    plain = factor.kids[0] if factor.label == "O!SUB" and factor.kids else factor  # a symbol alone is not applied
    is_quantity = plain.label[:2] in ("V!", "N!") and plain.label not in FUNCTION_LETTERS
    return [factor] if whole and is_quantity else []


_CLOSURES = {"open": "O-O", "closed": "C-C", "open-closed": "O-C", "closed-open": "C-O"}


def _token(prefix: str) -> mathml.Rule[Node]:
    """Make the rule of a token: its type and its own text (that of an element inside it is lost)."""

    def rule(element: etree._Element, _: Nodes) -> Node:
        content = clean(element.text)
        return Node(prefix + content if content else "W!")

    return rule


def _symbol(element: etree._Element, _: Nodes) -> Node:
    """``csymbol``: by its dictionary; see `SYMBOLS`."""
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


def _sized(letter: str) -> mathml.Rule[Node]:
    """Make the rule of a collection: ``M!``, its letter and its size."""
    return lambda _, nodes: Node(f"M!{letter}-{len(nodes)}", present(nodes))


def _interval(element: etree._Element, nodes: Nodes) -> Node:
    """``interval``: ``O!interval(<left>-<right>)``, C for a closed end and O for an open one."""
    closure = element.get("closure", "closed").strip().lower()
    return Node(f"O!interval({_CLOSURES.get(closure, 'C-C')})", present(nodes))


def _first(_: etree._Element, nodes: Nodes) -> Node | None:
    return nodes[0] if nodes else None


def _unknown(element: etree._Element, nodes: Nodes) -> Node:
    """Any other element: of unknown role, with its children below it."""
    tag = str(element.tag).rpartition("}")[2]
    return Node("-!" + (clean(element.text) or tag), present(nodes))


def _named(label: str) -> mathml.Rule[Node]:
    return lambda _, __: Node(label)


_RULES: dict[str, mathml.Rule[Node]] = mathml.table(
    {
        **{name: _named(f"{letter}!{name}") for letter, names in _ELEMENTS.items() for name in names.split()},
        "determinant": _named("F!det"),
        "math": _first,
        "semantics": _first,
        "ci": _token("V!"),
        "cn": _token("N!"),
        "mtext": _token("T!"),
        "qvar": lambda element, _: Node("?" + (element.get("name") or clean(element.text))),
        "csymbol": _symbol,
        "cerror": lambda _, nodes: fragments(present(nodes)),
        "apply": lambda _, nodes: applied(present(nodes)) if nodes else None,
        "degree": lambda _, nodes: Node(DEGREE, present(nodes)),  # taken out by the root's ``apply``
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
            (``"function"``) where parentheses are certain or likely; see :func:`apply_functions`.

    Returns:
        The tree; ``partial`` when an element was unknown.

    Raises:
        FormulaError: there is no MathML in it.
        ConfigError: an option has no such value.
    """
    check_options(chains=chains, applications=applications)
    node, known = mathml.fold(mathml.parse(source), _RULES, _unknown)
    if node is None:
        raise FormulaError("the MathML is empty", source)
    if chains == "shared":
        share_operands(node)
    if applications == "function":
        apply_functions(node)
    return tree_of(node, source, partial=not known)
