"""Rows of atoms: fences are matched, the grammar reads what is between them, and the layout tree is linked.

A row that the grammar cannot read stays flat, as LaTeXML leaves it: no groups in the layout tree, and an operator tree
``E!`` of fragments.
"""

from __future__ import annotations

from .. import slt_symbol as slt
from .atoms import BLANK, Atom, operator
from .grammar import Unparsed, condition, fence_node, statement
from .symbols import OPERATORS, Role
from ..opt import Node, fragments
from ..slt_symbol import Symbol

_PAIRS = {"(": ")]", "[": "])", "{": "}", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩", "": ""}
_MERGED = {(":", "="): ":=", ("!", "!"): "!!", ("|", "|"): "||", ("′", "′"): "′′", ("′′", "′"): "′′′"}
_DOTS = {".": "…", "·": "⋯", "⋅": "⋯"}
_OPERANDS = frozenset({Role.ATOM, Role.FENCE, Role.TEXT, Role.POSTFIX, Role.CLOSE})


def unit(atom: Atom) -> Atom:
    """Read the content of a script, a fraction or a cell as a row of its own; an atom that is no row stays."""
    return read_row(atom.raw) if atom.role in (Role.ROW, Role.BLANK) else atom if atom.role in _ALONE else read_row([atom])


WIDE = "\\quad"
"""Text of the atom of a wide space."""

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
        for atom in row:
            atom.loose()
        parts, node = _fragments(row)
    else:
        for atom in row:
            if atom.text in ("𝑑", "d·"):
                atom.symbol.label = atom.text[0]
    symbol = slt.row_of([atom.symbol for atom in parts if atom.text is not WIDE])
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
            elif atom.text in _DOTS and len(row) > 1 and row[-1].text == row[-2].text == atom.text:
                dots = "V!" + _DOTS[atom.text]
                row[-2:] = [Atom(Role.ATOM, Symbol(dots), Node(dots), _DOTS[atom.text])]
            elif row and row[-1].text == "{}" and atom.role is Role.ATOM and atom.text != "{}" and len(row[-1].symbol.kids) < 3:
                row[-1] = _with_prescripts(row[-1], atom)
            elif row and row[-1].text == "." and atom.symbol.label[:2] == "N!" and not row[-1].symbol.kids:
                atom.symbol.label = "N!." + atom.symbol.label[2:]
                base = atom.node
                while base.kids:
                    base = base.kids[0]
                base.label = "N!." + base.label[2:]
                row[-1] = atom
            else:
                row.append(atom)
    return _without_idle_spaces(row)


def _with_prescripts(empty: Atom, base: Atom) -> Atom:
    """Give the scripts of an empty base to the symbol after it: they stand before it."""
    scripts = empty.symbol.kids
    for edge, before in (("a", "c"), ("b", "d")):
        if edge in scripts:
            base.symbol.kids[before] = scripts[edge]
    below, above, super_first = empty.scripts
    base.node = with_scripts(base.node, below, above, super_first)
    return base


def _without_idle_spaces(row: list[Atom]) -> list[Atom]:
    """Keep a wide space only where it stands for a comma: not at an end, and not beside a comma or a text."""
    if all(atom.text is not WIDE for atom in row):
        return row
    kept: list[Atom] = []
    for place, atom in enumerate(row):
        if atom.text is WIDE:
            after = row[place + 1] if place + 1 < len(row) else None
            modulus = place + 2 < len(row) and row[place + 2].role is Role.MOD
            if not kept or after is None or modulus or _IDLE & {kept[-1].role, after.role}:
                continue
        kept.append(atom)
    return kept


_IDLE = {Role.PUNCTUATION, Role.TEXT, Role.MOD}


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
    return Atom(Role.BETWEEN, bar.symbol, Node(OPERATORS[bar.text][1]), bar.text)


def _fence(opener: Atom, inner: list[Atom], closer: Atom) -> Atom:
    """Make one atom of a fence and its content."""
    if not inner:
        raise Unparsed
    node, items = fence_node(opener.text, inner, closer.text)
    first = opener.symbol.label
    last = Symbol(closer.symbol.label)
    symbols = _elements(opener, inner)
    if first in slt.OPENING and last.label in slt.CLOSING:
        symbol = slt.group(first, symbols, last.label, ",")
    else:
        head = Symbol(first)
        for follower in [*symbols, last]:
            slt.link(head, follower)
        symbol = head
    fence = Atom(Role.FENCE, symbol, node, opener.text, raw=inner)
    fence.items = items
    if inner[0].role is Role.MOD and opener.text == "(":
        fence.role = Role.MOD
    below, above, super_first = closer.scripts
    if below is not None or above is not None:
        fence = scripted(fence, below, above, limits=False, super_first=super_first)
    return fence


def _elements(opener: Atom, inner: list[Atom]) -> list[Symbol]:
    """List the layout trees in a fence; a set's pattern and condition are one each, so that no comma splits them."""
    place = condition(inner) if opener.text == "{" else 0
    if not place:
        return [atom.symbol for atom in inner if atom.text is not WIDE]
    parts = (inner[:place], inner[place : place + 1], inner[place + 1 :])
    return [row for part in parts if (row := slt.row_of([atom.symbol for atom in part])) is not None]


def scripted(base: Atom, below: Atom | None, above: Atom | None, *, limits: bool, super_first: bool = False) -> Atom:
    """Attach scripts to an atom, the one written first closest; an operator keeps its role."""
    labels = "u" * (below is not None) + "o" * (above is not None)
    letters = labels if limits else "b" * (below is not None) + "a" * (above is not None)
    symbol = slt.scripted([base.symbol, *(part.symbol for part in (below, above) if part is not None)], labels, letters)
    node = with_scripts(base.node, below, above, super_first)
    keeps = base.role not in (Role.FENCE, Role.TEXT, Role.CLOSE, Role.OPEN, Role.BAR, Role.ROW)
    return Atom(base.role if keeps else Role.ATOM, symbol or Symbol("W!"), node, base.text)


def _fragments(row: list[Atom]) -> tuple[list[Atom], Node]:
    """Read a row that the grammar does not: only fences are matched, and the operator tree is ``E!`` of the symbols."""
    if len(row) == 1 and row[0].role is not Role.ROW:
        return row, Node("V!" + row[0].symbol.label)
    levels: list[list[Atom]] = [[]]
    for atom in row:
        opener = levels[-1][0].text if len(levels) > 1 else ""
        if atom.role is Role.OPEN:
            levels.append([atom])
        elif atom.role is Role.CLOSE and opener and atom.text in _PAIRS[opener]:
            levels[-2].append(_unread_fence(levels.pop(), atom))
        else:
            levels[-1].append(atom)
    parts = [atom for level in levels for atom in level]
    return parts, fragments([Node("O!fragments"), *map(_fragment, parts)])


def with_scripts(node: Node, below: Atom | None, above: Atom | None, super_first: bool) -> Node:
    """Put a subscript and a superscript on an operator tree, the one written first closest."""
    scripts = [("O!SUB", below), ("O!SUP", above)]
    for label, script in reversed(scripts) if super_first else scripts:
        if script is not None:
            node = Node(label, [node, script.node])
    return node


def _unread_fence(inner: list[Atom], closer: Atom) -> Atom:
    """Make one atom of a matched fence in a row that is not read."""
    node = fragments([Node("O!fragments"), *map(_fragment, inner), Node("V!" + closer.symbol.label)])
    symbol = slt.row_of([*(atom.symbol for atom in inner), Symbol(closer.symbol.label)])
    below, above, super_first = closer.scripts
    fence = Atom(Role.FENCE, symbol or Symbol("W!"), node)
    return scripted(fence, below, above, limits=False, super_first=super_first)


def _fragment(atom: Atom) -> Node:
    """Make the node of a symbol in a row that is not read: a letter has an unknown role, ``-!x``."""
    if atom.role is Role.ATOM and not atom.symbol.kids and atom.node.label[:2] == "V!" and atom.text.isalpha():
        return Node("-!" + atom.text.lower())
    if atom.role in (Role.OPEN, Role.CLOSE, Role.PUNCTUATION, Role.BAR) and not atom.node.kids:
        return Node("V!" + atom.symbol.label)
    return atom.node
