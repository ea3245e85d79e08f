"""The symbols of a LaTeX formula with their scripts, each with its layout tree and its operator tree so far.

``math-core`` writes Presentation MathML for browsers; an :class:`Atom` has the spelling of the official MathML: one
minus sign, groups and function applications spliced into the row around them, words for functions.

A symbol's role in the grammar is that of LaTeXML's grammar, which made the official operator trees.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

from pyterrier_mathamr.formula import slt
from pyterrier_mathamr.formula.mathml import clean
from pyterrier_mathamr.formula.opt import Node
from pyterrier_mathamr.formula.slt import Symbol


class Role:
    """The role of a symbol in a row; plain numbers, since they are compared very often."""

    ATOM = 0  # identifier, number, fraction, group: an operand
    FUNCTION = 1  # sin, log, \\operatorname: applies to the factors after it, or to the fence
    BIG = 2  # sum, integral, limit, quantifier, partial: applies to the rest of its term
    POSTFIX = 3  # factorial
    MUL = 4
    ADD = 5
    RELATION = 6
    COLON = 7  # looser than a relation: colon, iff, therefore
    PUNCTUATION = 8
    OPEN = 9
    CLOSE = 10
    BAR = 11  # opens, closes or separates
    ROW = 12  # a group of symbols, spliced into the row around it
    FENCE = 13  # a fence with its content: an operand, or the arguments of a function
    MOD = 14  # mod, or (mod n)
    BLANK = 15  # invisible
    TEXT = 16  # an operand that is empty in the operator tree
    BETWEEN = 17  # a bar between two operands: tighter than a relation


_RELATIONS = {
    "=": "U!eq", "≠": "U!neq", "<": "O!lt", ">": "O!gt", "≤": "O!leq", "≥": "O!geq", "⩽": "O!leq", "⩾": "O!geq",
    "≦": "O!leq", "≧": "O!geq", "≡": "U!equivalent", "≈": "U!approx", "∼": "U!similar-to",
    "≃": "U!similar-to-or-equals", "≅": "U!approx", "≍": "O!asymptotically-equals", "∈": "O!in", "∉": "O!notin",
    "∋": "O!contains", "⊂": "O!subset", "⊆": "O!subset", "⊊": "O!prsubset", "⫋": "O!prsubset", "⊃": "O!superset-of",
    "⊇": "O!superset-of-or-equals", "⊄": "O!not-subset-of", "⊈": "O!not-subset-of-or-equals", "∥": "U!parallel-to",
    "∦": "U!not-parallel-to", "⟂": "O!perpendicular-to", "∝": "O!proportional-to", ":=": "O!assign", "≔": "O!assign",
    "↦": "O!maps-to", "⟼": "O!maps-to", "⟹": "O!implies", "⟸": "O!implied-by", "≪": "O!much-less-than",
    "≫": "O!much-greater-than", "≺": "O!precedes", "≻": "O!succeeds", "⪯": "O!precedes-or-equals",
    "⪰": "O!succeeds-or-equals", "≼": "O!precedes-or-equals", "≽": "O!succeeds-or-equals", "⊨": "O!models",
    "≲": "O!less-than-or-similar-to", "≳": "O!greater-than-or-equivalent-to", "≮": "O!not-less-than",
    "≯": "O!not-greater-than", "≰": "O!not-less-than-or-equals", "≱": "O!not-greater-than-or-equals",
    "≢": "U!not-equivalent-to", "≉": "U!not-approximately-equals", "≁": "U!not-similar-to",
    "≇": "U!not-approximately-equals", "⊲": "O!subgroup-of", "◁": "O!subgroup-of", "⊴": "O!subgroup-of-or-equals",
    "⊑": "O!square-image-of-or-equals", "⊏": "O!square-image-of", "≐": "O!approaches-limit", "≜": "V!≜", "≗": "V!≗",
    "⋉": "O!left-normal-factor-semidirect-product",
}  # fmt: skip
_ARROWS = "→←↔⇒⇐⟶⟵⟷↑↓↕⇑⇓↪↩↠↣↛⇝⇀⇁⇌↗↘↙↖⇉⇄"
_ADDITIVE = {
    "+": "U!plus", "-": "O!minus", "±": "O!plus-or-minus", "∓": "O!minus-or-plus", "∪": "U!union", "∩": "U!intersect",
    "∖": "O!setdiff", "⊕": "O!direct-sum", "∨": "U!or", "∧": "U!and", "⊔": "U!square-union",
    "⊓": "U!square-intersection", "⊖": "V!⊖", "⊎": "V!⊎", "⊻": "U!exclusive-or",
}  # fmt: skip
_MULTIPLICATIVE = {
    "×": "U!times", "*": "U!times", "⋅": "V!⋅", "/": "O!divide", "÷": "O!divide", "∘": "O!compose",
    "⊗": "U!tensor-product", "⊙": "V!⊙", "⋊": "O!right-normal-factor-semidirect-product", "∙": "V!∙", "⋆": "V!⋆",
    "⋄": "V!⋄", "≀": "V!≀", "⨯": "U!times", "•": "V!∙", "·": "V!⋅", "∔": "V!∔",
}  # fmt: skip
_BIG = {
    "∑": "O!sum", "∏": "O!product", "∐": "U!coproduct", "∫": "O!int", "∬": "O!double-integral",
    "∭": "O!triple-integral", "⨌": "O!quadruple-integral", "∮": "O!contour-integral", "⋃": "U!union",
    "⋂": "U!intersect", "⨁": "O!direct-sum", "⨂": "U!tensor-product", "⋁": "U!or", "⋀": "U!and", "⨆": "U!square-union",
    "⨄": "V!⨄", "∂": "O!partialdiff", "∀": "O!forall", "∃": "O!exists", "∄": "O!not-exists", "⨀": "V!⨀",
}  # fmt: skip

WIDE = "\\quad"
"""Text of the atom of a wide space."""

IFF, AST, NOT_MID = "\ue002", "\ue003", "\ue004"
WILDCARD = "\ue005"
"""Private characters for ``\\iff``, ``\\ast`` and ``\\not\\mid``, which ``math-core`` writes like other symbols."""

OPERATORS: dict[str, tuple[int, str]] = {
    **{symbol: (Role.RELATION, label) for symbol, label in _RELATIONS.items()},
    **{symbol: (Role.RELATION, "V!" + symbol) for symbol in _ARROWS},
    **{symbol: (Role.ADD, label) for symbol, label in _ADDITIVE.items()},
    **{symbol: (Role.MUL, label) for symbol, label in _MULTIPLICATIVE.items()},
    **{symbol: (Role.BIG, label) for symbol, label in _BIG.items()},
    ":": (Role.COLON, "V!:"),
    "⇔": (Role.COLON, "V!⇔"),
    IFF: (Role.COLON, "U!iff"),
    AST: (Role.MUL, "V!∗"),
    "∇": (Role.FUNCTION, "V!∇"),
    "%": (Role.POSTFIX, "O!percent"),
    "⟺": (Role.COLON, "V!⟺"),
    "⊢": (Role.COLON, "O!proves"),
    "∴": (Role.COLON, "O!therefore"),
    "∵": (Role.COLON, "O!because"),
    "∣": (Role.BETWEEN, "O!conditional"),
    "∤": (Role.BETWEEN, "O!not-divides"),
    NOT_MID: (Role.BETWEEN, "O!conditional"),
    **dict.fromkeys(",;", (Role.PUNCTUATION, "")),
    "!": (Role.POSTFIX, "O!factorial"),
    "!!": (Role.POSTFIX, "O!double-factorial"),
    **dict.fromkeys("([{⌊⌈⟨", (Role.OPEN, "")),
    **dict.fromkeys(")]}⌋⌉⟩", (Role.CLOSE, "")),
    "|": (Role.BAR, "O!conditional"),
    "||": (Role.BAR, "U!parallel-to"),
    "‖": (Role.BAR, "U!parallel-to"),
    ".": (Role.PUNCTUATION, ""),
}
"""Role of each operator symbol and its label in the operator tree; any other symbol is an identifier."""

LIMITS = {
    "lim": "O!limit", "inf": "O!infimum", "sup": "O!supremum", "liminf": "O!limit-infimum",
    "limsup": "O!limit-supremum", "lim inf": "O!limit-infimum", "lim sup": "O!limit-supremum",
    "injlim": "O!injective-limit", "projlim": "O!projective-limit",
}  # fmt: skip
"""Words that are big operators, without a type in the layout tree."""

NAMED = {"¬": ("V!¬", "O!not"), "𝟏": ("N!𝟏", "N!1"), "𝟙": ("N!𝟙", "N!1"), "𝟘": ("N!𝟘", "N!0"), "𝟎": ("N!𝟎", "N!0")}
"""Symbols with a special label in each tree."""

FUNCTIONS = {
    **{name: "F!" + name for name in (
        "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "arcsin", "arccos",
        "arctan", "exp", "log", "ln", "min", "max", "arg", "gcd", "det",
    )},
    "ker": "O!kernel", "dim": "O!dimension", "deg": "O!degree", "hom": "V!hom", "lg": "V!lg", "Pr": "V!Pr",
}  # fmt: skip
"""Words that take an argument, with their labels."""

UNTYPED_FUNCTIONS = frozenset({"det", "dim"})
"""Functions that the layout tree writes as operators."""

ACCENTS = {
    "ˉ": "¯", "‾": "¯", "̄": "¯", "̲": "¯", "_": "¯", "ˆ": "^", "̂": "^", "˜": "~", "̃": "~", "⃗": "→", "~": "~",
    "→": "→", "˙": "˙", "¨": "¨", "ˇ": "ˇ", "˘": "˘", "´": "´", "`": "`", "˚": "˚",
}  # fmt: skip
"""The reference's spelling of accents."""

ITALIC = {
    **{chr(65 + i): f"V!{chr(0x1D434 + i)}" for i in range(26)},
    **{chr(97 + i): f"V!{chr(0x1D44E + i)}" for i in range(26)},
    **{chr(0x3B1 + i): f"V!{chr(0x1D6FC + i)}" for i in range(25)},
    **{variant: f"V!italic-{variant}" for variant in "ϵϕϑϖϱϰ"},
    "h": "V!ℎ",
    "∞": "C!infinity",
    "∅": "C!emptyset",
}
"""Labels of identifiers that differ between operator tree and layout tree."""


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
        self.scripts: tuple[Atom | None, Atom | None, bool] = _BARE  # a closing fence: scripts of the whole
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
    """The kind of a symbol: its role, its two labels, and its text in the grammar."""

    role: int
    layout: str
    meaning: str
    text: str


@lru_cache(maxsize=4096)
def _kind(text: str, upright: bool) -> _Kind:
    """Look up the kind of a symbol, a letter or a word."""
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


def wildcard(name: str) -> Atom:
    """Make the atom of a query variable, whose label is that of a ``qvar`` in MathML."""
    label = "?" + clean(name)
    return Atom(Role.ATOM, Symbol(label), Node(label), label)


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
