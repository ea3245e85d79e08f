"""Nodes of an operator tree under construction: applications, errors, matrices and chains of relations."""

from __future__ import annotations

from itertools import pairwise

from pyterrier_mathamr.formula.tree import Edge, FormulaTree

from .names import RELATIONS, position

DEGREE, SHARED = "$!degree", "$!share"
"""Labels of temporary nodes, resolved when the node around them is made."""

_MOST = 500  # operands of one unordered node


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
    return _split(Node("E!", kids))


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
        _resolve_shared(operands)
    elif operator.label == "O!int":
        operands = [operands[0] if operands else Node("W!"), Node("W!"), Node("W!")]
    elif operator.label == "O!root":
        operands = _root_operands(operands)
    return _split(Node(operator.label, operands)) if len(operands) > _MOST else Node(operator.label, operands)


def _resolve_shared(relations: list[Node]) -> None:
    """Replace each shared operand of a chain of relations by the right operand of the relation before it."""
    for before, after in pairwise(relations):
        if before.kids and after.kids and after.kids[0].label == SHARED:
            after.kids[0] = _shared(before)


def _shared(relation: Node) -> Node:
    """Return the right operand of a relation again; a very large one is left out, since copies of copies grow."""
    count, stack = 0, [relation.kids[-1]]
    while stack:
        count += 1
        stack += stack.pop().kids
        if count + len(stack) > _LARGEST_SHARED:
            return Node("W!")
    return relation.kids[-1]


_LARGEST_SHARED = 1000  # nodes


def share_operands(root: Node) -> None:
    """Add to the later relations of each chain the operand that LaTeXML of 2022 omits: ``and(lt(a, b), lt(b, c))``."""
    stack = [root]
    while stack:
        node = stack.pop()
        stack += node.kids
        if node.label == "U!and":
            for before, after in pairwise(node.kids):
                if len(after.kids) == 1 and before.kids and after.label in RELATIONS:
                    after.kids.insert(0, _shared(before))


def _root_operands(operands: list[Node]) -> list[Node]:
    """Order the operands of a root: content, then degree (2 by default)."""
    content = [node for node in operands if node.label != DEGREE]
    degrees = [node.kids[0] for node in operands if node.label == DEGREE and node.kids]
    return [content[0] if content else Node("W!"), degrees[0] if degrees else Node("N!2")]


def _split(node: Node) -> Node:
    """Halve the operands of an unordered node or an error until no node has more than 500."""
    if node.label[:2] not in ("U!", "E!"):
        return node
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
