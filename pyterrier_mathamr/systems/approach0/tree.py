"""The canonical operator tree of Approach Zero: what should match has the same tokens on its way to the root.

``x^2-1`` as Tangent-S has it, and in canonical form; a token of :data:`UNORDERED` puts no rank on the paths below it::

    O!minus ──0── O!SUP ──0── V!𝑥          ADD ──── SUBSUP ──── BASE ──── VAR 𝑥
            │           └─1── N!2             │              └── SUPSCRIPT ──── NUM 2
            └─1── N!1                         └── ONE, sign -1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyterrier_mathamr.formula import FormulaTree

from .rules import MOST_LEAVES, OperatorNode, operator_node


@dataclass(frozen=True, slots=True)
class OperatorTree:
    """A canonical operator tree, up to its 64th leaf; nodes are in depth-first order.

    Attributes:
        tokens: of each node, what paths are made of.
        symbols: of each node, what is compared beside the tokens.
        signs: 1, or -1 for what is subtracted.
        parents: -1 for the root.
        ranks: the place of a node among its siblings, from 1, where their order has a meaning; otherwise 0.
        leaves: the leaves, in order.
        size: the number of leaves of the whole formula, also of those after the 64th.
    """

    tokens: Sequence[str]
    symbols: Sequence[str]
    signs: Sequence[int]
    parents: Sequence[int]
    ranks: Sequence[int]
    leaves: Sequence[int]
    size: int


def canonical_tree(opt: FormulaTree) -> OperatorTree:
    """Convert an operator tree of Tangent-S to the canonical form; without recursion."""
    kids: list[list[int]] = [[] for _ in opt.nodes]
    for parent, child, _ in opt.edges:
        kids[parent].append(child)
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
    found = made[:1]
    for before, after, node in zip(relations, relations[1:], made[1:], strict=False):
        left, right = kids[before][-1:], kids[after][:1]
        repeated = len(kids[after]) > 1 and left and _same(opt, kids, left[0], right[0])
        found.append(OperatorNode(node.token, node.symbol, node.kids[1:]) if repeated else node)
    return found


def _same(opt: FormulaTree, kids: list[list[int]], one: int, other: int) -> bool:
    """Whether two sub-trees are equal."""
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
