r"""Optional rules in place of those of :mod:`elements`: letters that are functions, derivations in lines.

Of a derivation the layout tree keeps the table, as for a matrix, and the operator tree the statements::

    n &= a+b \\            M!2x2 ──w── V!n ──e── = …            U!and ──0── U!eq(n, a+b)
      &= c                                                            └─0── U!eq(c)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from lxml import etree

from pyterrier_mathamr.formula import mathml
from pyterrier_mathamr.formula.opt import FUNCTION_LETTERS, Node
from pyterrier_mathamr.formula.slt import Symbol

from .atoms import Atom, Role
from .elements import RULES, Atoms, after_brace, cell, flat, identifier_of, present, read_row, table, table_of
from .source import ARRAY

_CONTINUING = frozenset({Role.RELATION, Role.ADD, Role.MUL, Role.COLON})
_MARGIN = "width: 50%"  # the style of the cells that math-core puts at both sides of a display


LineRules = Literal["first", "layout", "operators"]
"""How a derivation in lines is read: its first cell, its table, or its statements."""


@lru_cache
def rules(functions: bool, lines: LineRules) -> dict[str, mathml.Rule[Atom]]:
    """Make the table of rules."""
    changed: dict[str, mathml.Rule[Atom]] = {}
    if functions:
        changed["mi"] = _letter
    if lines == "layout":
        changed |= {"mtd": _layout_cell, "mtable": lambda element, atoms: table_of(element, present(atoms))}
    elif lines == "operators":
        changed |= {"mtd": _operator_cell, "mtable": _statements}
    return {**RULES, **mathml.table(changed)} if changed else RULES


def _letter(element: etree._Element, atoms: Atoms) -> Atom:
    """``mi``: as usual; a letter that usually names a function is marked."""
    atom = identifier_of(element, atoms)
    atom.applies = atom.node.label in FUNCTION_LETTERS
    return atom


def _layout_cell(element: etree._Element, atoms: Atoms) -> Atom | None:
    """``mtd``: its row; nothing for the margins of a display."""
    return None if element.get("style", "").startswith(_MARGIN) else cell(element, atoms)


def _operator_cell(element: etree._Element, atoms: Atoms) -> Atom | None:
    """``mtd``: in a derivation its symbols, unread, since a statement may continue in the next cell."""
    if element.get("style", "").startswith(_MARGIN):
        return None
    row = element.getparent()
    if row is None or not _is_derivation(row.getparent()):
        return cell(element, atoms)
    return Atom(Role.ROW, Symbol(""), Node(""), raw=present(atoms))


def _is_derivation(element: etree._Element | None) -> bool:
    """Whether a table holds a derivation in lines, as of ``align``."""
    return element is not None and element.get("displaystyle") == "true"


def _statements(element: etree._Element, atoms: Atoms) -> Atom:
    """``mtable``: a derivation is the sequence of its statements; after a brace these are cases without conditions."""
    if not _is_derivation(element):
        return table(element, atoms)
    rows = [row.raw for row in present(atoms)]
    lines = [_broken(rows)] if _is_broken(rows) else _joined_lines(rows)
    nodes = [read_row(line).node for line in lines] or [Node("W!")]
    if after_brace(element):
        cases = [Node("M!R!", [node, Node("W!")]) for node in nodes]
        return Atom(Role.ATOM, Symbol(""), Node(f"M!M-{len(cases)}x2", cases), "table")
    sequence = nodes[-1]
    for node in reversed(nodes[:-1]):
        sequence = Node("O!form-seq", [node, sequence])
    return Atom(Role.ATOM, Symbol(""), sequence)


def _is_broken(rows: list[list[Atom]]) -> bool:
    """Whether the lines are those of a ``multline``: one formula, broken anywhere."""
    return bool(rows and rows[0] and rows[0][0].raw) and rows[0][0].raw[0].text == ARRAY


def _broken(rows: list[list[Atom]]) -> list[Atom]:
    """Join all lines of a ``multline``, without its mark."""
    return [atom for row in rows for part in row for atom in flat(part.raw) if atom.text != ARRAY]


def _joined_lines(rows: list[list[Atom]]) -> list[list[Atom]]:
    """Join the aligned cells of each line, and lines with those that they continue."""
    lines: list[list[Atom]] = []
    places: dict[int, int] = {}  # of a column: the position of its last statement in ``lines``
    for row in rows:
        for column, cells in _aligned(row):
            line = [atom for part in cells for atom in part]
            while line and line[-1].role == Role.PUNCTUATION:  # it ends the line, not the statement
                line.pop()
            if all(atom.role == Role.TEXT for atom in line):
                continue
            indented = len(cells) > 1 and not cells[0]
            if column in places and _goes_on(lines[places[column]], line, indented):
                lines[places[column]] += line
            else:
                places[column] = len(lines)
                lines.append(line)
    return lines


def _aligned(row: list[Atom]) -> Iterator[tuple[int, list[list[Atom]]]]:
    """Group the cells of a line by two, or three where the sign has its own cell; yield the first column of each."""
    cells = [flat(part.raw) for part in row]
    begin = 0
    while begin < len(cells):
        sign = cells[begin + 1] if begin + 1 < len(cells) else []
        end = begin + (3 if len(sign) == 1 and sign[0].role in _CONTINUING else 2)
        yield begin, cells[begin:end]
        begin = end


def _goes_on(before: list[Atom], line: list[Atom], indented: bool) -> bool:
    """Whether a line continues the one before: with a sign between them, ``= c``, or ``+ c`` below an ``&``."""
    first, last = line[0].role, before[-1].role
    return first == Role.RELATION or last in _CONTINUING or (indented and first in _CONTINUING)
