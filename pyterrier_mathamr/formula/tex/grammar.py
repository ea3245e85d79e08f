"""The grammar of a row: from its symbols to an operator tree, by operator precedence.

From loosest to tightest: sequences of statements and lists, colon, relations, sums, products, big operators, functions.
"""

from __future__ import annotations

from .atoms import Atom
from .symbols import Role
from ..opt import Node, applied
from ..slt_symbol import Symbol

_INTEGRALS = frozenset("∫∬∭⨌∮")


class Unparsed(Exception):  # noqa: N818 - no error for users: the row is kept as fragments
    """The grammar does not read this row."""


def pieces(atoms: list[Atom], role: Role) -> list[list[Atom]]:
    """Split a row at the atoms of a role."""
    parts: list[list[Atom]] = [[]]
    for atom in atoms:
        if atom.role is role:
            parts.append([])
        else:
            parts[-1].append(atom)
    return parts


def statement(atoms: list[Atom]) -> Node:
    """``formula (',' formula)*``: a list, a relation between lists, or a sequence of statements."""
    parts = pieces(atoms, Role.PUNCTUATION)
    if len(parts) == 1:
        return formula(atoms)
    if any(not part for part in parts):
        raise Unparsed
    related = [i for i, part in enumerate(parts) if _relates(part)]
    if not related:
        return Node(f"M!L-{len(parts)}", [formula(part) for part in parts])
    node: Node | None = None
    for place in reversed(range(len(related))):  # what has no relation belongs to the side of a relation that it is nearest to
        begin = 0 if place == 0 else related[place]
        end = related[place + 1] if place + 1 < len(related) else len(parts)
        before = [formula(part) for part in parts[begin : related[place]]]
        after = [formula(part) for part in parts[related[place] + 1 : end]]
        single = formula(parts[related[place]], before, after)
        node = single if node is None else Node("O!form-seq", [single, node])
    return node or Node("W!")


def _relates(part: list[Atom]) -> bool:
    """Whether a part of a sequence is a statement: it has a relation, or is a remark in parentheses that has."""
    if len(part) == 1 and part[0].role is Role.FENCE and part[0].text == "(":
        part = part[0].raw
    return any(atom.role in _RELATING for atom in part)


_RELATING = frozenset({Role.RELATION, Role.COLON})


def listed(nodes: list[Node]) -> Node:
    """Make a list of several nodes; one stands for itself."""
    return nodes[0] if len(nodes) == 1 else Node(f"M!L-{len(nodes)}", nodes)


def formula(atoms: list[Atom], before: list[Node] | None = None, after: list[Node] | None = None) -> Node:
    """``relation (':' relation)*``, left to right."""
    if len(atoms) == 1:
        return listed([*(before or []), atoms[0].node, *(after or [])])
    colons = [i for i, atom in enumerate(atoms) if atom.role is Role.COLON]
    if not colons:
        return relation(atoms, before or [], after or [])
    start, node, sign = 0, None, None
    for end in [*colons, len(atoms)]:
        part = atoms[start:end]
        lead = (before or []) if start == 0 else []
        trail = (after or []) if end == len(atoms) else []
        side = relation(part, lead, trail) if part else listed([*lead, *trail] or [Node("W!")])
        node = side if sign is None or node is None else applied([sign.node, node, side])
        sign, start = atoms[end] if end < len(atoms) else None, end + 1
    return node or Node("W!")


def relation(atoms: list[Atom], before: list[Node], after: list[Node]) -> Node:
    """``expression (relation expression)*``; a chain is an ``U!and`` whose later relations lack the shared operand."""
    signs = [i for i, atom in enumerate(atoms) if atom.role is Role.RELATION]
    if not signs:
        return listed([*before, conditional(atoms), *after])
    if len(atoms) == 1 and not before and not after:
        return atoms[0].node
    sides = []
    start = 0
    for end in [*signs, len(atoms)]:
        part = atoms[start:end]
        if not part and 0 < start and end < len(atoms):
            raise Unparsed
        sides.append([conditional(part)] if part else [])
        start = end + 1
    sides[0] = [*before, *sides[0]]
    sides[-1] = [*sides[-1], *after]
    operands = [listed(side or [Node("W!")]) for side in sides]
    first = _related(atoms[signs[0]], operands[0], operands[1])
    if len(signs) == 1:
        return first
    rest = [applied([atoms[sign].node, operand]) for sign, operand in zip(signs[1:], operands[2:], strict=True)]
    return Node("U!and", [first, *rest])


def _related(sign: Atom, left: Node, right: Node) -> Node:
    """Relate two operands; a superset is a subset the other way round."""
    if sign.node.label in _TURNED:
        return Node(_TURNED[sign.node.label], [right, left])
    return applied([sign.node, left, right])


_TURNED = {"O!superset-of": "O!subset", "O!superset-of-or-equals": "O!subset"}


def conditional(atoms: list[Atom]) -> Node:
    """``expression ('|' expression)*``."""
    if len(atoms) == 1:
        return atoms[0].node
    places = [i for i, atom in enumerate(atoms) if atom.role is Role.BETWEEN]
    if not places:
        return modular(atoms)
    node = modular(atoms[: places[0]])
    for place, end in zip(places, [*places[1:], len(atoms)], strict=True):
        node = applied([atoms[place].node, node, modular(atoms[place + 1 : end])])
    return node


def modular(atoms: list[Atom]) -> Node:
    """``expression ('mod' expression | '(mod n)')*``."""
    places = [i for i, atom in enumerate(atoms) if atom.role is Role.MOD]
    if not places:
        return expression(atoms)
    node = expression(atoms[: places[0]])
    for place, end in zip(places, [*places[1:], len(atoms)], strict=True):
        sign, rest = atoms[place], atoms[place + 1 : end]
        if sign.node.label == "O!rem":
            node = applied([sign.node, node, expression(rest)])
        else:
            node = Node("O!annotated", [node, sign.node])
            node = applied([Node("U!times"), node, expression(rest)]) if rest else node
    return node


def expression(atoms: list[Atom]) -> Node:
    """``sign? term (sign term)*``: equal signs make one node, others nest to the left."""
    if not atoms:
        raise Unparsed
    if len(atoms) == 1:
        return atoms[0].node
    terms: list[tuple[list[Atom], list[Atom]]] = [([], [])]
    for atom in atoms:
        signs, term = terms[-1]
        if atom.role is not Role.ADD:
            term.append(atom)
        elif term:
            terms.append(([atom], []))
        else:
            signs.append(atom)
    node: Node | None = None
    last = ""
    for signs, term in terms:
        if not term:
            raise Unparsed
        side = product(term)
        unary = signs if node is None else signs[1:]
        for sign in reversed(unary):
            side = applied([sign.node, side])
        if node is None:
            node = side
            continue
        label = signs[0].node.label
        if label == last and not signs[0].node.kids:
            node.kids.append(side)
        else:
            node = applied([signs[0].node, node, side])
            last = label
    return node or Node("W!")


def product(atoms: list[Atom]) -> Node:
    """``factor (sign? factor)*``, left to right; a big operator takes what is to its right."""
    for place in range(len(atoms) - 1, -1, -1):
        if atoms[place].role is Role.BIG:
            big, rest = atoms[place], atoms[place + 1 :]
            if rest:
                rest = _differentials(rest) if big.text in _INTEGRALS else rest
                node = applied([big.node, _factors(rest)])
            else:
                node = big.node
            atoms = [*atoms[:place], Atom(Role.ATOM, big.symbol, node)]
    return _factors(atoms)


def _differentials(atoms: list[Atom]) -> list[Atom]:
    """Read ``d`` and the variable after it, below an integral, as a differential."""
    found: list[Atom] = []
    for atom in atoms:
        before = found[-1] if found else None
        if before is not None and before.text == "d" and before.role is Role.ATOM and not before.symbol.kids:
            if atom.role is Role.ATOM and _begins_with_letter(atom.node):
                before.text = "𝑑" if before.node.label == "V!𝑑" else "d·"
                found[-1] = Atom(Role.ATOM, Symbol(""), Node("O!differential-d", [atom.node]))
                continue
        found.append(atom)
    return found


def _begins_with_letter(node: Node) -> bool:
    """Whether an operand is a variable, with or without scripts."""
    while node.label in ("O!SUB", "O!SUP"):
        node = node.kids[0]
    return node.label[:2] == "V!"


def _factors(atoms: list[Atom]) -> Node:
    """Apply functions, then multiply from left to right."""
    factors = _with_functions(atoms)
    if len(factors) == 1:
        return factors[0].node
    node: Node | None = None
    sign: Atom | None = None
    last = ""
    for atom in factors:
        if atom.role is Role.MUL:
            if sign is not None:
                raise Unparsed
            node, sign = node or Node("W!"), atom
            continue
        if atom.role not in _FACTORS:
            raise Unparsed
        if node is None:
            node = atom.node
            continue
        if sign is None and last == "" and _mixed(node, atom.node):
            node, last = Node("U!plus", [node, atom.node]), "mixed"
            continue
        label = "implicit" if sign is None else sign.text
        if label == last:
            node.kids.append(atom.node)
        else:
            node = applied([sign.node if sign is not None else Node("U!times"), node, atom.node])
            last = label
        sign = None
    if sign is not None:
        raise Unparsed
    return node or Node("W!")


def _mixed(whole: Node, part: Node) -> bool:
    """Whether a number and a fraction of numbers stand for their sum: ``1\\frac{2}{3}``."""
    numbers = (whole, *part.kids)
    return part.label == "O!divide" and all(node.label[:2] == "N!" for node in numbers)


_FACTORS = frozenset({Role.ATOM, Role.FENCE, Role.TEXT, Role.FUNCTION, Role.POSTFIX})


def _with_functions(atoms: list[Atom]) -> list[Atom]:
    """Replace each function and its argument, and each operand and its factorial, by one atom."""
    done: list[Atom] = []
    for atom in atoms:
        if atom.role is Role.POSTFIX and done and done[-1].role in (Role.ATOM, Role.FENCE):
            done[-1] = Atom(Role.ATOM, Symbol(""), applied([atom.node, done[-1].node]))
        else:
            done.append(atom)
    for place in range(len(done) - 1, -1, -1):
        if done[place].role is Role.FUNCTION:
            end = _argument_end(done, place)
            argument = done[place + 1 : end]
            if not argument:
                continue
            first = argument[0]
            items = first.items if len(argument) == 1 and first.role is Role.FENCE and first.items else [_factors(argument)]
            done[place:end] = [Atom(Role.ATOM, Symbol(""), applied([done[place].node, *items]), _VALUE)]
    return done


_VALUE = "()"


def _argument_end(atoms: list[Atom], place: int) -> int:
    """Find where the argument of a function ends: one fence, or the factors up to the next function."""
    end = place + 1
    if end < len(atoms) and atoms[end].role is Role.FENCE and atoms[end].items:
        return end + 1
    while end < len(atoms):
        atom = atoms[end]
        quotient = atom.role is Role.MUL and atom.text == "/" and end > place + 1 and end + 1 < len(atoms)
        if quotient:
            end += 1
        elif atom.role not in _FACTORS or (end > place + 1 and (atom.text == _VALUE or _stops(atoms, place, end))):
            break
        end += 1
    return end


def _stops(atoms: list[Atom], place: int, end: int) -> bool:
    """Whether parentheses after a bare letter are no part of a function's argument: ``sin n(x)`` is ``(sin n)(x)``."""
    if atoms[place].text == "∇":
        return True
    before = atoms[end - 1]
    return atoms[end].role is Role.FENCE and bool(atoms[end].items) and not before.symbol.kids and bool(before.symbol.label)


_ENDS = {"(": "O", "[": "C", ")": "O", "]": "C"}


def fence_node(opening: str, inner: list[Atom], closing: str) -> tuple[Node, list[Node]]:
    """Read a fence by its kind: the node it is, and its elements where a function takes them as arguments."""
    if inner[0].role is Role.MOD and len(inner) > 1:
        node = Node("F!pmod", [statement(inner[1:])])
        return node, [node]
    if opening == "{" and condition(inner):
        return _conditional_set(inner)
    if any(atom.text == ";" for atom in inner):
        node = listed([formula(part) for part in pieces(inner, Role.PUNCTUATION)])
        return node, [node]
    if opening == "{" and any(atom.role in _RELATING for atom in inner):
        node = statement(inner)
        return Node("M!S-1", [node]), [node]
    parts = pieces(inner, Role.PUNCTUATION)
    if any(not part for part in parts):
        raise Unparsed
    items = [formula(part) for part in parts]
    return _by_kind(opening, items, closing), items if opening in _ARGUMENTS else []


_ARGUMENTS = frozenset("([{")


def condition(inner: list[Atom]) -> int:
    """Find the sign before the condition of a set; 0 for none."""
    for place, atom in enumerate(inner):
        if atom.role is Role.BETWEEN or (atom.role is Role.COLON and atom.text == ":"):
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
    count, pair = len(items), opening + closing
    if opening in "([" and closing in ")]":
        if count == 1 and (pair == "()" or items[0].label == "O!matrix"):
            return items[0]
        if count == 2:
            return Node(f"O!interval({_ENDS[opening]}-{_ENDS[closing]})", items)
        if pair == "()":
            return Node(f"M!V-{count}", items)
        if pair == "[]":
            return Node("M!D-lsqb;&rsqb;", items) if count == 1 else listed(items)
        raise Unparsed
    if pair == "{}":
        return Node(f"M!S-{count}", items)
    if pair == "⟨⟩":
        return Node(f"M!L-{count}", items) if count > 1 else Node("O!expectation", items)
    if pair == "||" and items[0].label == "O!matrix":
        return Node("F!det", items)
    label = {"||": "F!abs", "‖‖": "O!norm", "||||": "O!norm", "⌊⌋": "F!floor", "⌈⌉": "F!ceiling"}.get(pair)
    if label is None:
        raise Unparsed
    return Node(label, [listed(items)])
