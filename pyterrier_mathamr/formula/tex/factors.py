"""Products: factors, functions with their arguments, big operators with the terms to their right."""

from __future__ import annotations

from pyterrier_mathamr.formula.opt.applications import application, takes
from pyterrier_mathamr.formula.opt.nodes import Node, applied
from pyterrier_mathamr.formula.slt.symbols import Symbol

from .atoms import Atom, with_scripts
from .symbols import Role

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
