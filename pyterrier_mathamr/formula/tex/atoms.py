"""The symbols of a LaTeX formula with their scripts, each with its layout tree and its operator tree so far.

``math-core`` writes Presentation MathML for browsers; an :class:`Atom` has the spelling of the official MathML: one
minus sign, groups and function applications spliced into the row around them, words for functions.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

from pyterrier_mathamr.formula.mathml import clean
from pyterrier_mathamr.formula.opt.nodes import Node
from pyterrier_mathamr.formula.slt import symbols as slt
from pyterrier_mathamr.formula.slt.symbols import Symbol

from .symbols import AST, FUNCTIONS, IFF, ITALIC, LIMITS, NAMED, NOT_MID, OPERATORS, UNTYPED_FUNCTIONS, Role

_BARE = (None, None, False)
_NONE: list[Atom] = []


class Atom:
    """One symbol, or one construct in the place of a symbol, in a row."""

    __slots__ = ("applies", "arguments", "end", "items", "node", "raw", "role", "scripts", "symbol", "text")

    def __init__(self, role: int, symbol: Symbol, node: Node, text: str = "", raw: list[Atom] | None = None) -> None:
        self.role, self.symbol, self.node, self.text = role, symbol, node, text
        self.end = symbol.tail or symbol
        self.raw: list[Atom] = raw or _NONE
        self.items: list[Node] | None = None  # elements of a fence that may be arguments
        self.scripts: tuple[Atom | None, Atom | None, bool] = _BARE  # of a closing fence: those of the whole fence
        self.applies = False  # whether the letter is a function before parentheses
        self.arguments: list[Node] | None = None  # of parentheses, with or without scripts: the arguments of a function

    def loose(self) -> None:
        """Undo what linking the row did to the layout tree."""
        self.end.kids.pop("n", None)
        self.symbol.kids.pop("e", None)
        self.symbol.tail = None if self.end is self.symbol else self.end


_WHITE = str.maketrans({"\ufe00": None, "\ufe01": None})
_SAME = {"−": "-", "∗": "*", "∶": ":", "″": "′′", "‴": "′′′", "⁗": "′′′′", "∕": "/", "⊥": "⟂"}
# the bar of a norm looks like the sign of parallels but is another symbol
_SPELLED = {"‖": "∥", "⨆": "⊔", IFF: "⇔", AST: "∗", NOT_MID: "∣\u0338"}


class _Kind(NamedTuple):
    """What a symbol is: its role, its two labels, and the text that the grammar knows it by."""

    role: int
    layout: str
    meaning: str
    text: str


@lru_cache(maxsize=4096)
def _kind(text: str, upright: bool) -> _Kind:
    """Look up what a symbol, a letter or a word is."""
    text = " ".join(text.translate(_WHITE).split())
    if text in NAMED:
        return _Kind(Role.ATOM, *NAMED[text], text)
    if text in LIMITS:
        return _Kind(Role.BIG, text, LIMITS[text], text)
    if text in FUNCTIONS:
        return _Kind(Role.FUNCTION, text if text in UNTYPED_FUNCTIONS else "V!" + text, FUNCTIONS[text], text)
    text = _SAME.get(text, text)
    if text in OPERATORS:
        role, label = OPERATORS[text]
        return _Kind(role, clean(_SPELLED.get(text, text)), label, text)
    if len(text) == 1 and text.isdecimal():  # a digit in another style, such as a double-struck one
        return _Kind(Role.ATOM, "N!" + text, f"N!{unicodedata.digit(text)}", text)
    label = "V!" + clean(text)
    return _Kind(Role.ATOM, label, label if upright else ITALIC.get(text, label), text)


def identifier(text: str, *, upright: bool = False) -> Atom:
    """Make the atom of a letter, a word or a symbol."""
    role, layout, meaning, text = _kind(text, upright)
    return Atom(role, Symbol(layout), Node(meaning), text)


def operator(text: str) -> Atom:
    """Make the atom of an operator symbol; in the layout tree an ordinary one has no type."""
    role, layout, meaning, text = _kind(text, False)
    if role == Role.ATOM and text not in NAMED:
        layout = layout[2:]
    return Atom(role, Symbol(layout), Node(meaning), text)


def number(text: str) -> Atom:
    """Make the atom of a number."""
    label = "N!" + clean(text)
    return Atom(Role.ATOM, Symbol(label), Node(label), text)


def text(content: str) -> Atom:
    """Make the atom of text, which is empty in the operator tree."""
    content = clean(" ".join(content.split()))
    return Atom(Role.TEXT, Symbol("T!" + content), Node("W!"), content) if content else BLANK


BLANK = Atom(Role.BLANK, Symbol("W!"), Node("W!"))
"""An invisible symbol: it is dropped from its row."""


def scripted(base: Atom, below: Atom | None, above: Atom | None, *, limits: bool, super_first: bool = False) -> Atom:
    """Attach scripts to an atom, the one written first closest; an operator keeps its role."""
    labels = "u" * (below is not None) + "o" * (above is not None)
    letters = labels if limits else "b" * (below is not None) + "a" * (above is not None)
    symbol = slt.scripted([base.symbol, *(part.symbol for part in (below, above) if part is not None)], labels, letters)
    node = with_scripts(base.node, below, above, super_first)
    keeps = base.role not in (Role.FENCE, Role.TEXT, Role.CLOSE, Role.OPEN, Role.BAR, Role.ROW)
    made = Atom(base.role if keeps else Role.ATOM, symbol or Symbol("W!"), node, base.text)
    made.applies = base.applies
    return made


def with_scripts(node: Node, below: Atom | None, above: Atom | None, super_first: bool) -> Node:
    """Put a subscript and a superscript on an operator tree, the one written first closest."""
    scripts = [("O!SUB", below), ("O!SUP", above)]
    for label, script in reversed(scripts) if super_first else scripts:
        if script is not None:
            node = Node(label, [node, script.node])
    return node


def with_prescripts(empty: Atom, base: Atom) -> Atom:
    """Move the scripts of an empty base to the symbol after it, as scripts before it."""
    scripts = empty.symbol.kids
    for edge, before in (("a", "c"), ("b", "d")):
        if edge in scripts:
            base.symbol.kids[before] = scripts[edge]
    below, above, super_first = empty.scripts
    base.node = with_scripts(base.node, below, above, super_first)
    return base
