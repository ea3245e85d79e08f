r"""MathML of ``math-core`` → atoms, one rule for each element as for layout trees; and rows of atoms.

In a row, fences are matched, the grammar reads the content, and the layout tree is linked. A row that the grammar
rejects stays flat, as in LaTeXML: no groups in the layout tree, and an operator tree ``E!`` of fragments.

Optional rules read letters as functions, and all of a derivation in lines. Of a derivation the layout tree keeps the
table, as for a matrix, and the operator tree the statements::

    n &= a+b \\            M!2x2 ──w── V!n ──e── = …            U!and ──0── U!eq(n, a+b)
      &= c                                                            └─0── U!eq(c)
"""

from __future__ import annotations

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
    with_scripts,
)
from .converter import ARRAY, SUPER_FIRST
from .grammar import DIFFERENTIAL, UPRIGHT_DIFFERENTIAL, Unparsed, matched, statement, unread

_MERGED = {
    (":", "="): ":=", ("!", "!"): "!!", ("|", "|"): "||", ("′", "′"): "′′", ("′′", "′"): "′′′",
    (">", "="): "≥", ("<", "="): "≤", (">", ">"): "≫", ("<", "<"): "≪",
}  # fmt: skip
_DOTS = {".": "…", "·": "⋯", "⋅": "⋯"}
_IDENTIFIERS = frozenset("⋯…⋮⋱∞∅&")  # operators of MathML
_IDLE = {Role.PUNCTUATION, Role.TEXT, Role.MOD}  # next to which a wide space has no meaning
_CONTINUING = frozenset({Role.RELATION, Role.ADD, Role.MUL, Role.COLON})
_MARGIN = "width: 50%"  # the style of the cells that math-core puts at both sides of a display
_APPLY = "\u2061"

Atoms = list["Atom | None"]


def spliced(atoms: list[Atom]) -> Atom:
    """Make a group of symbols, which become a part of the row around it."""
    return Atom(Role.ROW, Symbol(""), Node(""), raw=atoms)


def present(atoms: Atoms) -> list[Atom]:
    """List the atoms of the children that have one."""
    return [atom for atom in atoms if atom is not None]


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
        if len(parts) > 1 and parts[0].text[:1] == "′":  # before something else in a superscript: a list of both
            node = Node("M!L-2", [parts[0].node, statement(parts[1:])])
        else:
            node = statement(parts)
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
        for edge, moved in (("a", "c"), ("b", "d")):  # its scripts, from an empty base
            if edge in before.symbol.kids:
                atom.symbol.kids[moved] = before.symbol.kids[edge]
        atom.node = with_scripts(atom.node, *before.scripts)
        row[-1] = atom
        return True
    if before.symbol.kids:
        return False
    if before.text == "." and atom.symbol.label[:2] == "N!":
        atom.symbol.label = "N!." + atom.symbol.label[2:]
        base = atom.node  # below its scripts
        while base.kids:
            base = base.kids[0]
        base.label = "N!." + base.label[2:]
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


def identifier_of(element: etree._Element, _: Atoms) -> Atom:
    """``mi``: a letter, or a word with a meaning."""
    content = (element.text or "").strip()
    if content == "mod":
        return Atom(Role.MOD, Symbol("mod"), Node("O!rem"), "mod")
    if len(content) > 1 and 0x1D49C <= ord(content[0]) <= 0x1D537:  # each script or fraktur letter is a symbol
        return spliced([identifier(letter) for letter in content if letter not in "\ufe00\ufe01"])
    return identifier(content, upright=element.get("mathvariant") == "normal") if content else BLANK


def _operator(element: etree._Element, _: Atoms) -> Atom:
    """``mo``: an operator by its symbol; invisible ones leave nothing."""
    content = (element.text or "").strip()
    if not content or content in "\u2061\u2062\u2063\u2064":
        return BLANK
    return identifier(content) if content in _IDENTIFIERS else operator(content)


def _all_text(element: etree._Element) -> str:
    """Join the texts of an element and of all elements in it."""
    return "".join(str(part) for part in element.itertext())


def _text(element: etree._Element, _: Atoms) -> Atom:
    r"""``mtext``: text, or the wildcard that :mod:`.converter` writes for ``\qvar``."""
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
        brace, cells = parts  # of ``cases``: all are operands, in order
        matrix = cells.node.kids[0] if cells.node.label == "O!matrix" else cells.node
        slt.link(brace.symbol, cells.symbol)
        return Atom(Role.ATOM, brace.symbol, Node("O!cases", [node for line in matrix.kids for node in line.kids]))
    if parts and parts[0].role == Role.ATOM and any(child.text == _APPLY for child in element):
        parts[0].role = Role.FUNCTION
    return spliced(parts) if parts else BLANK


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
        last = parts[-1].raw if parts[-1].role == Role.ROW else []
        super_first = above and bool(last) and last[0].text == SUPER_FIRST
        if super_first:
            del last[0]
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


def _accented(base: Atom, accent: Atom | None, *, under: bool) -> Atom:
    """``mover accent``: the accent is a function of its base."""
    name = accent.text if accent is not None else ""
    name = ACCENTS.get(name, name)
    sign = Atom(Role.ATOM, Symbol(name), Node(""))
    made = scripted(base, sign if under else None, None if under else sign, limits=True)
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
        "mtr": lambda _, atoms: spliced(present(atoms)),
        "mtable": table,
    }
)


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
    return spliced(present(atoms))


def _is_derivation(element: etree._Element | None) -> bool:
    """Whether a table holds a derivation in lines, as of ``align``."""
    return element is not None and element.get("displaystyle") == "true"


def _statements(element: etree._Element, atoms: Atoms) -> Atom:
    """``mtable``: a derivation is the sequence of its statements; after a brace these are cases without conditions."""
    if not _is_derivation(element):
        return table(element, atoms)
    rows = [row.raw for row in present(atoms)]
    if rows and rows[0] and rows[0][0].raw and rows[0][0].raw[0].text == ARRAY:  # a ``multline``, broken anywhere
        lines = [[atom for row in rows for part in row for atom in flat(part.raw) if atom.text != ARRAY]]
    else:
        lines = _joined_lines(rows)
    nodes = [read_row(line).node for line in lines] or [Node("W!")]
    if after_brace(element):
        cases = [Node("M!R!", [node, Node("W!")]) for node in nodes]
        return Atom(Role.ATOM, Symbol(""), Node(f"M!M-{len(cases)}x2", cases), "table")
    sequence = nodes[-1]
    for node in reversed(nodes[:-1]):
        sequence = Node("O!form-seq", [node, sequence])
    return Atom(Role.ATOM, Symbol(""), sequence)


def _joined_lines(rows: list[list[Atom]]) -> list[list[Atom]]:
    """Join the aligned cells of each line, and lines with the lines that they continue.

    Cells are aligned by two, or three where the sign has its own cell. A line continues the one before in its column
    with a sign between them: ``= c``, or ``+ c`` below an ``&``.
    """
    lines: list[list[Atom]] = []
    last: dict[int, list[Atom]] = {}  # the last statement of a column
    for row in rows:
        cells = [flat(part.raw) for part in row]
        begin = 0
        while begin < len(cells):
            sign = cells[begin + 1] if begin + 1 < len(cells) else []
            column, end = begin, begin + (3 if len(sign) == 1 and sign[0].role in _CONTINUING else 2)
            aligned, begin = cells[begin:end], end
            line = [atom for part in aligned for atom in part]
            while line and line[-1].role == Role.PUNCTUATION:  # it ends the line, not the statement
                line.pop()
            if all(atom.role == Role.TEXT for atom in line):
                continue
            is_indented = len(aligned) > 1 and not aligned[0]
            if column in last and (
                line[0].role == Role.RELATION
                or last[column][-1].role in _CONTINUING
                or (is_indented and line[0].role in _CONTINUING)
            ):
                last[column] += line
            else:
                last[column] = line
                lines.append(line)
    return lines
