"""Presentation MathML → symbol layout tree.

A row of symbols is a chain of ``n`` edges; scripts, fractions and groups hang from the symbol they belong to::

    <msup><mi>x</mi><mn>2</mn></msup><mo>+</mo>…        V!x ──n── + ──n── …
                                                        └a── N!2

Each MathML element has one rule: a small function from the element and the symbols of its children to a symbol.
"""

from __future__ import annotations

from lxml import etree

from pyterrier_mathamr.formula import mathml
from pyterrier_mathamr.formula.errors import FormulaError
from pyterrier_mathamr.formula.mathml import clean
from pyterrier_mathamr.formula.tree import FormulaTree

from .symbols import (
    Symbol,
    Symbols,
    chain,
    group,
    ignorable,
    node,
    row_of,
    scripted,
    table,
    table_row,
    tree_of,
    visible_chain,
)


def _token(prefix: str) -> mathml.Rule[Symbol]:
    """Make the rule of a token: its type and its text; ``W!`` when it is empty."""

    def rule(element: etree._Element, _: Symbols) -> Symbol:
        content = clean(element.text)
        return Symbol(prefix + content if content else "W!")

    return rule


def _operator(element: etree._Element, _: Symbols) -> Symbol:
    """``mo``: the bare text, without type."""
    return Symbol(clean(element.text))


def _blank(_: etree._Element, __: Symbols) -> Symbol:
    """``mspace``, ``none``, ``mphantom``: an empty slot."""
    return Symbol("W!")


def _error(element: etree._Element, _: Symbols) -> Symbol:
    """``merror``: ``E!``; the message is in a child element and is lost."""
    return Symbol("E!" + clean(element.text))


def _wildcard(element: etree._Element, _: Symbols) -> Symbol:
    """``qvar``: a query variable, ``?`` and its name."""
    return Symbol("?" + (element.get("name") or clean(element.text)))


def _math(element: etree._Element, symbols: Symbols) -> Symbol | None:
    """``math``: its child; several children are a row."""
    return symbols[0] if len(symbols) == 1 else _row(element, symbols)


def _first(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``semantics`` and ``mstyle``: the first child only."""
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
    """``mfrac``: ``O!divide`` with the numerator over and the denominator under it."""
    if len(symbols) != 2:
        return visible_chain(symbols)
    return node("O!divide", o=symbols[0], u=symbols[1])


def _root(_: etree._Element, symbols: Symbols) -> Symbol | None:
    """``mroot``: ``O!root`` with its content within and the index before and above it."""
    if len(symbols) != 2:
        return visible_chain(symbols)
    return node("O!root", c=symbols[1], w=symbols[0])


def _square_root(_: etree._Element, symbols: Symbols) -> Symbol:
    """``msqrt``: ``O!root`` with its content within; no index."""
    return node("O!root", w=chain(symbols)) if symbols else Symbol("W!")


def _enclosed(element: etree._Element, symbols: Symbols) -> Symbol:
    """``menclose``: the name of its notation, with its content within."""
    return node(element.get("notation", "longdiv"), w=chain(symbols))


def _cell(_: etree._Element, symbols: Symbols) -> Symbol:
    """``mtd``: a row; ``W!`` when empty."""
    return chain(symbols) or Symbol("W!")


_RULES: dict[str, mathml.Rule[Symbol]] = mathml.table(
    {
        "math": _math,
        "semantics": _first,
        "mstyle": _first,
        "mrow": _row,
        "mpadded": _row,
        "mfenced": _fenced,
        "menclose": _enclosed,
        "mn": _token("N!"),
        "mo": _operator,
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
        "msqrt": _square_root,
        "mtd": _cell,
        "mtr": lambda _, symbols: table_row(symbols),
        "mlabeledtr": lambda _, symbols: table_row(symbols),
        "mtable": lambda _, symbols: table(symbols),
        "qvar": _wildcard,
        "merror": _error,
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
