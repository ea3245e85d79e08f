r"""MathML of ``math-core`` → atoms, one rule for each element as for layout trees; and rows of atoms.

In a row, fences are matched, the grammar reads the content, and the layout tree is linked. A row that the grammar
rejects stays flat, as in LaTeXML: no groups in the layout tree, and an operator tree ``E!`` of fragments.

Optional rules read letters as functions, and all of a derivation in lines. Of a derivation the layout tree keeps the
table, as for a matrix, and the operator tree the statements::

    n &= a+b \\            M!2x2 ──w── V!n ──e── = …            U!and ──0── U!eq(n, a+b)
      &= c                                                            └─0── U!eq(c)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from lxml import etree

from pyterrier_mathamr.formula import mathml, slt
from pyterrier_mathamr.formula.opt import FUNCTION_LETTERS, Node, applied
from pyterrier_mathamr.formula.slt import Symbol

from .atoms import (
    ACCENTS,
    BLANK,
    WIDE,
    WILDCARD,
    Atom,
    Role,
    identifier,
    number,
    operator,
    scripted,
    text,
    wildcard,
    with_prescripts,
)
from .grammar import DIFFERENTIAL, UPRIGHT_DIFFERENTIAL, Unparsed, matched, statement, unread
from .source import ARRAY, SUPER_FIRST

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


Atoms = list["Atom | None"]

_APPLY = "\u2061"


def present(atoms: Atoms) -> list[Atom]:
    """List the atoms of the children that have one."""
    return [atom for atom in atoms if atom is not None]


def identifier_of(element: etree._Element, _: Atoms) -> Atom:
    """``mi``: a letter, or a word with a meaning."""
    content = (element.text or "").strip()
    if content == "mod":
        return Atom(Role.MOD, Symbol("mod"), Node("O!rem"), "mod")
    if len(content) > 1 and 0x1D49C <= ord(content[0]) <= 0x1D537:  # each script or fraktur letter is a symbol
        return Atom(
            Role.ROW,
            Symbol(""),
            Node(""),
            raw=[identifier(letter) for letter in content if letter not in "\ufe00\ufe01"],
        )
    return identifier(content, upright=element.get("mathvariant") == "normal") if content else BLANK


def _operator(element: etree._Element, _: Atoms) -> Atom:
    """``mo``: an operator by its symbol; invisible ones leave nothing."""
    content = (element.text or "").strip()
    if not content or content in "\u2061\u2062\u2063\u2064":
        return BLANK
    if content in ("⋯", "…", "⋮", "⋱", "∞", "∅", "&"):
        return identifier(content)
    return operator(content)


def _all_text(element: etree._Element) -> str:
    """Join the texts of an element and of all elements in it."""
    return "".join(str(part) for part in element.itertext())


def _text(element: etree._Element, _: Atoms) -> Atom:
    r"""``mtext``: text, or the wildcard that :mod:`source` writes for ``\qvar``."""
    content = _all_text(element)
    return wildcard(content[1:]) if content.startswith(WILDCARD) else text(content)


def _space(element: etree._Element, _: Atoms) -> Atom:
    r"""``mspace``: invisible, or like a comma when it is as wide as a ``\quad``."""
    return Atom(Role.PUNCTUATION, Symbol(""), Node(""), WIDE) if element.get("width") in ("1em", "2em") else BLANK


def row(element: etree._Element, atoms: Atoms) -> Atom:
    """``mrow``: spliced into the row around it; a single symbol replaces it."""
    parts = [atom for atom in atoms if atom is not None and atom is not BLANK]
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2 and parts[0].text == "{" and parts[1].text == "table":
        return _cases(parts[0], parts[1])
    if parts and parts[0].role == Role.ATOM and any(child.text == _APPLY for child in element):
        parts[0].role = Role.FUNCTION
    return Atom(Role.ROW, Symbol(""), Node(""), raw=parts) if parts else BLANK


def _cases(brace: Atom, rows: Atom) -> Atom:
    """``cases``: a brace before a table; all cells are operands, in order."""
    matrix = rows.node.kids[0] if rows.node.label == "O!matrix" else rows.node
    slt.link(brace.symbol, rows.symbol)
    return Atom(Role.ATOM, brace.symbol, Node("O!cases", [node for row in matrix.kids for node in row.kids]))


def _error(element: etree._Element, _: Atoms) -> Atom:
    """``merror``: an unknown command; ``E!`` in the layout tree and its name in the operator tree."""
    return Atom(Role.ATOM, Symbol("E!"), Node("T!" + _all_text(element).strip()))


def _scripts(below: bool, above: bool, limits: bool) -> mathml.Rule[Atom]:
    """Make the rule of an element that attaches scripts."""

    def rule(element: etree._Element, atoms: Atoms) -> Atom:
        parts = present(atoms)
        if len(parts) != 1 + below + above:
            return row(element, atoms)
        base = parts[0]
        super_first = above and _marked(parts[-1], SUPER_FIRST)
        low = unit(parts[1]) if below else None
        high = unit(parts[-1]) if above else None
        if element.get("accent") == "true" or element.get("accentunder") == "true":
            return _accented(unit(base), high or low, under=below)
        if base.role in (Role.CLOSE, Role.BAR):
            made = scripted(base, low, high, limits=False, super_first=super_first)
            made.role, made.text, made.scripts = base.role, base.text, (low, high, super_first)
            bare = operator(base.text)
            made.node = bare.node if base.role == Role.CLOSE else made.node
            return made
        if base.role == Role.ROW:
            base = read_row(base.raw)
        elif base is BLANK:
            base = Atom(Role.ATOM, Symbol("W!"), Node("W!"))
            base.text = "{}"
            made = scripted(base, low, high, limits=limits, super_first=super_first)
            made.scripts = (low, high, super_first)
            floating = [Node(part.node.label, part.node.kids) for part in (high, low) if part is not None]
            made.node = applied(floating)  # until a base is found
            return made
        return scripted(base, low, high, limits=limits, super_first=super_first)

    return rule


def _marked(atom: Atom, mark: str) -> bool:
    """Remove the mark of :mod:`source` at the beginning of a row; return whether there was one."""
    row = atom.raw if atom.role == Role.ROW else []
    found = bool(row) and row[0].text == mark
    if found:
        del row[0]
    return found


def _accented(base: Atom, accent: Atom | None, *, under: bool) -> Atom:
    """``mover accent``: the accent is a function of its base."""
    name = accent.text if accent is not None else ""
    name = ACCENTS.get(name, name)
    made = scripted(
        base,
        Atom(Role.ATOM, Symbol(name), Node("")) if under else None,
        None if under else Atom(Role.ATOM, Symbol(name), Node("")),
        limits=True,
    )
    made.node = Node("F!" + name, [base.node])
    made.role = Role.ATOM
    return made


def _fraction(element: etree._Element, atoms: Atoms) -> Atom:
    """``mfrac``: a quotient, or the content of a binomial."""
    parts = present(atoms)
    if len(parts) != 2:
        return row(element, atoms)
    over, under = unit(parts[0]), unit(parts[1])
    label = "O!binomial" if element.get("linethickness") == "0" else "O!divide"
    return Atom(Role.ATOM, slt.node("O!divide", o=over.symbol, u=under.symbol), Node(label, [over.node, under.node]))


def _square_root(_: etree._Element, atoms: Atoms) -> Atom:
    """``msqrt``: a root; its degree 2 is in the operator tree only."""
    inner = read_row(present(atoms))
    return Atom(Role.ATOM, slt.node("O!root", w=inner.symbol), applied([Node("O!root"), inner.node]))


def _root(element: etree._Element, atoms: Atoms) -> Atom:
    """``mroot``: a root with its degree."""
    parts = present(atoms)
    if len(parts) != 2:
        return row(element, atoms)
    inner, degree = unit(parts[0]), unit(parts[1])
    symbol = slt.node("O!root", c=degree.symbol, w=inner.symbol)
    return Atom(Role.ATOM, symbol, Node("O!root", [inner.node, degree.node]))


def cell(_: etree._Element, atoms: Atoms) -> Atom:
    """``mtd``: a row."""
    row = present(atoms)
    marked = bool(row) and row[0].text == ARRAY
    atom = read_row(row[marked:])
    atom.text = ARRAY if marked else ""
    return atom


def after_brace(element: etree._Element) -> bool:
    """Whether a table follows a brace and nothing follows the table, as in ``cases``."""
    parent = element.getparent()
    return (
        parent is not None
        and len(parent) == 3
        and parent[0].text == "{"
        and parent[1] is element
        and (parent[2].text or "\u2063") == "\u2063"
    )


def table(element: etree._Element, atoms: Atoms) -> Atom:
    """``mtable``: a table in the layout tree, a matrix in the operator tree."""
    rows = present(atoms)
    if element.get("displaystyle") == "true":  # a derivation in lines; the reference reads only its first cell
        return next((atom for atom in rows[0].raw if atom.symbol.label != "W!"), BLANK) if rows else BLANK
    return table_of(element, rows)


def table_of(element: etree._Element, lines: list[Atom]) -> Atom:
    """Make a table of the rows of ``mtr``, without the blank ones at its end."""
    rows = [row.raw for row in lines]
    while len(rows) > 1 and all(atom.symbol.label == "W!" and not atom.symbol.kids for atom in rows[-1]):
        rows.pop()  # the rest after the last line break
    is_array = bool(rows and rows[0]) and rows[0][0].text == ARRAY
    if after_brace(element):
        rows = [[*row, *(read_row([]) for _ in range(2 - len(row)))] for row in rows]  # always two cells
    heads = [slt.table_row([atom.symbol for atom in row]) for row in rows]
    node = Node(f"M!M-{len(rows)}x{max((len(row) for row in rows), default=0)}")
    node.kids = [Node("M!R!", [atom.node for atom in row]) for row in rows]
    return Atom(Role.ATOM, slt.table(list(heads)), node if is_array else Node("O!matrix", [node]), "table")


RULES: dict[str, mathml.Rule[Atom]] = mathml.table(
    {
        "math": lambda _, atoms: read_row(present(atoms)),
        "mi": identifier_of,
        "mn": lambda element, _: number((element.text or "").strip()),
        "mo": _operator,
        "mtext": _text,
        "ms": _text,
        "mspace": _space,
        "mphantom": lambda _, __: BLANK,
        "mprescripts": lambda _, __: BLANK,
        "mrow": row,
        "mstyle": row,
        "mpadded": row,
        "menclose": row,
        "merror": _error,
        "msub": _scripts(True, False, False),
        "msup": _scripts(False, True, False),
        "msubsup": _scripts(True, True, False),
        "munder": _scripts(True, False, True),
        "mover": _scripts(False, True, True),
        "munderover": _scripts(True, True, True),
        "mfrac": _fraction,
        "msqrt": _square_root,
        "mroot": _root,
        "mtd": cell,
        "mtr": lambda _, atoms: Atom(Role.ROW, Symbol(""), Node(""), raw=present(atoms)),
        "mtable": table,
    }
)


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
    """Whether the lines form a ``multline``: one formula, broken anywhere."""
    return bool(rows and rows[0] and rows[0][0].raw) and rows[0][0].raw[0].text == ARRAY


def _broken(rows: list[list[Atom]]) -> list[Atom]:
    """Join all lines of a ``multline``, without its mark."""
    return [atom for row in rows for part in row for atom in flat(part.raw) if atom.text != ARRAY]


def _joined_lines(rows: list[list[Atom]]) -> list[list[Atom]]:
    """Join the aligned cells of each line, and lines with the lines that they continue."""
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
