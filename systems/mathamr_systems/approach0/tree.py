"""The canonical operator tree of Approach Zero, and its leaf-root paths.

Formulas that should match have the same tokens on the paths to the root. Tokens follow the search engine's own grammar:
variables with and without scripts share ``SUBSUP`` and ``BASE``, all relations share ``REL``, sums are flat and hold
signs, and a function is a factor before its arguments. ``x^2-1`` in Tangent-S, and in canonical form::

    O!minus ──0── O!SUP ──0── V!𝑥          ADD ──── SUBSUP ──── BASE ──── VAR 𝑥
            │           └─1── N!2             │              └── SUPSCRIPT ──── NUM 2
            └─1── N!1                         └── ONE, sign -1

The paths begin at its three leaves; here the paths of ``x``, each with the node where it ends::

    VAR/BASE             BASE
    VAR/BASE/SUBSUP      SUBSUP
    VAR/BASE/SUBSUP/ADD  ADD

All leaves below a node whose paths to it have the same tokens are a sector; in ``x^2+x`` the sector of the last path
has width 2 at the root. If the order of operands matters, their place is a token of the path, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from pyterrier_mathamr.formula import RELATIONS, FormulaTree

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
    """A node of a canonical tree: paths are made of its token, its symbol is compared, its sign is -1 if subtracted."""

    __slots__ = ("kids", "leaves", "ordered", "sign", "symbol", "token")

    def __init__(
        self, token: str, symbol: str = "", kids: Sequence[OperatorNode] = (), *, ordered: bool = False, sign: int = 1
    ) -> None:
        self.token, self.symbol, self.kids, self.ordered, self.sign = token, symbol or token, kids, ordered, sign
        self.leaves: int = sum(kid.leaves for kid in kids) if kids else 1  # below it

    def signed(self, sign: int) -> OperatorNode:
        if sign == 1:
            return self
        return OperatorNode(self.token, self.symbol, self.kids, ordered=self.ordered, sign=-self.sign)


Kids = Sequence[OperatorNode]
OperatorRule = Callable[[str, Kids], OperatorNode]


def operator_node(label: str, kids: Kids) -> OperatorNode:
    """Make the node of an operator of Tangent-S, or of a leaf."""
    if not kids and label[:2] == "V!":
        return _scripted(OperatorNode("VAR", label))  # its own base, so that x and x_i share paths
    if not kids:
        return OperatorNode(_NUMBERS.get(label) or _big(label) or _LEAVES.get(label[:1], "EMPTY"), label)
    rule = _RULES.get(label) or _RULES.get(label[:4]) or _RULES.get(label[:2], _ordered)
    return rule(label, kids)


def _big(label: str) -> str:
    """Return the token of an operator with bounds; empty for any other."""
    name = label.partition("!")[2]
    if label[:1] not in "OU":
        return ""
    return "SUM" if name in _SUMS else "LIM" if name in _LIMITS else "INT" if name.endswith(("int", "integral")) else ""


def _scripted(base: OperatorNode) -> OperatorNode:
    return base if base.token == "SUBSUP" else OperatorNode("SUBSUP", kids=(OperatorNode("BASE", kids=(base,)),))


def _script(label: str, kids: Kids) -> OperatorNode:
    """Attach scripts to the node of their base: ``x_i^2`` has one node with three operands."""
    base = _scripted(kids[0])
    below = [OperatorNode(_SCRIPTS[label], kids=(kid,)) for kid in kids[1:]]
    return OperatorNode("SUBSUP", kids=(*base.kids, *below))


def _merged(token: str, _: str, kids: Kids) -> OperatorNode:
    """Make an operator whose operands in any order include the operands of the same operator below it."""
    flat: list[OperatorNode] = []
    for kid in kids:
        flat += [below.signed(kid.sign) for below in kid.kids] if kid.token == token else [kid]
    return OperatorNode(token, kids=tuple(flat))


def _named(token: str, _: str, kids: Kids) -> OperatorNode:
    return OperatorNode(token, kids=tuple(kids))


def _sum(label: str, kids: Kids) -> OperatorNode:
    """Sums and differences, of one operand, too: the sign of an operand is not a node."""
    first = -1 if label == "O!minus" and len(kids) == 1 else 1
    rest = -1 if label == "O!minus" else 1
    return _merged("ADD", label, [kids[0].signed(first), *(kid.signed(rest) for kid in kids[1:])])


def _bounded(label: str, kids: Kids) -> OperatorNode:
    """A sum, an integral or a limit without bounds is a factor before its operands."""
    operands = [kid for kid in kids if kid.token != "EMPTY"]
    return OperatorNode("TIMES", kids=(_scripted(OperatorNode(_big(label), label)), *operands))


def _chain(label: str, kids: Kids) -> OperatorNode:
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


def _group(label: str, kids: Kids) -> OperatorNode:
    """Brackets around one thing, or around several with commas between them."""
    inner = kids if len(kids) == 1 else (_merged("SEP", label, kids),)
    return OperatorNode("GROUP", label[:3] if label[0] == "M" else label, tuple(inner))


def _unordered(label: str, kids: Kids) -> OperatorNode:
    return OperatorNode(label[2:], label, tuple(kids))


def _fragments(label: str, kids: Kids) -> OperatorNode:
    """An unreadable expression: its parts in any order."""
    return OperatorNode("ROW", label, tuple(kid for kid in kids if kid.symbol != "O!fragments") or tuple(kids))


def _ordered(label: str, kids: Kids) -> OperatorNode:
    return OperatorNode(label[2:], label, tuple(kids), ordered=True)


_RULES: dict[str, OperatorRule] = {
    **dict.fromkeys(_SCRIPTS, _script),
    "U!plus": _sum,
    "O!minus": _sum,
    "U!times": partial(_merged, "TIMES"),
    "F!⋅": partial(_merged, "TIMES"),
    "F!": lambda label, kids: OperatorNode("TIMES", kids=(OperatorNode("FUN", label), *kids)),  # ``sin x``: a product
    "+!": partial(_named, "TIMES"),  # an operator that is a tree, such as a sum with bounds; its operand stays one
    **{f"O!{name}": _bounded for name in (*_SUMS, *_LIMITS, "int", "contour-integral", "double-integral")},
    **dict.fromkeys(RELATIONS, lambda label, kids: OperatorNode("REL", label, tuple(kids))),
    "U!and": _chain,
    "O!form-seq": partial(_merged, "SEP"),
    "M!L-": partial(_merged, "SEP"),
    **{f"O!interval({ends})": _group for ends in ("O-O", "O-C", "C-O", "C-C")},
    "M!": _group,
    "O!matrix": lambda _, kids: kids[0],
    "M!M-": partial(_named, "TAB_ROW"),
    "M!R!": partial(_named, "TAB_COL"),
    "U!": _unordered,
    "E!": _fragments,
}
"""By label, by its first four letters, or by its first two; any other operator keeps the order of its operands."""


@dataclass(frozen=True, slots=True)
class OperatorTree:
    """A canonical operator tree, up to its 64th leaf; nodes are in depth-first order."""

    tokens: Sequence[str]
    symbols: Sequence[str]
    signs: Sequence[int]
    parents: Sequence[int]  # -1 for the root
    ranks: Sequence[int]  # the place among siblings, from 1, where their order has a meaning; otherwise 0
    leaves: Sequence[int]  # nodes
    size: int  # leaves of the whole formula, also those after the 64th


def canonical_tree(opt: FormulaTree) -> OperatorTree:
    """Convert an operator tree of Tangent-S to the canonical form."""
    kids = [[child for _, child in below] for below in opt.children()]
    made: list[OperatorNode] = [None] * len(opt.nodes)  # type: ignore[list-item]
    for i in range(len(opt.nodes) - 1, -1, -1):
        operands = [made[kid] for kid in kids[i]]
        if opt.nodes[i] == "U!and":
            operands = _without_shared(opt, kids, kids[i], operands)
        made[i] = operator_node(opt.nodes[i], operands)
    return _flat(made[0])


def _without_shared(
    opt: FormulaTree, kids: list[list[int]], relations: list[int], made: list[OperatorNode]
) -> list[OperatorNode]:
    """Take the operand that a relation shares with the one before it out of a chain, where the tree repeats it."""
    operands = made[:1]
    for before, after, node in zip(relations, relations[1:], made[1:], strict=False):
        left, right = kids[before][-1:], kids[after][:1]
        repeated = len(kids[after]) > 1 and left and _same(opt, kids, left[0], right[0])
        operands.append(OperatorNode(node.token, node.symbol, node.kids[1:]) if repeated else node)
    return operands


def _same(opt: FormulaTree, kids: list[list[int]], one: int, other: int) -> bool:
    stack = [(one, other)]
    while stack:
        one, other = stack.pop()
        if opt.nodes[one] != opt.nodes[other] or len(kids[one]) != len(kids[other]):
            return False
        stack += zip(kids[one], kids[other], strict=True)
    return True


def _flat(root: OperatorNode) -> OperatorTree:
    """Number the nodes depth first, up to the last leaf that is used."""
    tokens, symbols = list[str](), list[str]()
    signs, parents, ranks, leaves = list[int](), list[int](), list[int](), list[int]()
    stack = [(root, -1, 0)]
    while stack and len(leaves) < MOST_LEAVES:
        node, parent, rank = stack.pop()
        number = len(tokens)
        tokens.append(node.token)
        symbols.append(node.symbol)
        signs.append(node.sign)
        parents.append(parent)
        ranks.append(rank)
        if node.kids:
            places = range(len(node.kids), 0, -1)
            stack += [(node.kids[place - 1], number, place if node.ordered else 0) for place in places]
        else:
            leaves.append(number)
    return OperatorTree(tokens, symbols, signs, parents, ranks, leaves, root.leaves)


_NOT_COMPARED = frozenset({"BASE", "SUBSCRIPT", "SUPSCRIPT", "TAB_ROW", "TAB_COL", "SEP"})
_COMPARED = 4  # operators above a leaf


class Leaves(NamedTuple):
    """The leaves of a sector that have the same symbol."""

    symbol: str
    first: int  # the number of the formula's first leaf with this symbol, 0 to 63
    width: int  # how many
    operators: str  # the fingerprint of the first: the symbols and signs of up to four operators above it


class RootEnd(NamedTuple):
    """A node where paths end."""

    leaves: int  # below it
    sectors: dict[int, list[Leaves]]  # by the key of their path, in the order of the formula


class FormulaPaths(NamedTuple):
    """The paths of a formula."""

    size: int  # its leaves
    roots: list[RootEnd]  # in depth-first order
    symbols: dict[str, int]  # how many leaves have each, in the order of the formula


@lru_cache(maxsize=1 << 18)
def extended(key: int, token: str) -> int:
    """Return the key of a path with one more token: 64 bits that identify its tokens; 0 is the key of no tokens."""
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8, key=key.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")


def formula_paths(tree: OperatorTree, share: float = 0.0) -> FormulaPaths:
    """List the paths of a formula: the prefixes of two tokens and more of all leaf-root paths that end at a node."""
    below = _leaves_below(tree)
    least = share * len(tree.leaves)
    counted: list[dict[int, dict[str, Leaves]]] = [{} for _ in below]  # by path, then by symbol
    marks = [("\t-" if sign < 0 else "\t+") + symbol for sign, symbol in zip(tree.signs, tree.symbols, strict=True)]
    firsts: dict[str, int] = {}
    for number, leaf in enumerate(tree.leaves):
        symbol = tree.symbols[leaf]
        first = firsts.setdefault(symbol, number)
        key, operators, compared = extended(0, tree.tokens[leaf]), "-" if tree.signs[leaf] < 0 else "", 0
        node, parent = leaf, tree.parents[leaf]
        if parent < 0:
            counted[node][key] = {symbol: Leaves(symbol, first, 1, operators)}
        while parent >= 0:
            if tree.ranks[node]:
                key = extended(key, f"RANK_{tree.ranks[node]}")
            node, token = parent, tree.tokens[parent]
            key, parent = extended(key, token), tree.parents[node]
            if compared < _COMPARED and token not in _NOT_COMPARED:
                operators += marks[node]
                compared += 1
            if below[node] > least:
                sector = counted[node].setdefault(key, {})
                if (same := sector.get(symbol)) is None:
                    sector[symbol] = Leaves(symbol, first, 1, operators)
                else:
                    sector[symbol] = Leaves(symbol, first, same.width + 1, same.operators)
    roots = [
        RootEnd(leaves, {key: list(sector.values()) for key, sector in sectors.items()})
        for leaves, sectors in zip(below, counted, strict=True)
        if sectors
    ]
    symbols = [tree.symbols[leaf] for leaf in tree.leaves]
    return FormulaPaths(tree.size, roots, {symbol: symbols.count(symbol) for symbol in firsts})


def path_names(tree: OperatorTree, keys: Container[int]) -> dict[int, str]:
    """Spell some paths of a formula: their tokens from the leaf up, such as ``VAR/BASE/SUBSUP``."""
    names: dict[int, str] = {}
    for leaf in tree.leaves:
        tokens = [tree.tokens[leaf]]
        key, node = extended(0, tokens[0]), leaf
        while True:
            if key in keys and key not in names:
                names[key] = "/".join(tokens)
            if tree.parents[node] < 0:
                break
            rank = [f"RANK_{tree.ranks[node]}"] if tree.ranks[node] else []
            node = tree.parents[node]
            for token in (*rank, tree.tokens[node]):
                tokens.append(token)
                key = extended(key, token)
    return names


def _leaves_below(tree: OperatorTree) -> list[int]:
    below = [0] * len(tree.tokens)
    for leaf in tree.leaves:
        below[leaf] = 1
    for node in range(len(below) - 1, 0, -1):
        below[tree.parents[node]] += below[node]
    return below
