r"""LaTeX of terms: a sub-expression in normal form, written for people.

A term has lost its typography, so ``a/b`` is written as ``\frac{a}{b}`` and ``b>a`` as ``a<b``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .matching import CHAIN, INDEX, LINES, NEGATIVE, POWER, PRODUCT, SUM, TermTable, Value
from .opt import FUNCTIONS, RELATIONS

LONGEST = 1000
"""Characters of a sub-expression; a longer one is written as an ellipsis."""

_ATOM, _SCRIPT, _FACTOR, _ADDEND, _SIDE, _STATEMENT = 5, 4, 3, 2, 1, 0
_SIGNS = {
    "U!eq": "=", "U!neq": r"\neq ", "O!lt": "<", "O!leq": r"\leq ", "O!in": r"\in ", "O!notin": r"\notin ",
    "O!subset": r"\subseteq ", "O!prsubset": r"\subset ", "O!implies": r"\Rightarrow ", "U!iff": r"\Leftrightarrow ",
    "U!equivalent": r"\equiv ", "U!approx": r"\approx ", "U!similar-to": r"\sim ", "O!maps-to": r"\mapsto ",
    "U!union": r"\cup ", "U!intersect": r"\cap ", "U!or": r"\vee ", "O!assign": ":=", "O!setdiff": r"\setminus ",
    "O!plus-or-minus": r"\pm ", "O!compose": r"\circ ", "O!conditional": r"\mid ", "O!divides": r"\mid ",
    "O!gt": ">", "O!geq": r"\geq ",
}  # fmt: skip
_NAMES = {
    "O!int": r"\int ", "O!sum": r"\sum ", "O!product": r"\prod ", "O!limit": r"\lim ", "O!partialdiff": r"\partial ",
    "C!infinity": r"\infty ", "O!contour-integral": r"\oint ", "O!forall": r"\forall ", "O!exists": r"\exists ",
    "C!empty-set": r"\emptyset ", "W!": "", "V!&quest;": "?", "F!for-all": r"\forall ",
}  # fmt: skip
_BIG = frozenset({"O!int", "O!contour-integral", "O!sum", "O!product", "O!limit", "O!partialdiff"})
_FONTS = {"BOLD": r"\mathbf", "FRAKTUR": r"\mathfrak", "SCRIPT": r"\mathcal", "DOUBLE-STRUCK": r"\mathbb"}
_KNOWN_FUNCTIONS = FUNCTIONS - {"abs", "ceiling", "floor", "real", "imaginary"} | {"det", "lim", "sup", "inf"}


class Written(NamedTuple):
    """LaTeX, and how strongly its outermost operator binds."""

    latex: str
    level: int


def write_term(terms: TermTable, term: int) -> str:
    """Write a term as LaTeX."""
    return _written(terms, term).latex


def write_value(terms: TermTable, value: Value) -> str:
    """Write the value of a wildcard as LaTeX."""
    operands = [_written(terms, term) for term in value.written]
    return _operator(value.label, operands).latex if value.label else operands[0].latex


def _written(terms: TermTable, root: int) -> Written:
    written: dict[int, Written] = {}
    stack = [root]
    while stack:
        term = stack[-1]
        if term in written:
            stack.pop()
            continue
        args = terms.operands(term)
        missing = [arg for arg in args if arg not in written]
        if missing:
            stack += missing
            continue
        made = _operator(terms.label(term), [written[arg] for arg in args]) if args else _leaf(terms.label(term))
        written[term] = made if len(made.latex) <= LONGEST else Written(r"\dots ", _ATOM)
        stack.pop()
    return written[root]


def _leaf(label: str) -> Written:
    if label in _NAMES:
        return Written(_NAMES[label], _ATOM)
    name = label[2:].removeprefix("italic-") if label[1:2] == "!" else label
    if label[:1] == "F" and name in _KNOWN_FUNCTIONS:
        return Written(f"\\{name} ", _ATOM)
    if len(name) == 1:
        plain, long = unicodedata.normalize("NFKC", name), unicodedata.name(name, "")
        font = next((font for word, font in _FONTS.items() if word in long), "")
        return Written(f"{font}{{{plain}}}" if font and plain.isalnum() else plain, _ATOM)
    if label[:1] == "T":
        return Written(rf"\text{{{name}}}", _ATOM)
    return Written(name if label[:1] in "N?" else rf"\operatorname{{{name}}}", _ATOM)


def _in(operand: Written, level: int) -> str:
    """Write an operand, in parentheses where it binds less than a level."""
    return operand.latex if operand.level >= level else rf"\left({operand.latex}\right)"


def _operator(label: str, args: Sequence[Written]) -> Written:
    rule = _RULES.get(label)
    if rule is not None:
        return rule(args)
    if label in _SIGNS or label in RELATIONS:
        sign = _SIGNS.get(label) or f" {label[2:]} "
        return Written(sign.join(_in(arg, _SIDE + 1) for arg in args), _SIDE)
    if label[:2] == "F!" and label[2:] in _KNOWN_FUNCTIONS and len(args) == 1:
        return Written(rf"\{label[2:]} {_in(args[0], _FACTOR)}", _FACTOR)
    args = [arg for arg in args if arg.latex]  # an integral has places for bounds that it does not have
    if label in _BIG:
        return Written(_NAMES[label] + " ".join(_in(arg, _FACTOR) for arg in args), _FACTOR)
    if label[:2] == "M!":
        return Written(rf"\left({', '.join(arg.latex for arg in args)}\right)", _ATOM)
    return Written(rf"{_leaf(label).latex}\left({', '.join(arg.latex for arg in args)}\right)", _ATOM)


def _sum(args: Sequence[Written]) -> Written:
    first, *others = (_in(arg, _ADDEND) for arg in args)
    return Written(first + "".join(other if other[:1] == "-" else f"+{other}" for other in others), _ADDEND)


def _product(args: Sequence[Written]) -> Written:
    latex = ""
    for arg in args:
        factor = _in(arg, _FACTOR)
        joins = latex[-1:].isdigit() and factor[:1].isdigit()
        latex += rf"\cdot {factor}" if joins else factor
    return Written(latex, _FACTOR)


def _scripts(sign: str) -> Callable[[Sequence[Written]], Written]:
    return lambda args: Written(f"{_in(args[0], _SCRIPT)}{sign}{{{args[1].latex}}}", _SCRIPT)


def _root(args: Sequence[Written]) -> Written:
    degree = "" if args[-1].latex == "2" else f"[{args[-1].latex}]"
    return Written(rf"\sqrt{degree}{{{args[0].latex}}}", _ATOM)


def _fraction(args: Sequence[Written]) -> Written:
    if len(args) != 2:
        return Written("/".join(_in(arg, _FACTOR) for arg in args), _FACTOR)
    return Written(rf"\frac{{{args[0].latex}}}{{{args[1].latex}}}", _ATOM)


_RULES: dict[str, Callable[[Sequence[Written]], Written]] = {
    SUM: _sum,
    PRODUCT: _product,
    NEGATIVE: lambda args: Written("-" + _in(args[0], _FACTOR), _ADDEND),
    POWER: _scripts("^"),
    INDEX: _scripts("_"),
    "O!divide": _fraction,
    "O!root": _root,
    "+!": lambda args: Written(args[0].latex + " ".join(_in(arg, _FACTOR) for arg in args[1:]), _FACTOR),
    CHAIN: lambda args: Written(r",\; ".join(arg.latex for arg in args), _STATEMENT),
    LINES: lambda args: Written(r",\; ".join(arg.latex for arg in args), _STATEMENT),
    "O!factorial": lambda args: Written(_in(args[0], _ATOM) + "!", _SCRIPT),
    "F!abs": lambda args: Written(rf"\left|{args[0].latex}\right|", _ATOM),
    "O!norm": lambda args: Written(rf"\left\|{args[0].latex}\right\|", _ATOM),
    "O!differential-d": lambda args: Written(rf"\,d{args[0].latex}", _ATOM),
    "O!interval(O-O)": lambda args: Written(rf"\left({', '.join(arg.latex for arg in args)}\right)", _ATOM),
    "O!interval(C-C)": lambda args: Written(rf"\left[{', '.join(arg.latex for arg in args)}\right]", _ATOM),
    "O!matrix": lambda args: args[0],
}
