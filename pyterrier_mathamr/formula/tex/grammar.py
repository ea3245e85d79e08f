"""The grammar of a row: from its symbols to an operator tree, by operator precedence.

From loosest to tightest: sequences of statements and lists, colon, relations, sums, products, big operators, functions.
"""

from __future__ import annotations

from pyterrier_mathamr.formula.opt import Node, application, applied, takes
from pyterrier_mathamr.formula.slt import Symbol

from .atoms import WIDE, Atom, Role, with_scripts

DIFFERENTIAL, UPRIGHT_DIFFERENTIAL = "𝑑", "d·"
"""Texts of a ``d`` that the grammar read as a differential."""

_INTEGRALS = frozenset("∫∬∭⨌∮")


class Unparsed(Exception):  # noqa: N818 - no error for users: the row is kept as fragments
    """The grammar does not accept this row."""


def product(atoms: list[Atom]) -> Node:
    """``factor (sign? factor)*``, left to right; a big operator takes all factors to its right."""
    if all(atom.role != Role.BIG for atom in atoms):
        return _factors(atoms)
    rest: list[Atom] = []  # to the right of the operator, reversed
    for atom in reversed(atoms):
        if atom.role == Role.BIG and rest:
            operands = rest[::-1]
            operands = _differentials(operands) if atom.text in _INTEGRALS else operands
            rest = [Atom(Role.ATOM, atom.symbol, applied([atom.node, _factors(operands)]))]
        else:
            rest.append(atom if atom.role != Role.BIG else Atom(Role.ATOM, atom.symbol, atom.node))
    return _factors(rest[::-1])


def _differentials(atoms: list[Atom]) -> list[Atom]:
    """Read ``d`` and the variable after it, below an integral, as a differential."""
    found: list[Atom] = []
    for place, atom in enumerate(atoms):
        if atom.role == Role.FUNCTION and (place + 1 == len(atoms) or not atoms[place + 1].items):
            return found + atoms[place:]  # what follows is the function's argument
        before = found[-1] if found else None
        is_variable = atom.role == Role.ATOM and _begins_with_letter(atom.node)
        if is_variable and before is not None and before.text == "d" and not before.symbol.kids:
            before.text = DIFFERENTIAL if before.node.label == "V!𝑑" else UPRIGHT_DIFFERENTIAL
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
        if atom.role == Role.MUL:
            if sign is not None:
                raise Unparsed
            node, sign = node or Node("W!"), atom
            continue
        if atom.role not in _FACTORS:
            raise Unparsed
        if node is None:
            node = atom.node
            continue
        if sign is None and last == "" and atom.role == Role.ATOM and _mixed(node, atom.node):
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
    r"""Whether a number and a fraction form a mixed number: ``1\frac{2}{3}``."""
    numbers = (whole, *part.kids)
    return part.label == "O!divide" and all(node.label[:2] == "N!" for node in numbers)


_FACTORS = frozenset({Role.ATOM, Role.FENCE, Role.TEXT, Role.FUNCTION, Role.POSTFIX})


def _with_functions(atoms: list[Atom]) -> list[Atom]:
    """Replace each function and its argument, and each operand and its factorial, by one atom."""
    done: list[Atom] = []
    for atom in atoms:
        if done and done[-1].applies and atom.arguments and takes([made.node for made in done[-3:]], atom.arguments):
            done[-1] = _applied_letter(done[-1], atom)
        elif atom.role == Role.POSTFIX and done and done[-1].role in (Role.ATOM, Role.FENCE):
            done[-1] = Atom(Role.ATOM, Symbol(""), applied([atom.node, done[-1].node]))
        else:
            done.append(atom)
    for place in range(len(done) - 1, -1, -1):
        if done[place].role == Role.FUNCTION:
            end = _argument_end(done, place)
            argument = done[place + 1 : end]
            if not argument:
                continue
            first = argument[0]
            items = (
                first.items if len(argument) == 1 and first.role == Role.FENCE and first.items else [_factors(argument)]
            )
            done[place:end] = [Atom(Role.ATOM, Symbol(""), applied([done[place].node, *items]), _VALUE)]
    return done


_VALUE = "()"


def _applied_letter(letter: Atom, fence: Atom) -> Atom:
    """Apply a letter to parentheses; scripts after them belong to the value: ``f(x)^2``."""
    value = application(letter.node, fence.arguments or [])
    below, above, super_first = fence.scripts
    return Atom(Role.ATOM, Symbol(""), with_scripts(value, below, above, super_first), _VALUE)


def _argument_end(atoms: list[Atom], place: int) -> int:
    """Find where the argument of a function ends: one fence, or the factors up to the next function."""
    end = place + 1
    if end < len(atoms) and atoms[end].role == Role.FENCE and atoms[end].items:
        return end + 1
    while end < len(atoms):
        atom = atoms[end]
        quotient = atom.role == Role.MUL and atom.text == "/" and end > place + 1 and end + 1 < len(atoms)
        if quotient:
            end += 1
        elif atom.role not in _FACTORS or (end > place + 1 and (atom.text == _VALUE or _stops(atoms, place, end))):
            break
        end += 1
    return end


def _stops(atoms: list[Atom], place: int, end: int) -> bool:
    """Whether parentheses after a bare letter end a function's argument: ``sin n(x)`` is ``(sin n)(x)``."""
    if atoms[place].text == "∇":
        return True
    before = atoms[end - 1]
    return (
        atoms[end].role == Role.FENCE
        and bool(atoms[end].items)
        and not before.symbol.kids
        and bool(before.symbol.label)
    )


SENTENCE_ENDS = frozenset({".", WIDE})
"""Texts of what separates sentences in a formula."""


def pieces(atoms: list[Atom], texts: frozenset[str] | None = None) -> list[list[Atom]]:
    """Split a row at its punctuation, or only at that with certain texts."""
    parts: list[list[Atom]] = [[]]
    for atom in atoms:
        if atom.role == Role.PUNCTUATION and (texts is None or atom.text in texts):
            parts.append([])
        else:
            parts[-1].append(atom)
    return parts


def statement(atoms: list[Atom]) -> Node:
    """``formula (',' formula)*``: a list, a relation between lists, or a sequence of statements."""
    if all(atom.role != Role.PUNCTUATION for atom in atoms):
        return formula(atoms)
    for place, atom in enumerate(atoms):
        if atom.text in SENTENCE_ENDS and atom.role == Role.PUNCTUATION:  # looser than a comma
            if place == 0 or place == len(atoms) - 1:
                raise Unparsed
            sentences = pieces(atoms, SENTENCE_ENDS)
            if not all(sentences):
                raise Unparsed
            node = statement(sentences[-1])
            for sentence in reversed(sentences[:-1]):
                node = Node("O!form-seq", [statement(sentence), node])
            return node
    parts = pieces(atoms)
    if not all(parts):
        raise Unparsed
    related = [i for i, part in enumerate(parts) if _relates(part)]
    if not related:
        return Node(f"M!L-{len(parts)}", [formula(part) for part in parts])
    sequence: Node | None = None
    # a part without a relation belongs to a side of the relation before it, or of the first one
    for place in reversed(range(len(related))):
        begin = 0 if place == 0 else related[place]
        end = related[place + 1] if place + 1 < len(related) else len(parts)
        before = [formula(part) for part in parts[begin : related[place]]]
        after = [formula(part) for part in parts[related[place] + 1 : end]]
        single = formula(parts[related[place]], before, after)
        sequence = single if sequence is None else Node("O!form-seq", [single, sequence])
    return sequence or Node("W!")


def _relates(part: list[Atom]) -> bool:
    """Whether a part of a sequence is a statement: it has a relation, or is a remark in parentheses that has."""
    if len(part) == 1 and part[0].role == Role.FENCE and part[0].text == "(":
        part = part[0].raw
    return any(atom.role in RELATING for atom in part)


RELATING = frozenset({Role.RELATION, Role.COLON})


def listed(nodes: list[Node]) -> Node:
    """Make a list of several nodes; a single node replaces it."""
    return nodes[0] if len(nodes) == 1 else Node(f"M!L-{len(nodes)}", nodes)


def formula(atoms: list[Atom], before: list[Node] | None = None, after: list[Node] | None = None) -> Node:
    """``relation (':' relation)*``, left to right."""
    if len(atoms) == 1:
        return listed([*(before or []), atoms[0].node, *(after or [])])
    roles = {atom.role for atom in atoms}
    if before is None and after is None and roles <= _PLAIN:
        return expression(atoms)
    colons = [i for i, atom in enumerate(atoms) if atom.role == Role.COLON]
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


_PLAIN = frozenset({Role.ATOM, Role.FENCE, Role.FUNCTION, Role.BIG, Role.POSTFIX, Role.MUL, Role.ADD, Role.TEXT})


def relation(atoms: list[Atom], before: list[Node], after: list[Node]) -> Node:
    """``expression (relation expression)*``; a chain is an ``U!and`` whose later relations lack the shared operand."""
    signs = [i for i, atom in enumerate(atoms) if atom.role == Role.RELATION]
    if not signs:
        return listed([*before, conditional(atoms), *after])
    if len(atoms) == 1 and not before and not after:
        return atoms[0].node
    sides = []
    start = 0
    for end in [*signs, len(atoms)]:
        part = atoms[start:end]
        if not part and start > 0 and end < len(atoms):
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
    """Relate two operands; a superset is a subset with the operands swapped."""
    if sign.node.label in _TURNED:
        return Node(_TURNED[sign.node.label], [right, left])
    return applied([sign.node, left, right])


_TURNED = {"O!superset-of": "O!subset", "O!superset-of-or-equals": "O!subset"}


def conditional(atoms: list[Atom]) -> Node:
    """``expression ('|' expression)*``."""
    if len(atoms) == 1:
        return atoms[0].node
    place = next((i for i, atom in enumerate(atoms) if atom.role == Role.BETWEEN), -1)
    if place < 0:
        return modular(atoms)
    if atoms[place].text == "|":  # it separates the term before it from all after it
        start = next((i + 1 for i in range(place - 1, -1, -1) if atoms[i].role == Role.ADD), 0)
        rest = atoms[place + 1 :]
        node = applied([atoms[place].node, expression(atoms[start:place]), _after_bar(rest)])
        return expression([*atoms[:start], Atom(Role.ATOM, atoms[place].symbol, node)])
    node = modular(atoms[:place])
    places = [i for i, atom in enumerate(atoms) if atom.role == Role.BETWEEN]
    for place, end in zip(places, [*places[1:], len(atoms)], strict=True):
        node = applied([atoms[place].node, node, modular(atoms[place + 1 : end])])
    return node


def _after_bar(atoms: list[Atom]) -> Node:
    """Read what follows a bar; a second bar in it is rejected."""
    if any(atom.role == Role.BETWEEN for atom in atoms):
        raise Unparsed
    return modular(atoms)


def modular(atoms: list[Atom]) -> Node:
    """``expression ('mod' expression | '(mod n)')*``."""
    places = [i for i, atom in enumerate(atoms) if atom.role == Role.MOD]
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
        if atom.role != Role.ADD:
            term.append(atom)
        elif term:
            terms.append(([atom], []))
        else:
            signs.append(atom)
    node: Node | None = None
    last = ""
    for signs, term in terms:
        if not term:  # a sign with nothing after it: from above, or from below
            if node is None or len(signs) > 1:
                raise Unparsed
            return Node("O!limit-from", [node, signs[0].node])
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
