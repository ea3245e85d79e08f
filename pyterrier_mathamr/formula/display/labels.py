"""Labels of formula trees for people: ``V!𝑥`` is the variable x, ``U!eq`` the operator =, ``&comma;`` a comma."""

from __future__ import annotations

import re
from typing import NamedTuple

TYPES = {
    "V": "variable",
    "N": "number",
    "C": "constant",
    "F": "function",
    "O": "operator, operands in order",
    "U": "operator, operands in any order",
    "M": "matrix, vector, set, list or brackets",
    "T": "text",
    "W": "empty",
    "E": "not understood",
    "+": "compound operator",
}
"""The types of symbols, which labels begin with, and what they mean."""

_ESCAPES = {"&comma;": ",", "&quest;": "?", "&lsqb;": "[", "&rsqb;": "]"}
_ESCAPE = re.compile("|".join(_ESCAPES))
_OPERATORS = {
    "eq": "=", "neq": "≠", "lt": "<", "gt": ">", "leq": "≤", "geq": "≥", "approx": "≈", "equivalent": "≡",
    "plus": "+", "minus": "−", "times": "×", "divide": "÷", "factorial": "!", "root": "√", "infinity": "∞",
    "sum": "∑", "product": "∏", "int": "∫", "partialdiff": "∂", "in": "∈", "notin": "∉",
    "union": "∪", "intersect": "∩", "setdiff": "∖", "emptyset": "∅", "and": "∧", "or": "∨",
    "not": "¬", "implies": "⇒", "iff": "⇔", "forall": "∀", "exists": "∃", "maps-to": "↦", "assign": "≔",
    "SUP": "superscript", "SUB": "subscript", "supremum": "sup", "infimum": "inf", "conditional": "given |",
}  # fmt: skip
_COLLECTIONS = {"V": "vector", "L": "list", "S": "set", "M": "matrix"}
_COLLECTION = re.compile(r"([VLSM])-(\d+(?:x\d+)?)$")
_SIZED = re.compile(r"(.*?)(\d+)x(\d+)$")


class ReadableLabel(NamedTuple):
    """A label for people.

    Attributes:
        type: a key of :data:`TYPES`; empty for symbols without type, such as ``=`` in layout trees.
        text: what the symbol is.
    """

    type: str
    text: str


def readable(label: str) -> ReadableLabel:
    """Split a label of a formula tree into the type of its symbol and a text for people.

    Args:
        label: such as ``U!eq``, ``V!𝑥``, ``M!()1x3`` or ``&comma;``.
    """
    kind, mark, name = label.partition("!")
    if not (mark and kind in TYPES):
        return ReadableLabel("", _plain(label))
    if kind == "+":
        return ReadableLabel(kind, readable(name).text)
    if kind == "M":
        return ReadableLabel(kind, _collection(name))
    if kind in "OUCF":
        return ReadableLabel(kind, _OPERATORS.get(name) or _plain(name))
    return ReadableLabel(kind, _plain(name))


def _collection(name: str) -> str:
    """Name what has several parts: ``V-3`` is a vector 3, ``()1x3`` are round brackets around 1×3 parts."""
    if (known := _COLLECTION.match(name)) is not None:
        return f"{_COLLECTIONS[known[1]]} {known[2].replace('x', '×')}"
    if name == "R!":
        return "row"
    if (sized := _SIZED.match(name)) is not None:
        return f"{_plain(sized[1])} {sized[2]}×{sized[3]}".strip()
    return _plain(name.removeprefix("D-"))


def _plain(text: str) -> str:
    """Undo the escapes of Tangent-S, and write italic letters upright."""
    return "".join(map(_upright, _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text)))


def _upright(sign: str) -> str:
    code = ord(sign)
    if 0x1D434 <= code <= 0x1D467:
        return chr(code - 0x1D434 + (0x41 if code < 0x1D44E else 0x61 - 26))
    if 0x1D6FC <= code <= 0x1D714:
        return chr(code - 0x1D6FC + 0x3B1)
    return "h" if sign == "ℎ" else sign
