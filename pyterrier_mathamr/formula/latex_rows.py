"""Rows of atoms: fences are matched, the grammar reads what is between them, and the layout tree is linked.

A row that the grammar cannot read stays flat, as LaTeXML leaves it: no groups in the layout tree, and an operator tree
``E!`` of fragments.
"""

from __future__ import annotations

from . import slt
from .latex_atoms import BLANK, Atom, operator
from .latex_grammar import Unparsed, fence_node, pieces, statement
from .latex_symbols import OPERATORS, Role
from .opt import Node, fragments
from .slt import Symbol

_PAIRS = {"(": ")]", "[": "])", "{": "}", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩", "": ""}
_MERGED = {(":", "="): ":=", ("!", "!"): "!!", ("|", "|"): "||"}
_OPERANDS = frozenset({Role.ATOM, Role.FENCE, Role.TEXT, Role.POSTFIX, Role.CLOSE})


def unit(atom: Atom) -> Atom:
    """Read the content of a script, a fraction or a cell as a row of its own; an atom that is no row stays."""
    return read_row(atom.raw) if atom.role in (Role.ROW, Role.BLANK) else atom if atom.role in _ALONE else read_row([atom])


_ALONE = frozenset({Role.ATOM})


def read_row(atoms: list[Atom]) -> Atom:
    """Read a row: its layout tree and its operator tree, as one operand."""
    row = _flat(atoms)
    if not row:
        return Atom(Role.ATOM, Symbol("W!"), Node("W!"))
    body = row
    while body and body[-1].role is Role.PUNCTUATION and len(body) > 1:
        body = body[:-1]
    try:
        matched = _match(body)
        node = statement(matched)
        parts = matched + row[len(body) :]
    except Unparsed:
        parts = row
        for atom in row:
            atom.loose()
        node = _fragments(row)
    else:
        for atom in row:
            if atom.text in ("𝑑", "d·"):
                atom.symbol.label = atom.text[0]
    symbol = slt.row_of([atom.symbol for atom in parts])
    return Atom(Role.ATOM, symbol or Symbol("W!"), node, raw=row)


def _flat(atoms: list[Atom]) -> list[Atom]:
    """Splice groups into the row, drop blanks, and join symbols that are one: ``:=``, ``!!``, ``||``, ``...``."""
    row: list[Atom] = []
    stack = [iter(atoms)]
    while stack:
        atom = next(stack[-1], None)
        if atom is None:
            stack.pop()
        elif atom.role is Role.ROW:
            stack.append(iter(atom.raw))
        elif atom is not BLANK:
            joined = _MERGED.get((row[-1].text, atom.text)) if row and not atom.symbol.kids else None
            if joined and not row[-1].symbol.kids:
                row[-1] = operator(joined)
            elif atom.text == "." and len(row) > 1 and row[-1].text == row[-2].text == ".":
                row[-2:] = [Atom(Role.ATOM, Symbol("V!…"), Node("V!…"), "…")]
            else:
                row.append(atom)
    return row


def _match(row: list[Atom]) -> list[Atom]:
    """Replace each fence with its content by one atom."""
    levels: list[tuple[Atom | None, list[Atom]]] = [(None, [])]
    for place, atom in enumerate(row):
        opener, level = levels[-1]
        if atom.role is Role.OPEN:
            levels.append((atom, []))
        elif atom.role is Role.CLOSE:
            while opener is not None and opener.role is Role.BAR:  # a bar that nothing closed stands between
                levels.pop()
                levels[-1][1].extend([_between(opener), *level])
                opener, level = levels[-1]
            if opener is None or atom.text not in _PAIRS[opener.text]:
                raise Unparsed
            levels.pop()
            levels[-1][1].append(_fence(opener, level, atom))
        elif atom.role is Role.BAR:
            ended = bool(level) and level[-1].role in _OPERANDS
            if opener is not None and opener.role is Role.BAR and opener.text == atom.text and ended:
                levels.pop()
                levels[-1][1].append(_fence(opener, level, atom))
            elif not ended or _closes_later(row, place):
                levels.append((atom, []))
            else:
                level.append(_between(atom))
        else:
            level.append(atom)
    while len(levels) > 1 and levels[-1][0] is not None and levels[-1][0].role is Role.BAR and levels[-2][1]:
        opener, level = levels.pop()
        levels[-1][1].extend([_between(opener), *level])
    if len(levels) > 1:
        raise Unparsed
    return levels[0][1]


def _closes_later(row: list[Atom], place: int) -> bool:
    """Whether a bar after an operand has a partner in its own fence."""
    depth = 0
    for atom in row[place + 1 :]:
        if atom.role is Role.OPEN:
            depth += 1
        elif atom.role is Role.CLOSE:
            depth -= 1
            if depth < 0:
                return False
        elif depth == 0 and atom.role is Role.BAR and atom.text == row[place].text:
            return True
    return False


def _between(bar: Atom) -> Atom:
    """Make a bar the sign between a thing and its condition."""
    return Atom(Role.COLON, bar.symbol, Node(OPERATORS[bar.text][1]), bar.text)


def _fence(opener: Atom, inner: list[Atom], closer: Atom) -> Atom:
    """Make one atom of a fence and its content."""
    if not inner:
        raise Unparsed
    node, items = fence_node(opener.text, inner, closer.text)
    first = opener.symbol.label
    last = Symbol(closer.symbol.label)
    symbols = [part.symbol for part in _joined(inner)]
    if first in slt.OPENING and last.label in slt.CLOSING:
        symbol = slt.group(first, symbols, last.label, ",")
    else:
        head = Symbol(first)
        for follower in [*symbols, last]:
            slt.link(head, follower)
        symbol = head
    fence = Atom(Role.FENCE, symbol, node, opener.text, raw=inner)
    fence.items = items
    if inner[0].text == "mod" and opener.text == "(":
        fence.role = Role.MOD
    below, above = closer.scripts
    if below is not None or above is not None:
        fence = scripted(fence, below, above, limits=False)
    return fence


def _joined(inner: list[Atom]) -> list[Atom]:
    """Link the content of a fence into elements: commas stay between them."""
    if not any(atom.role is Role.PUNCTUATION for atom in inner):
        return inner
    return inner


def scripted(base: Atom, below: Atom | None, above: Atom | None, *, limits: bool) -> Atom:
    """Attach scripts to an atom; an operator keeps its role."""
    labels = "u" * (below is not None) + "o" * (above is not None)
    letters = labels if limits else "b" * (below is not None) + "a" * (above is not None)
    symbol = slt.scripted([base.symbol, *(part.symbol for part in (below, above) if part is not None)], labels, letters)
    node = base.node
    if below is not None:
        node = Node("O!SUB", [node, below.node])
    if above is not None:
        node = Node("O!SUP", [node, above.node])
    keeps = base.role not in (Role.FENCE, Role.TEXT, Role.CLOSE, Role.OPEN, Role.BAR, Role.ROW)
    return Atom(base.role if keeps else Role.ATOM, symbol or Symbol("W!"), node, base.text)


def _fragments(row: list[Atom]) -> Node:
    """Make the operator tree of a row that cannot be read: ``E!``, its symbols one after the other."""
    if len(row) == 1 and row[0].role is not Role.ROW:
        return Node("V!" + row[0].symbol.label)
    nodes = [Node("O!fragments")]
    for atom in row:
        simple = atom.role is Role.ATOM and atom.text and not atom.symbol.kids and atom.node.label[:2] == "V!"
        if simple and atom.text.isalpha():
            nodes.append(Node("-!" + atom.text.lower()))
        elif atom.role in (Role.OPEN, Role.CLOSE, Role.PUNCTUATION, Role.BAR) and not atom.node.kids:
            nodes.append(Node("V!" + atom.symbol.label))
        else:
            nodes.append(atom.node)
    return fragments(nodes)
