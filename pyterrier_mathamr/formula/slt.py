"""Presentation MathML → symbol layout tree.

A row of symbols is a chain of ``n`` edges; scripts, fractions and groups hang from the symbol they belong to::

    <msup><mi>x</mi><mn>2</mn></msup><mo>+</mo>…        V!x ──n── + ──n── …
                                                        └a── N!2

Each MathML element has one rule: a small function from the element and the symbols of its children to a symbol.

The first symbol of a row refers to its last one, so that a row grows in constant time.
"""

from __future__ import annotations

import itertools

from lxml import etree

from . import mathml
from .mathml import clean
from .tree import Edge, FormulaError, FormulaTree

_RANK = {label: rank for rank, label in enumerate("aocnbudew")}
OPENING = frozenset("({|∥") | {"&lsqb;"}
"""Symbols that may begin a group."""

CLOSING = frozenset(")}|∥") | {"&rsqb;"}
"""Symbols that may end a group."""

_FENCED_TABLE = frozenset("({|&∥")


class Symbol:
    """A node under construction: its label, its children by edge label, and the end of the row it begins."""

    __slots__ = ("kids", "label", "tail")

    def __init__(self, label: str) -> None:
        self.label = label
        self.kids: dict[str, Symbol] = {}
        self.tail: Symbol | None = None  # the last symbol of the row that begins here; None for the symbol itself


Symbols = list[Symbol | None]


def node(label: str, **children: Symbol | None) -> Symbol:
    """Make a symbol with those children that are not ``None``."""
    symbol = Symbol(label)
    for edge, child in children.items():
        if child is not None:
            symbol.kids[edge] = child
    return symbol


def link(head: Symbol, follower: Symbol) -> None:
    """Append a row to the row that begins with ``head``."""
    (head.tail or head).kids["n"] = follower
    head.tail = follower.tail or follower


def ignorable(symbol: Symbol | None) -> bool:
    """Whether a symbol is a blank or an invisible operator with nothing attached."""
    return symbol is None or (not symbol.kids and symbol.label in ("", "W!"))


def chain(symbols: Symbols) -> Symbol | None:
    """Link all symbols into one row; blanks are kept only at the beginning."""
    if not symbols:
        return None
    head = symbols[0] or Symbol("W!")
    for symbol in symbols[1:]:
        if symbol is not None:
            link(head, symbol)
    return head


def visible_chain(symbols: Symbols) -> Symbol | None:
    """Link all visible symbols into one row: for elements with a wrong number of children."""
    return chain([symbol for symbol in symbols if not ignorable(symbol)])


def row_of(row: list[Symbol]) -> Symbol | None:
    """Link visible symbols into a row, or into a group when there are fences at both ends."""
    if not row:
        return None
    if len(row) > 2 and row[0].label in OPENING and row[-1].label in CLOSING:
        return group(row[0].label, row[1:-1], row[-1].label, ",")
    head = last = row[0]
    tables = [head]  # adjacent ones with equal numbers of rows; or the last symbol
    for symbol in row[1:]:
        is_table = symbol.label[:2] == "M!"
        if is_table and (size := _size(tables[0])) and (next_size := _size(symbol)) and size[0] == next_size[0]:
            tables.append(symbol)
            continue
        _merge(tables)
        (last.tail or last).kids["n"] = symbol
        last = symbol if is_table else symbol.tail or symbol
        tables = [symbol]
    _merge(tables)
    end = last.tail or last
    head.tail = None if end is head else end
    return head


def _size(symbol: Symbol) -> tuple[int, int] | None:
    """Return the rows and columns of a table without fences; ``None`` for any other symbol."""
    rows, _, columns = symbol.label[2:].partition("x")
    if symbol.label[:2] == "M!" and len(symbol.label) < 20 and rows.isdecimal() and columns.isdecimal():
        return int(rows), int(columns)
    return None


def _merge(tables: list[Symbol]) -> None:
    """Join several tables with equal numbers of rows into the first of them, row by row."""
    if len(tables) == 1:
        return
    sizes = [size for size in map(_size, tables) if size is not None]
    cells: list[list[Symbol]] = []
    for table in tables:
        cell = table.kids.get("w")
        cells.append([])
        while cell is not None:
            cells[-1].append(cell)
            cell = cell.kids.get("e")
    merged: list[Symbol] = []
    for row in range(sizes[0][0]):
        for (_, width), content in zip(sizes, cells, strict=True):
            merged += content[row * width : (row + 1) * width]
    for before, after in itertools.pairwise(merged):
        before.kids["e"] = after
    tables[0].label = f"M!{sizes[0][0]}x{sum(width for _, width in sizes)}"


def group(opening: str, inner: list[Symbol], closing: str, separators: str) -> Symbol:
    """Make a group ``M!()1x2``: a separator ends its element, and ``e`` leads to the next one."""
    if not inner:
        return Symbol(f"M!{opening}{closing}")
    table = inner[0].label if len(inner) == 1 else ""
    if table[:2] == "M!" and table[2:3] not in _FENCED_TABLE and inner[0].kids.keys() <= {"w", "e"}:
        inner[0].label = f"M!{opening}{closing}{table[2:]}"  # a table without fence, and nothing attached
        return inner[0]
    if _separates(inner[0], separators):
        inner = [Symbol("W!"), *inner]
        link(inner[0], inner.pop(1)) if len(inner) == 2 else None
    split = _split_row if len(inner) == 1 else _split_symbols
    return node(f"M!{opening}{closing}1x{split(inner, separators)}", w=inner[0])


def _split_row(inner: list[Symbol], separators: str) -> int:
    """Split the only row of a group after each separator but a leading one; return the number of elements."""
    element = symbol = inner[0]
    count = 1
    while (follower := symbol.kids.get("n")) is not None:
        symbol = follower
        if _separates(follower, separators):
            count += 1
            rest = follower.kids.pop("n", None)
            if rest is None:
                break
            element.kids["e"] = element = symbol = rest
    return count


def _split_symbols(inner: list[Symbol], separators: str) -> int:
    """Link the symbols of a group, split after each separator, and rows whole; return the number of elements."""
    element = inner[0]
    count, ended = 1, False
    for symbol in inner[1:]:
        separates = _separates(symbol, separators)
        count += separates
        if ended and not separates:
            element.kids["e"] = symbol
            element = symbol
        else:
            link(element, symbol)
        ended = separates
    return count


def _separates(symbol: Symbol, separators: str) -> bool:
    return symbol.label in separators or (symbol.label == "&comma;" and "," in separators)


def scripted(symbols: Symbols, labels: str, letters: str) -> Symbol | None:
    """Attach scripts to a base: by ``letters``, or by ``labels`` where the base is an operator (no type)."""
    if len(symbols) != len(labels) + 1:
        return visible_chain(symbols)
    base = symbols[0]
    if base is None or ignorable(base):
        base = Symbol("W!")
    edges = letters if base.label[:1] == "?" or base.label[1:2] == "!" else labels
    if "n" in base.kids or any(edge in base.kids for edge in edges):
        base = node("M!1x1", w=base)  # the script belongs to the whole row
    for edge, script in zip(edges, symbols[1:], strict=True):
        if script is not None:
            base.kids[edge] = script
    return base


def table_row(symbols: Symbols) -> Symbol:
    """Link the cells of a row by ``e``."""
    cells = [symbol or Symbol("W!") for symbol in symbols]
    for before, after in itertools.pairwise(cells):
        before.kids["e"] = after
    return cells[0] if cells else Symbol("W!")


def table(symbols: Symbols) -> Symbol:
    """Make ``M!<rows>x<columns of the first row>`` of rows, each the first symbol of its cells."""
    rows = [symbol or Symbol("W!") for symbol in symbols]
    width, end = 0, None
    for number, row in enumerate(rows):
        if end is not None:
            end.kids["e"] = row
        end, length = row, 1
        while "e" in end.kids:
            end, length = end.kids["e"], length + 1
        width = width if number else length
    return node(f"M!{len(rows)}x{width}", w=rows[0] if rows else None)


def tree_of(root: Symbol, source: str, *, partial: bool) -> FormulaTree:
    """Number the symbols below ``root`` depth first and freeze them into a tree."""
    nodes: list[str] = []
    edges: list[Edge] = []
    stack: list[tuple[int, str, Symbol]] = [(-1, "", root)]
    while stack:
        parent, label, symbol = stack.pop()
        index = len(nodes)
        nodes.append(symbol.label)
        if label:
            edges.append((parent, index, label))
        kids = symbol.kids
        if len(kids) == 1:
            for edge, kid in kids.items():
                stack.append((index, edge, kid))
        elif kids:
            for edge in sorted(kids, key=_RANK.__getitem__, reverse=True):
                stack.append((index, edge, kids[edge]))
    return FormulaTree(tuple(nodes), tuple(edges), partial, source, "slt")


def _token(prefix: str) -> mathml.Rule[Symbol]:
    """Make the rule of a token: its type and its text; ``W!`` when it is empty."""

    def rule(element: etree._Element, _: Symbols) -> Symbol:
        content = clean(element.text)
        return Symbol(prefix + content if content else "W!")

    return rule


def _blank(_: etree._Element, __: Symbols) -> Symbol:
    return Symbol("W!")


def _first(_: etree._Element, symbols: Symbols) -> Symbol | None:
    return symbols[0] if symbols else None


def _row(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``mrow``, ``mpadded``: a row; a group when it begins and ends with fences that have something in between."""
    return row_of(
        [symbol for symbol in symbols if symbol is not None and (symbol.kids or symbol.label not in ("", "W!"))]
    )


def _fenced(element: etree._Element, symbols: Symbols) -> Symbol:
    """``mfenced``: a group with the fences and separators of the attributes."""
    separators = element.get("separators", ",").split()
    inner: list[Symbol] = []
    for i, symbol in enumerate(s for s in symbols if s is not None and not ignorable(s)):
        if i and separators:
            inner.append(Symbol(clean(separators[min(i - 1, len(separators) - 1)])))
        inner.append(symbol)
    return group(clean(element.get("open", "(")), inner, clean(element.get("close", ")")), "".join(separators))


def _scripts(labels: str, letters: str) -> mathml.Rule[Symbol]:
    """Make the rule of a base with scripts: ``letters`` are their edges, at an operator ``labels``."""
    return lambda _, symbols: scripted(symbols, labels, letters)


_PRESCRIPTS = "\0prescripts"  # the mark between the scripts after and before the base


def _multiscripts(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``mmultiscripts``: ``b`` and ``a`` after the base, ``d`` and ``c`` before it; several on a side form a row."""
    if not symbols:
        return None
    base = symbols[0]
    if base is None or ignorable(base):
        base = Symbol("W!")
    marks = [i for i, symbol in enumerate(symbols) if symbol is not None and symbol.label == _PRESCRIPTS]
    mark = marks[0] if marks else len(symbols)
    for edge, scripts in (
        ("b", symbols[1:mark:2]),
        ("a", symbols[2:mark:2]),
        ("d", symbols[mark + 1 :: 2]),
        ("c", symbols[mark + 2 :: 2]),
    ):
        last = scripts[-1] if scripts else None  # a blank is kept in the row only where another script follows
        script = chain(scripts[:-1] if last is None or last.label == "W!" else scripts)
        if script is not None:
            base.kids[edge] = script
    return base


def _fraction(_: etree._Element, symbols: Symbols) -> Symbol | None:
    if len(symbols) != 2:
        return visible_chain(symbols)
    return node("O!divide", o=symbols[0], u=symbols[1])


def _root(_: etree._Element, symbols: Symbols) -> Symbol | None:
    if len(symbols) != 2:
        return visible_chain(symbols)
    return node("O!root", c=symbols[1], w=symbols[0])


_RULES: dict[str, mathml.Rule[Symbol]] = mathml.table(
    {
        "math": lambda element, symbols: symbols[0] if len(symbols) == 1 else _row(element, symbols),
        "semantics": _first,
        "mstyle": _first,
        "mrow": _row,
        "mpadded": _row,
        "mfenced": _fenced,
        "menclose": lambda element, symbols: node(element.get("notation", "longdiv"), w=chain(symbols)),
        "mn": _token("N!"),
        "mo": lambda element, _: Symbol(clean(element.text)),
        "mi": _token("V!"),
        "mtext": _token("T!"),
        "ms": _token("T!"),
        "mspace": _blank,
        "none": _blank,
        "mphantom": _blank,
        "annotation": _blank,
        "annotation-xml": _blank,
        "msub": _scripts("u", "b"),
        "msup": _scripts("o", "a"),
        "msubsup": _scripts("uo", "ba"),
        "munder": _scripts("u", "u"),
        "mover": _scripts("o", "o"),
        "munderover": _scripts("uo", "uo"),
        "mprescripts": lambda _, __: Symbol(_PRESCRIPTS),
        "mmultiscripts": _multiscripts,
        "mfrac": _fraction,
        "mroot": _root,
        "msqrt": lambda _, symbols: node("O!root", w=chain(symbols)) if symbols else Symbol("W!"),
        "mtd": lambda _, symbols: chain(symbols) or Symbol("W!"),
        "mtr": lambda _, symbols: table_row(symbols),
        "mlabeledtr": lambda _, symbols: table_row(symbols),
        "mtable": lambda _, symbols: table(symbols),
        "qvar": lambda element, _: Symbol("?" + (element.get("name") or clean(element.text))),
        "merror": lambda element, _: Symbol("E!" + clean(element.text)),  # the message in a child is lost
    }
)


def slt_from_mathml(source: str) -> FormulaTree:
    """Convert Presentation MathML to a symbol layout tree in the form of Tangent-S.

    Args:
        source: one ``math`` element as text, with or without namespace; broken XML is read as far as it goes. All
            cells of an ``mtable`` are kept; there is no option for derivations in lines as for LaTeX, since the
            official MathML of a derivation has only its first cell.

    Returns:
        The tree; ``partial`` when an element was unknown, which becomes a row of its children.

    Raises:
        FormulaError: there is no MathML in it, or nothing visible.
    """
    symbol, known = mathml.fold(mathml.parse(source), _RULES, _row)
    if symbol is None:
        raise FormulaError("the MathML is empty", source)
    return tree_of(symbol, source, partial=not known)
