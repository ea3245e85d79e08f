"""The rules of the canonical form: an operator of Tangent-S with its operands, already canonical, to a node.

The tokens are those of the search engine's own grammar: variables with and without scripts share ``SUBSUP`` and
``BASE``, all relations share ``REL``, sums are flat and hold signs, and a function is a factor before its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyterrier_mathamr.formula import RELATIONS

MOST_LEAVES = 64
"""Leaves of a formula that are used."""

_SCRIPTS = {"O!SUP": "SUPSCRIPT", "O!SUB": "SUBSCRIPT"}
_NUMBERS = {"N!1": "ONE", "N!0": "ZERO"}
_LEAVES = {
    "V": "VAR", "-": "VAR", "N": "NUM", "C": "CONST", "F": "FUN", "O": "FUN", "U": "FUN", "T": "TEXT", "?": "WILDCARD"
}  # fmt: skip
_SUMS = frozenset({"sum", "product", "union", "intersect", "coproduct", "direct-sum", "tensor-product"})
_LIMITS = frozenset({"limit", "limit-supremum", "limit-infimum", "supremum", "infimum"})


class OperatorNode:
    """A node of a canonical tree.

    Attributes:
        token: what paths are made of.
        symbol: what is compared beside the token.
        kids: the operands.
        ordered: whether their order has a meaning.
        sign: -1 for what is subtracted.
        leaves: how many are below it; 1 for a leaf.
    """

    __slots__ = ("kids", "leaves", "ordered", "sign", "symbol", "token")

    def __init__(
        self, token: str, symbol: str = "", kids: Sequence[OperatorNode] = (), *, ordered: bool = False, sign: int = 1
    ) -> None:
        self.token, self.symbol, self.kids, self.ordered, self.sign = token, symbol or token, kids, ordered, sign
        self.leaves: int = sum(kid.leaves for kid in kids) if kids else 1

    def signed(self, sign: int) -> OperatorNode:
        """Return the node, or its opposite."""
        if sign == 1:
            return self
        return OperatorNode(self.token, self.symbol, self.kids, ordered=self.ordered, sign=-self.sign)


Nodes = Sequence[OperatorNode]
Rule = Callable[[str, Nodes], OperatorNode]


def operator_node(label: str, kids: Nodes) -> OperatorNode:
    """Make the node of an operator of Tangent-S, or of a leaf."""
    if not kids:
        return _leaf(label)
    rule = _RULES.get(label) or _RULES.get(label[:4]) or _RULES.get(label[:2], _ordered)
    return rule(label, kids)


def _leaf(label: str) -> OperatorNode:
    """A variable is its own base, so that ``x`` and ``x_i`` share paths; a number or name is its type."""
    if label[:2] == "V!":
        return _scripted(OperatorNode("VAR", label))
    return OperatorNode(_NUMBERS.get(label) or _big(label) or _LEAVES.get(label[:1], "EMPTY"), label)


def _big(label: str) -> str:
    """Return the token of an operator with bounds; empty for any other."""
    name = label.partition("!")[2]
    if label[:1] not in "OU":
        return ""
    return "SUM" if name in _SUMS else "LIM" if name in _LIMITS else "INT" if name.endswith(("int", "integral")) else ""


def _scripted(base: OperatorNode) -> OperatorNode:
    """Return what scripts are attached to."""
    return base if base.token == "SUBSUP" else OperatorNode("SUBSUP", kids=(OperatorNode("BASE", kids=(base,)),))


def _script(label: str, kids: Nodes) -> OperatorNode:
    """Attach scripts beside the others of the same base: ``x_i^2`` has one node with three operands."""
    of = _scripted(kids[0])
    below = [OperatorNode(_SCRIPTS[label], kids=(kid,)) for kid in kids[1:]]
    return OperatorNode("SUBSUP", kids=(*of.kids, *below))


def _merged(token: str, kids: Nodes) -> OperatorNode:
    """Make an operator whose operands in any order include those of the same operator below it."""
    flat: list[OperatorNode] = []
    for kid in kids:
        flat += [below.signed(kid.sign) for below in kid.kids] if kid.token == token else [kid]
    return OperatorNode(token, kids=tuple(flat))


def _sum(label: str, kids: Nodes) -> OperatorNode:
    """Sums and differences, of one operand, too: the sign of an operand is no node."""
    first = -1 if label == "O!minus" and len(kids) == 1 else 1
    rest = -1 if label == "O!minus" else 1
    return _merged("ADD", [kids[0].signed(first), *(kid.signed(rest) for kid in kids[1:])])


def _product(_: str, kids: Nodes) -> OperatorNode:
    return _merged("TIMES", kids)


def _function(label: str, kids: Nodes) -> OperatorNode:
    """``sin x`` is a product of ``sin`` and ``x``."""
    return OperatorNode("TIMES", kids=(OperatorNode("FUN", label), *kids))


def _applied(_: str, kids: Nodes) -> OperatorNode:
    """An operator that is a tree, such as a sum with bounds, is a factor before its operand, which stays one."""
    return OperatorNode("TIMES", kids=tuple(kids))


def _bounded(label: str, kids: Nodes) -> OperatorNode:
    """A sum, an integral or a limit without bounds, likewise."""
    operands = [kid for kid in kids if kid.token != "EMPTY"]
    return OperatorNode("TIMES", kids=(_scripted(OperatorNode(_big(label), label)), *operands))


def _relation(label: str, kids: Nodes) -> OperatorNode:
    return OperatorNode("REL", label, tuple(kids))


def _chain(label: str, kids: Nodes) -> OperatorNode:
    """``a=b=c`` is one relation of three; relations of several kinds are listed, with the operands that they share."""
    if not all(kid.token == "REL" for kid in kids):
        return _unordered(label, kids)
    relations, single = [kids[0]], True
    for kid in kids[1:]:
        single = single and len(kid.kids) == 1 and kid.symbol == kids[0].symbol
        before = relations[-1].kids[-1:] if len(kid.kids) == 1 else ()
        relations.append(OperatorNode("REL", kid.symbol, (*before, *kid.kids)))
    if single:
        return OperatorNode("REL", kids[0].symbol, tuple(operand for kid in kids for operand in kid.kids))
    return OperatorNode("SEP", kids=tuple(relations))


def _list(_: str, kids: Nodes) -> OperatorNode:
    return _merged("SEP", kids)


def _group(label: str, kids: Nodes) -> OperatorNode:
    """Brackets around one thing, or around several with commas between them."""
    inner = kids if len(kids) == 1 else (_merged("SEP", kids),)
    return OperatorNode("GROUP", label[:3] if label[0] == "M" else label, tuple(inner))


def _matrix(_: str, kids: Nodes) -> OperatorNode:
    return kids[0]


def _rows(_: str, kids: Nodes) -> OperatorNode:
    return OperatorNode("TAB_ROW", kids=tuple(kids))


def _columns(_: str, kids: Nodes) -> OperatorNode:
    return OperatorNode("TAB_COL", kids=tuple(kids))


def _unordered(label: str, kids: Nodes) -> OperatorNode:
    return OperatorNode(label[2:], label, tuple(kids))


def _fragments(label: str, kids: Nodes) -> OperatorNode:
    """What could not be read: its parts in any order."""
    return OperatorNode("ROW", label, tuple(kid for kid in kids if kid.symbol != "O!fragments") or tuple(kids))


def _ordered(label: str, kids: Nodes) -> OperatorNode:
    return OperatorNode(label[2:], label, tuple(kids), ordered=True)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SCRIPTS, _script),
    "U!plus": _sum,
    "O!minus": _sum,
    "U!times": _product,
    "F!⋅": _product,
    "F!": _function,
    "+!": _applied,
    **{f"O!{name}": _bounded for name in (*_SUMS, *_LIMITS, "int", "contour-integral", "double-integral")},
    **dict.fromkeys(RELATIONS, _relation),
    "U!and": _chain,
    "O!form-seq": _list,
    "M!L-": _list,
    **{f"O!interval({ends})": _group for ends in ("O-O", "O-C", "C-O", "C-C")},
    "M!": _group,
    "O!matrix": _matrix,
    "M!M-": _rows,
    "M!R!": _columns,
    "U!": _unordered,
    "E!": _fragments,
}
"""By label, by its first four letters, or by its first two; any other operator keeps the order of its operands."""
