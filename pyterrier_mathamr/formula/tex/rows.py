"""Rows of atoms: fences are matched, the grammar reads the content, and the layout tree is linked.

A row that the grammar rejects stays flat, as in LaTeXML: no groups in the layout tree, and an operator tree ``E!`` of
fragments.
"""

from __future__ import annotations

from pyterrier_mathamr.formula.opt.nodes import Node
from pyterrier_mathamr.formula.slt import symbols as slt
from pyterrier_mathamr.formula.slt.symbols import Symbol

from .atoms import BLANK, Atom, operator, scripted, with_prescripts
from .factors import DIFFERENTIAL, UPRIGHT_DIFFERENTIAL, Unparsed
from .fences import matched, unread
from .grammar import statement
from .symbols import WIDE, Role

_MERGED = {
    (":", "="): ":=", ("!", "!"): "!!", ("|", "|"): "||", ("′", "′"): "′′", ("′′", "′"): "′′′",
    (">", "="): "≥", ("<", "="): "≤", (">", ">"): "≫", ("<", "<"): "≪",
}  # fmt: skip
_DOTS = {".": "…", "·": "⋯", "⋅": "⋯"}


def unit(atom: Atom) -> Atom:
    """Read the content of a script, a fraction or a cell as a row; an operand is returned unchanged."""
    if atom.role == Role.ATOM:
        return atom
    return read_row(atom.raw if atom.role in (Role.ROW, Role.BLANK) else [atom])


def read_row(atoms: list[Atom]) -> Atom:
    """Read a row: its layout tree and its operator tree, as one operand."""
    row = flat(atoms)
    if not row:
        return Atom(Role.ATOM, Symbol("W!"), Node("W!"))
    if len(row) == 1 and row[0].role == Role.ATOM:
        return row[0]
    end = len(row)  # punctuation at the end of a sentence has no meaning
    while end > 1 and row[end - 1].role == Role.PUNCTUATION:
        end -= 1
    try:
        parts = matched(row[:end])
        node = _marks(parts) or statement(parts)
        parts += row[end:]
    except Unparsed:
        for atom in row:
            atom.loose()
        parts, node = unread(row)
    else:
        for atom in row:
            if atom.text in (DIFFERENTIAL, UPRIGHT_DIFFERENTIAL):
                atom.symbol.label = atom.text[0]
    symbol = slt.row_of([atom.symbol for atom in parts if atom.text is not WIDE])
    return Atom(Role.ATOM, symbol or Symbol("W!"), node, raw=row)


def _marks(atoms: list[Atom]) -> Node | None:
    """Read primes before something else in a superscript: in ``f'^2`` it is a list of both."""
    if len(atoms) > 1 and atoms[0].text[:1] == "′":
        return Node("M!L-2", [atoms[0].node, statement(atoms[1:])])
    return None


def flat(atoms: list[Atom]) -> list[Atom]:
    """Splice groups into the row, drop blanks, and join symbols that belong together."""
    row: list[Atom] = []
    stack = [iter(atoms)]
    while stack:
        atom = next(stack[-1], None)
        if atom is None:
            stack.pop()
        elif atom.role == Role.ROW:
            stack.append(iter(atom.raw))
        elif atom is not BLANK and not (row and _joined(row, atom)):
            row.append(atom)
    return _without_idle_spaces(row)


def _joined(row: list[Atom], atom: Atom) -> bool:
    """Join a symbol to the one before it (``:=``, dots, ``.5``, scripts before their base), if they belong together."""
    before = row[-1]
    if before.text == "{}" and atom.role == Role.ATOM and atom.text != "{}":
        row[-1] = with_prescripts(before, atom)
        return True
    if before.symbol.kids:
        return False
    if before.text == "." and atom.symbol.label[:2] == "N!":
        _with_point(atom)
        row[-1] = atom
        return True
    if before.text == atom.text == "|" and atom.symbol.kids:
        below, above, super_first = atom.scripts
        row[-1] = scripted(operator("||"), below, above, limits=False, super_first=super_first)
        row[-1].role, row[-1].text, row[-1].scripts = Role.BAR, "||", atom.scripts
        return True
    if atom.symbol.kids:
        return False
    if (before.text, atom.text) in _MERGED:
        row[-1] = operator(_MERGED[before.text, atom.text])
        return True
    if atom.text in _DOTS and len(row) > 1 and row[-2].text == before.text == atom.text:
        dots = _DOTS[atom.text]
        row[-2:] = [Atom(Role.ATOM, Symbol("V!" + dots), Node("V!" + dots), dots)]
        return True
    return False


def _with_point(number: Atom) -> None:
    """Add a decimal point before a number, below its scripts."""
    number.symbol.label = "N!." + number.symbol.label[2:]
    base = number.node
    while base.kids:
        base = base.kids[0]
    base.label = "N!." + base.label[2:]


def _without_idle_spaces(row: list[Atom]) -> list[Atom]:
    """Keep a wide space only where it acts as a comma: not at an end, and not next to a comma or a text."""
    if all(atom.text is not WIDE for atom in row):
        return row
    kept: list[Atom] = []
    for place, atom in enumerate(row):
        if atom.text is WIDE:
            after = row[place + 1] if place + 1 < len(row) else None
            modulus = place + 2 < len(row) and row[place + 2].role == Role.MOD
            if not kept or after is None or modulus or _IDLE & {kept[-1].role, after.role}:
                continue
        kept.append(atom)
    return kept


_IDLE = {Role.PUNCTUATION, Role.TEXT, Role.MOD}
