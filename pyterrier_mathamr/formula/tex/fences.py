"""Fences: each is matched with its partner and becomes one atom by its meaning, such as interval or norm.

A bar opens a fence, closes one, or separates two operands.
"""

from __future__ import annotations

from pyterrier_mathamr.formula import slt
from pyterrier_mathamr.formula.opt import Node, fragments
from pyterrier_mathamr.formula.slt import Symbol

from .atoms import OPERATORS, WIDE, Atom, Role, scripted
from .grammar import RELATING, Unparsed, formula, listed, pieces, statement

_PAIRS = {"(": ")]", "[": "])", "{": "}", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩", "": ""}
_OPERANDS = frozenset({Role.ATOM, Role.FENCE, Role.TEXT, Role.POSTFIX, Role.CLOSE})


def matched(row: list[Atom]) -> list[Atom]:
    """Replace each fence with its content by one atom."""
    if all(atom.role not in _FENCING for atom in row):
        return list(row)
    levels: list[tuple[Atom | None, list[Atom]]] = [(None, [])]
    paired = _paired_bars(row)
    for place, atom in enumerate(row):
        opener, level = levels[-1]
        if atom.role == Role.OPEN:
            levels.append((atom, []))
        elif atom.role == Role.CLOSE:
            while opener is not None and opener.role == Role.BAR:  # an unclosed bar separates
                levels.pop()
                levels[-1][1].extend([_between(opener), *level])
                opener, level = levels[-1]
            if opener is None or atom.text not in _PAIRS[opener.text]:
                raise Unparsed
            levels.pop()
            levels[-1][1].append(_fence(opener, level, atom))
        elif atom.role == Role.BAR:
            ended = bool(level) and level[-1].role in _OPERANDS
            if opener is not None and opener.role == Role.BAR and opener.text == atom.text and ended:
                levels.pop()
                levels[-1][1].append(_fence(opener, level, atom))
            elif not ended or place in paired:
                levels.append((atom, []))
            else:
                level.append(_between(atom))
        else:
            level.append(atom)
    while (last := levels[-1][0]) is not None and last.role == Role.BAR and levels[-2][1]:
        _, level = levels.pop()
        levels[-1][1].extend([_between(last), *level])
    if len(levels) > 1:
        raise Unparsed
    return levels[0][1]


_FENCING = frozenset({Role.OPEN, Role.CLOSE, Role.BAR})


def _paired_bars(row: list[Atom]) -> set[int]:
    """Find the bars that are followed by an equal bar in the same fence."""
    paired: set[int] = set()
    levels: list[set[str]] = [set()]
    for place in range(len(row) - 1, -1, -1):
        atom = row[place]
        if atom.role == Role.CLOSE:
            levels.append(set())
        elif atom.role == Role.OPEN:
            levels.pop()
            levels = levels or [set()]
        elif atom.role == Role.BAR:
            if atom.text in levels[-1]:
                paired.add(place)
            levels[-1].add(atom.text)
    return paired


def _between(bar: Atom) -> Atom:
    """Make a bar the sign between an operand and its condition."""
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
    if inner[0].role == Role.MOD and opener.text == "(":
        fence.role = Role.MOD
    below, above, super_first = closer.scripts
    if below is not None or above is not None:
        fence = scripted(fence, below, above, limits=False, super_first=super_first)
        fence.scripts = closer.scripts
    if opener.text == "(" and closer.text == ")":
        fence.arguments = items
    return fence


def _elements(opener: Atom, inner: list[Atom]) -> list[Symbol]:
    """List the layout trees in a fence; a set's pattern and condition are one tree each, which no comma splits."""
    place = condition(inner) if opener.text == "{" else 0
    if not place:
        return [atom.symbol for atom in inner if atom.text is not WIDE]
    parts = (inner[:place], inner[place : place + 1], inner[place + 1 :])
    return [row for part in parts if (row := slt.row_of([atom.symbol for atom in part])) is not None]


def unread(row: list[Atom]) -> tuple[list[Atom], Node]:
    """Read a row that the grammar rejects: only fences are matched, and the operator tree is ``E!`` of the symbols."""
    if len(row) == 1 and row[0].role != Role.ROW:
        return row, Node("V!" + row[0].symbol.label)
    levels: list[list[Atom]] = [[]]
    for atom in row:
        opener = levels[-1][0].text if len(levels) > 1 else ""
        if atom.role == Role.OPEN:
            levels.append([atom])
        elif atom.role == Role.CLOSE and opener and atom.text in _PAIRS[opener]:
            levels[-2].append(_unread_fence(levels.pop(), atom))
        else:
            levels[-1].append(atom)
    parts = [atom for level in levels for atom in level]
    return parts, fragments([Node("O!fragments"), *map(_fragment, parts)])


def _unread_fence(inner: list[Atom], closer: Atom) -> Atom:
    """Make one atom of a matched fence in a row that is not read."""
    node = fragments([Node("O!fragments"), *map(_fragment, inner), Node("V!" + closer.symbol.label)])
    symbol = slt.row_of([*(atom.symbol for atom in inner), Symbol(closer.symbol.label)])
    below, above, super_first = closer.scripts
    fence = Atom(Role.FENCE, symbol or Symbol("W!"), node)
    if below is None and above is None:
        return fence
    return scripted(fence, below, above, limits=False, super_first=super_first)


def _fragment(atom: Atom) -> Node:
    """Make the node of a symbol in a row that is not read: a letter has an unknown role, ``-!x``."""
    if atom.role == Role.ATOM and not atom.symbol.kids and atom.node.label[:2] == "V!" and atom.text.isalpha():
        return Node("-!" + atom.text.lower())
    if atom.role in (Role.OPEN, Role.CLOSE, Role.PUNCTUATION, Role.BAR) and not atom.node.kids:
        return Node("V!" + atom.symbol.label)
    return atom.node


_ENDS = {"(": "O", "[": "C", ")": "O", "]": "C"}


def fence_node(opening: str, inner: list[Atom], closing: str) -> tuple[Node, list[Node]]:
    """Read a fence by its kind: its node, and its elements where a function may take them as arguments."""
    if inner[0].role == Role.MOD and len(inner) > 1:
        node = Node("F!pmod", [statement(inner[1:])])
        return node, [node]
    if opening == "{" and condition(inner):
        return _conditional_set(inner)
    if any(atom.text == ";" for atom in inner):
        node = listed([formula(part) for part in pieces(inner)])
        return node, [node]
    if opening == "{" and any(atom.role in RELATING for atom in inner):
        node = statement(inner)
        return Node("M!S-1", [node]), [node]
    parts = pieces(inner)
    if not all(parts):
        raise Unparsed
    items = [formula(part) for part in parts]
    return _by_kind(opening, items, closing), items if opening in _ARGUMENTS else []


_ARGUMENTS = frozenset("([{")


def condition(inner: list[Atom]) -> int:
    """Find the sign before the condition of a set; 0 where there is none."""
    for place, atom in enumerate(inner):
        if atom.role == Role.BETWEEN or (atom.role == Role.COLON and atom.text == ":"):
            return place
    return 0


def _conditional_set(inner: list[Atom]) -> tuple[Node, list[Node]]:
    """``{ pattern : condition }``."""
    place = condition(inner)
    if place == len(inner) - 1:
        raise Unparsed
    parts = [statement(inner[:place]), statement(inner[place + 1 :])]
    return Node("O!conditional-set", parts), [Node("F!:", list(parts))]


def _by_kind(opening: str, items: list[Node], closing: str) -> Node:
    """Make the node of a fence from its elements."""
    count, ends = len(items), opening + closing
    if opening in "([" and closing in ")]":
        if count == 1 and (ends == "()" or items[0].label == "O!matrix"):
            return items[0]
        if count == 2:
            return Node(f"O!interval({_ENDS[opening]}-{_ENDS[closing]})", items)
        if ends == "()":
            return Node(f"M!V-{count}", items)
        if ends == "[]":
            return Node("M!D-lsqb;&rsqb;", items) if count == 1 else listed(items)
        raise Unparsed
    if ends == "{}":
        return Node(f"M!S-{count}", items)
    if ends == "⟨⟩":
        return Node(f"M!L-{count}", items) if count > 1 else Node("M!D-⟩", items)
    if ends == "||" and items[0].label == "O!matrix":
        return Node("F!det", items)
    label = {"||": "F!abs", "‖‖": "O!norm", "||||": "O!norm", "⌊⌋": "F!floor", "⌈⌉": "F!ceiling"}.get(ends)
    if label is None:
        raise Unparsed
    return Node(label, [listed(items)])
