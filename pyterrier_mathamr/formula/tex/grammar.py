"""From the symbols of a row to an operator tree: fences are matched, then a grammar of operator precedence reads it.

From loosest to tightest: sequences of statements and lists, colon, relations, sums, products, big operators, functions.

Each fence is matched with its partner and becomes one atom by its meaning, such as interval or norm. A bar opens a
fence, closes one, or separates two operands.
"""

from __future__ import annotations

from pyterrier_mathamr.formula import slt
from pyterrier_mathamr.formula.opt import Node, application, applied, fragments, is_application
from pyterrier_mathamr.formula.slt import Symbol

from .atoms import OPERATORS, WIDE, Atom, Role, scripted, with_scripts

DIFFERENTIAL, UPRIGHT_DIFFERENTIAL = "𝑑", "d·"
"""Texts of a ``d`` that the grammar read as a differential."""

ANGLES = "M!L⟩-"
"""The label of what is between angles, before its number of parts: a list, or an operator of its own."""

SENTENCE_ENDS = frozenset({".", WIDE})
"""Texts that separate sentences in a formula."""

RELATING = frozenset({Role.RELATION, Role.COLON})

_INTEGRALS = frozenset("∫∬∭⨌∮")
_VALUE = "()"  # text of a function with its argument
_TURNED = {"O!superset-of": "O!subset", "O!superset-of-or-equals": "O!subset"}  # with the operands swapped
_FACTORS = frozenset({Role.ATOM, Role.FENCE, Role.TEXT, Role.FUNCTION, Role.POSTFIX})
_PLAIN = _FACTORS | {Role.BIG, Role.MUL, Role.ADD}
_PAIRS = {"(": ")]", "[": "])", "{": "}", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩", "": ""}
_OPERANDS = frozenset({Role.ATOM, Role.FENCE, Role.TEXT, Role.POSTFIX, Role.CLOSE})
_FENCING = frozenset({Role.OPEN, Role.CLOSE, Role.BAR})
_ENDS = {"(": "O", "[": "C", ")": "O", "]": "C"}
_ARGUMENTS = frozenset("([{")


class Unparsed(Exception):  # noqa: N818 - no error for users: the row is kept as fragments
    """The grammar does not accept this row."""


def product(atoms: list[Atom]) -> Node:
    """``factor (sign? factor)*``, left to right; a big operator applies to all factors to its right."""
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
    operands: list[Atom] = []
    for place, atom in enumerate(atoms):
        if atom.role == Role.FUNCTION and (place + 1 == len(atoms) or not atoms[place + 1].items):
            return operands + atoms[place:]  # the rest is the function's argument
        before = operands[-1] if operands else None
        base = atom.node
        while base.label in ("O!SUB", "O!SUP"):
            base = base.kids[0]
        is_variable = atom.role == Role.ATOM and base.label[:2] == "V!"
        if is_variable and before is not None and before.text == "d" and not before.symbol.kids:
            before.text = DIFFERENTIAL if before.node.label == "V!𝑑" else UPRIGHT_DIFFERENTIAL
            operands[-1] = Atom(Role.ATOM, Symbol(""), Node("O!differential-d", [atom.node]))
            continue
        operands.append(atom)
    return operands


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
        numbers = atom.node.label == "O!divide" and all(part.label[:2] == "N!" for part in (node, *atom.node.kids))
        if sign is None and last == "" and atom.role == Role.ATOM and numbers:  # a mixed number: 1\frac{2}{3}
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


def _with_functions(atoms: list[Atom]) -> list[Atom]:
    """Replace each function and its argument, and each operand and its factorial, by one atom."""
    done: list[Atom] = []
    for atom in atoms:
        if (
            done
            and done[-1].applies
            and atom.arguments
            and is_application([made.node for made in done[-3:]], atom.arguments)
        ):
            value = application(done[-1].node, atom.arguments)
            below, above, super_first = atom.scripts  # which belong to the value: f(x)^2
            done[-1] = Atom(Role.ATOM, Symbol(""), with_scripts(value, below, above, super_first), _VALUE)
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


def _argument_end(atoms: list[Atom], place: int) -> int:
    """Find where the argument of a function ends: one fence, or the factors up to the next function.

    Parentheses after a bare letter end it: ``sin n(x)`` is ``(sin n)(x)``.
    """
    end = place + 1
    if end < len(atoms) and atoms[end].role == Role.FENCE and atoms[end].items:
        return end + 1
    while end < len(atoms):
        atom, before = atoms[end], atoms[end - 1].symbol
        if atom.role == Role.MUL and atom.text == "/" and end > place + 1 and end + 1 < len(atoms):
            end += 1
        elif atom.role not in _FACTORS:
            break
        elif end > place + 1:
            is_argument = atom.role == Role.FENCE and atom.items and not before.kids and before.label
            if atom.text == _VALUE or atoms[place].text == "∇" or is_argument:
                break
        end += 1
    return end


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
    related = []  # statements: with a relation, or a remark in parentheses that has one
    for i, part in enumerate(parts):
        remark = part[0].raw if len(part) == 1 and part[0].role == Role.FENCE and part[0].text == "(" else part
        if any(atom.role in RELATING for atom in remark):
            related.append(i)
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
    sign = atoms[signs[0]].node
    turned = _TURNED.get(sign.label)
    first = Node(turned, [operands[1], operands[0]]) if turned else applied([sign, operands[0], operands[1]])
    if len(signs) == 1:
        return first
    rest = [applied([atoms[sign].node, operand]) for sign, operand in zip(signs[1:], operands[2:], strict=True)]
    return Node("U!and", [first, *rest])


def conditional(atoms: list[Atom]) -> Node:
    """``expression ('|' expression)*``."""
    if len(atoms) == 1:
        return atoms[0].node
    place = next((i for i, atom in enumerate(atoms) if atom.role == Role.BETWEEN), -1)
    if place < 0:
        return modular(atoms)
    if atoms[place].text == "|":  # it separates the term before it from all after it
        start = next((i + 1 for i in range(place - 1, -1, -1) if atoms[i].role == Role.ADD), 0)
        before, after = expression(atoms[start:place]), atoms[place + 1 :]
        if any(atom.role == Role.BETWEEN for atom in after):  # a second bar
            raise Unparsed
        node = applied([atoms[place].node, before, modular(after)])
        return expression([*atoms[:start], Atom(Role.ATOM, atoms[place].symbol, node)])
    node = modular(atoms[:place])
    places = [i for i, atom in enumerate(atoms) if atom.role == Role.BETWEEN]
    for place, end in zip(places, [*places[1:], len(atoms)], strict=True):
        node = applied([atoms[place].node, node, modular(atoms[place + 1 : end])])
    return node


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
    place = condition(inner) if opener.text == "{" else 0
    if place:  # a set's pattern and condition are one tree each, which no comma splits
        parts = (inner[:place], inner[place : place + 1], inner[place + 1 :])
        symbols = [row for part in parts if (row := slt.row_of([atom.symbol for atom in part])) is not None]
    else:
        symbols = [atom.symbol for atom in inner if atom.text is not WIDE]
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
            inner, last = levels.pop(), atom.symbol.label
            node = fragments([Node("O!fragments"), *map(_fragment, inner), Node("V!" + last)])
            symbol = slt.row_of([*(part.symbol for part in inner), Symbol(last)])
            fence = Atom(Role.FENCE, symbol or Symbol("W!"), node)
            below, above, super_first = atom.scripts
            if below is not None or above is not None:
                fence = scripted(fence, below, above, limits=False, super_first=super_first)
            levels[-1].append(fence)
        else:
            levels[-1].append(atom)
    parts = [atom for level in levels for atom in level]
    return parts, fragments([Node("O!fragments"), *map(_fragment, parts)])


def _fragment(atom: Atom) -> Node:
    """Make the node of a symbol in a row that is not read: a letter has an unknown role, ``-!x``."""
    if atom.role == Role.ATOM and not atom.symbol.kids and atom.node.label[:2] == "V!" and atom.text.isalpha():
        return Node("-!" + atom.text.lower())
    if atom.role in (Role.OPEN, Role.CLOSE, Role.PUNCTUATION, Role.BAR) and not atom.node.kids:
        return Node("V!" + atom.symbol.label)
    return atom.node


def fence_node(opening: str, inner: list[Atom], closing: str) -> tuple[Node, list[Node]]:
    """Read a fence by its kind: its node, and its elements where a function may take them as arguments."""
    if inner[0].role == Role.MOD and len(inner) > 1:
        node = Node("F!pmod", [statement(inner[1:])])
        return node, [node]
    if opening == "{" and (place := condition(inner)):
        if place == len(inner) - 1:
            raise Unparsed
        sides = [statement(inner[:place]), statement(inner[place + 1 :])]
        return Node("O!conditional-set", sides), [Node("F!:", list(sides))]
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


def condition(inner: list[Atom]) -> int:
    """Find the sign before the condition of a set; 0 if there is none."""
    for place, atom in enumerate(inner):
        if atom.role == Role.BETWEEN or (atom.role == Role.COLON and atom.text == ":"):
            return place
    return 0


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
        return Node(f"{ANGLES}{count}", items) if count > 1 else Node("M!D-⟩", items)
    if ends == "||" and items[0].label == "O!matrix":
        return Node("F!det", items)
    label = {"||": "F!abs", "‖‖": "O!norm", "||||": "O!norm", "⌊⌋": "F!floor", "⌈⌉": "F!ceiling"}.get(ends)
    if label is None:
        raise Unparsed
    return Node(label, [listed(items)])
