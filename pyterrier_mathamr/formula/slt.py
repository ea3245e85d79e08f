"""Presentation MathML → symbol layout tree.

A row of symbols is a chain of ``n`` edges; scripts, fractions and groups hang from the symbol they belong to::

    <msup><mi>x</mi><mn>2</mn></msup><mo>+</mo>…        V!x ──n── + ──n── …
                                                        └a── N!2

Each MathML element has one rule, a small function whose docstring says what becomes of it.
"""

from __future__ import annotations

from lxml import etree

from . import mathml
from .errors import FormulaError
from .mathml import clean
from .tree import Edge, FormulaTree

_ORDER = "aocnbudew"
_RANK = {label: rank for rank, label in enumerate(_ORDER)}
OPENING = frozenset("({|∥") | {"&lsqb;"}
CLOSING = frozenset(")}|∥") | {"&rsqb;"}
_FENCED_TABLE = frozenset("({|&∥")


class Symbol:
    """A node under construction: its label, its children by edge label, and the end of the row it begins."""

    __slots__ = ("kids", "label", "tail")

    def __init__(self, label: str) -> None:
        self.label = label
        self.kids: dict[str, Symbol] = {}
        self.tail: Symbol | None = None  # the last symbol of the row that begins here; None for the symbol itself


Symbols = list[Symbol | None]


def link(head: Symbol, follower: Symbol) -> None:
    """Append a row to the row that begins with ``head``."""
    (head.tail or head).kids["n"] = follower
    head.tail = follower.tail or follower


def _ignorable(symbol: Symbol | None) -> bool:
    """Whether a symbol is a blank or an invisible operator with nothing attached."""
    return symbol is None or (not symbol.kids and symbol.label in ("", "W!"))


def chain(symbols: Symbols) -> Symbol | None:
    """Make one row of all symbols; blanks count only as the first one."""
    if not symbols:
        return None
    head = symbols[0] or Symbol("W!")
    for symbol in symbols[1:]:
        if symbol is not None:
            link(head, symbol)
    return head


def _visible_chain(symbols: Symbols) -> Symbol | None:
    """Make one row of all symbols that are visible; the fate of an element with a wrong number of children."""
    return chain([symbol for symbol in symbols if not _ignorable(symbol)])


# ---------------------------------------------------------------------------------------------------- tokens


def _number(element: etree._Element, _: Symbols) -> Symbol:
    """``mn``: ``N!`` and its text."""
    content = clean(element.text)
    return Symbol("N!" + content if content else "W!")


def _identifier(element: etree._Element, _: Symbols) -> Symbol:
    """``mi``: ``V!`` and its text."""
    content = clean(element.text)
    return Symbol("V!" + content if content else "W!")


def _operator(element: etree._Element, _: Symbols) -> Symbol:
    """``mo``: the bare text, without type."""
    return Symbol(clean(element.text))


def _text(element: etree._Element, _: Symbols) -> Symbol:
    """``mtext``: ``T!`` and its text."""
    content = clean(element.text)
    return Symbol("T!" + content if content else "W!")


def _blank(_: etree._Element, __: Symbols) -> Symbol:
    """``mspace``, ``none``, ``mphantom``: an empty slot."""
    return Symbol("W!")


def _error(element: etree._Element, _: Symbols) -> Symbol:
    """``merror``: ``E!``; what it says is in a child element and is lost."""
    return Symbol("E!" + clean(element.text))


def _wildcard(element: etree._Element, _: Symbols) -> Symbol:
    """``qvar``: a query variable, ``?`` and its name."""
    return Symbol("?" + (element.get("name") or clean(element.text)))


# ------------------------------------------------------------------------------------------------------ rows


def _math(element: etree._Element, symbols: Symbols) -> Symbol | None:
    """``math``: its child; several children are a row."""
    return symbols[0] if len(symbols) == 1 else _row(element, symbols)


def _first(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``semantics`` and ``mstyle``: the first child only."""
    return symbols[0] if symbols else None


def _row(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``mrow``, ``mpadded``: a row; a group when it begins and ends with fences that have something in between."""
    return row_of([symbol for symbol in symbols if symbol is not None and (symbol.kids or symbol.label not in ("", "W!"))])


def row_of(row: list[Symbol]) -> Symbol | None:
    """Link visible symbols into a row, or into a group when there are fences at both ends."""
    if not row:
        return None
    if len(row) > 2 and row[0].label in OPENING and row[-1].label in CLOSING:
        return group(row[0].label, row[1:-1], row[-1].label, ",")
    last = head = row[0]
    for symbol in row[1:]:
        if last.label[:2] == "M!" and symbol.label[:2] == "M!" and _merge(last, symbol):
            continue
        (last.tail or last).kids["n"] = symbol
        last = symbol if symbol.label[:2] == "M!" else symbol.tail or symbol
    end = last.tail or last
    head.tail = None if end is head else end
    return head


def group(opening: str, inner: list[Symbol], closing: str, separators: str) -> Symbol:
    """Make a group ``M!()1x2``: elements split at separators, which end their element; the next hangs on ``e``."""
    if len(inner) == 1 and _is_bare_table(inner[0]):
        inner[0].label = f"M!{opening}{closing}{inner[0].label[2:]}"
        return inner[0]
    if inner and _separates(inner[0], separators):
        inner = [Symbol("W!"), *inner]
        link(inner[0], inner.pop(1)) if len(inner) == 2 else None
    split = _split_row if len(inner) == 1 else _split_symbols
    group = Symbol("")
    group.label = f"M!{opening}{closing}" + (f"1x{split(inner, separators)}" if inner else "")
    if inner:
        group.kids["w"] = inner[0]
    return group


def _split_row(inner: list[Symbol], separators: str) -> int:
    """Split the one row of a group after each separator but one that begins an element; count the elements."""
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
    """Link the symbols of a group, split after each separator; rows among them stay whole. Count the elements."""
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
    """Whether a symbol ends an element of a group."""
    return symbol.label in separators or (symbol.label == "&comma;" and "," in separators)


def _is_bare_table(symbol: Symbol) -> bool:
    """Whether a table has no fence and nothing attached yet."""
    return (
        symbol.label[:2] == "M!" and symbol.label[2:3] not in _FENCED_TABLE and symbol.kids.keys() <= {"w", "e"}
    )


def _merge(left: Symbol, right: Symbol) -> bool:
    """Join two unfenced tables of as many rows that stand side by side; tell whether they were."""
    rows, _, columns = left.label[2:].partition("x")
    rows2, _, columns2 = right.label[2:].partition("x")
    if not (rows.isdecimal() and rows == rows2 and columns.isdecimal() and columns2.isdecimal()):
        return False
    cells, cells2 = _cells(left), _cells(right)
    width, width2 = int(columns), int(columns2)
    merged: list[Symbol] = []
    for row in range(int(rows)):
        merged += cells[row * width : (row + 1) * width] + cells2[row * width2 : (row + 1) * width2]
    for before, after in zip(merged, merged[1:], strict=False):
        before.kids["e"] = after
    left.label = f"M!{rows}x{width + width2}"
    return True


def _cells(table: Symbol) -> list[Symbol]:
    """List the first symbols of a table's cells."""
    cells, cell = [], table.kids.get("w")
    while cell is not None:
        cells.append(cell)
        cell = cell.kids.get("e")
    return cells


def _fenced(element: etree._Element, symbols: Symbols) -> Symbol:
    """``mfenced``: a group with the fences and separators of the attributes."""
    separators = element.get("separators", ",").split()
    inner: list[Symbol] = []
    for i, symbol in enumerate(s for s in symbols if s is not None and not _ignorable(s)):
        if i and separators:
            inner.append(Symbol(clean(separators[min(i - 1, len(separators) - 1)])))
        inner.append(symbol)
    return group(clean(element.get("open", "(")), inner, clean(element.get("close", ")")), "".join(separators))


# --------------------------------------------------------------------------------------------------- scripts


def _wrapped(symbol: Symbol) -> Symbol:
    """Wrap a row in ``M!1x1``, so that a script belongs to all of it."""
    box = Symbol("M!1x1")
    box.kids["w"] = symbol
    return box


def scripted(symbols: Symbols, labels: str, letters: str) -> Symbol | None:
    """Attach scripts to a base: by ``letters``, or by ``labels`` where the base is an operator (no type)."""
    if len(symbols) != len(labels) + 1:
        return _visible_chain(symbols)
    base = symbols[0]
    if base is None or _ignorable(base):
        base = Symbol("W!")
    edges = letters if base.label[:1] == "?" or base.label[1:2] == "!" else labels
    if "n" in base.kids or any(edge in base.kids for edge in edges):
        base = _wrapped(base)
    for edge, script in zip(edges, symbols[1:], strict=True):
        if script is not None:
            base.kids[edge] = script
    return base


def _sub(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``msub``: ``b``, under an operator ``u``."""
    return scripted(symbols, "u", "b")


def _sup(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``msup``: ``a``, over an operator ``o``."""
    return scripted(symbols, "o", "a")


def _subsup(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``msubsup``: ``b`` and ``a``, at an operator ``u`` and ``o``."""
    return scripted(symbols, "uo", "ba")


def _under(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``munder``: always ``u``."""
    return scripted(symbols, "u", "u")


def _over(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``mover``: always ``o``."""
    return scripted(symbols, "o", "o")


def _underover(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``munderover``: always ``u`` and ``o``."""
    return scripted(symbols, "uo", "uo")


def _prescripts(_: etree._Element, __: Symbols) -> Symbol:
    """``mprescripts``: the mark between the scripts after and before the base."""
    return Symbol(_PRESCRIPTS)


_PRESCRIPTS = "\0prescripts"


def _multiscripts(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``mmultiscripts``: ``b`` and ``a`` after the base, ``d`` and ``c`` before it; several on a side form a row."""
    if not symbols:
        return None
    base = symbols[0]
    if base is None or _ignorable(base):
        base = Symbol("W!")
    marks = [i for i, symbol in enumerate(symbols) if symbol is not None and symbol.label == _PRESCRIPTS]
    mark = marks[0] if marks else len(symbols)
    for edge, scripts in (
        ("b", symbols[1:mark:2]),
        ("a", symbols[2:mark:2]),
        ("d", symbols[mark + 1 :: 2]),
        ("c", symbols[mark + 2 :: 2]),
    ):
        last = scripts[-1] if scripts else None  # a blank holds a place in the row only where another script follows
        script = chain(scripts[:-1] if last is None or last.label == "W!" else scripts)
        if script is not None:
            base.kids[edge] = script
    return base


# ------------------------------------------------------------------------------------ fractions, roots, tables


def _fraction(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``mfrac``: ``O!divide`` with the numerator over and the denominator under it."""
    if len(symbols) != 2:
        return _visible_chain(symbols)
    return node("O!divide", o=symbols[0], u=symbols[1])


def _root(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``mroot``: ``O!root`` with its content within and the index before and above it."""
    if len(symbols) != 2:
        return _visible_chain(symbols)
    return node("O!root", c=symbols[1], w=symbols[0])


def _square_root(_: etree._Element, symbols: Symbols) -> Symbol:
    """``msqrt``: ``O!root`` with its content within; no index."""
    return node("O!root", w=chain(symbols)) if symbols else Symbol("W!")


def _enclosed(element: etree._Element, symbols: Symbols) -> Symbol:
    """``menclose``: the name of its notation, with its content within."""
    return node(element.get("notation", "longdiv"), w=chain(symbols))


def node(label: str, **children: Symbol | None) -> Symbol:
    """Make a symbol with those of the children that exist."""
    symbol = Symbol(label)
    for edge, child in children.items():
        if child is not None:
            symbol.kids[edge] = child
    return symbol


def _cell(_: etree._Element, symbols: Symbols) -> Symbol:
    """``mtd``: a row; ``W!`` when empty."""
    return chain(symbols) or Symbol("W!")


def table_row(_: etree._Element, symbols: Symbols) -> Symbol:
    """``mtr``: its cells, linked by ``e``."""
    cells = [symbol or Symbol("W!") for symbol in symbols]
    for before, after in zip(cells, cells[1:], strict=False):
        before.kids["e"] = after
    return cells[0] if cells else Symbol("W!")


def table(_: etree._Element, symbols: Symbols) -> Symbol:
    """``mtable``: ``M!<rows>x<columns of the first row>``, its cells linked row by row by ``e``."""
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


_RULES: dict[str, mathml.Rule[Symbol]] = mathml.table(
    {
        "math": _math,
        "semantics": _first,
        "mstyle": _first,
        "mrow": _row,
        "mpadded": _row,
        "mfenced": _fenced,
        "menclose": _enclosed,
        "mn": _number,
        "mo": _operator,
        "mi": _identifier,
        "mtext": _text,
        "ms": _text,
        "mspace": _blank,
        "none": _blank,
        "mphantom": _blank,
        "annotation": _blank,
        "annotation-xml": _blank,
        "msub": _sub,
        "msup": _sup,
        "msubsup": _subsup,
        "munder": _under,
        "mover": _over,
        "munderover": _underover,
        "mprescripts": _prescripts,
        "mmultiscripts": _multiscripts,
        "mfrac": _fraction,
        "mroot": _root,
        "msqrt": _square_root,
        "mtd": _cell,
        "mtr": table_row,
        "mlabeledtr": table_row,
        "mtable": table,
        "qvar": _wildcard,
        "merror": _error,
    }
)


def slt_from_mathml(source: str) -> FormulaTree:
    """Convert Presentation MathML to a symbol layout tree in the form of Tangent-S.

    Args:
        source: one ``math`` element as text, with or without namespace; broken XML is read as far as it goes.

    Returns:
        The tree; ``partial`` when an element was not known and stands in the tree as a row of its children.

    Raises:
        FormulaError: there is no MathML in it, or nothing visible.
    """
    symbol, known = mathml.fold(mathml.parse(source), _RULES, _row)
    if symbol is None:
        raise FormulaError("the MathML is empty", source)
    return tree_of(symbol, source, partial=not known)


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
