"""Function application, an option: a letter that usually names a function is applied to the parentheses after it.

::

    U!times ──0── V!𝑓                F!𝑓 ──0── V!𝑡
            └─0── O!interval(O-O)        └─1── V!𝑥

LaTeX shows the parentheses; Content MathML has lost them, see :func:`apply_functions`.
"""

from __future__ import annotations

import unicodedata
from collections import deque

from .nodes import Node, applied

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


def takes(factors: list[Node], arguments: list[Node]) -> bool:
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
    """Apply function letters in a tree of Content MathML where parentheses are certain or likely."""
    nodes, stack = [], [root]
    while stack:
        nodes.append(stack.pop())
        stack += nodes[-1].kids
    products = {id(node) for node in nodes if node.label == "U!times"}  # ids, since an application replaces the label
    for node in reversed(nodes):  # arguments before what is applied to them
        if node.label == "U!times":
            _apply_in(node, products)


def _apply_in(product: Node, products: set[int]) -> None:
    """Apply the function letters of one product to the factors after them."""
    whole = sum(factor.label != "O!differential-d" for factor in product.kids) == 2
    factors: list[Node] = []
    for factor in product.kids:
        arguments = [factor] if id(factor) in products else _arguments(factor, whole)
        if factors and arguments and takes(factors, arguments):
            factors[-1] = application(factors[-1], arguments)
        else:
            factors.append(factor)
    if len(factors) == 1:
        product.label, product.kids = factors[0].label, factors[0].kids
    else:
        product.kids = factors


def _arguments(factor: Node, whole: bool) -> list[Node]:
    """List what was in the parentheses that became a factor; empty where there may have been none."""
    if factor.label == "O!interval(O-O)" or factor.label[:4] == "M!V-":
        return factor.kids
    if factor.label in _LOOSER:
        return [factor]
    plain = factor.kids[0] if factor.label == "O!SUB" else factor
    is_quantity = plain.label[:2] in ("V!", "N!") and plain.label not in FUNCTION_LETTERS
    return [factor] if whole and is_quantity else []
