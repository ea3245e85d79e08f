"""The role of each symbol of a LaTeX formula in the grammar, and its label in the operator tree.

The roles are those of LaTeXML's grammar, which made the official operator trees.
"""

from __future__ import annotations


class Role:
    """The role of a symbol in a row; plain numbers, since they are compared very often."""

    ATOM = 0  # identifier, number, fraction, group: an operand
    FUNCTION = 1  # sin, log, \\operatorname: takes the factors after it, or the fence
    BIG = 2  # sum, integral, limit, quantifier, partial: takes the rest of its term
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
    "≃": "U!similar-to-or-equals",
    "≅": "U!approx", "≍": "O!asymptotically-equals", "∈": "O!in", "∉": "O!notin", "∋": "O!contains",
    "⊂": "O!subset", "⊆": "O!subset", "⊊": "O!prsubset", "⫋": "O!prsubset", "⊃": "O!superset-of",
    "⊇": "O!superset-of-or-equals", "⊄": "O!not-subset-of", "⊈": "O!not-subset-of-or-equals",
    "∥": "U!parallel-to", "∦": "U!not-parallel-to", "⟂": "O!perpendicular-to", "∝": "O!proportional-to",
    ":=": "O!assign", "≔": "O!assign", "↦": "O!maps-to", "⟼": "O!maps-to", "⟹": "O!implies",
    "⟸": "O!implied-by", "≪": "O!much-less-than", "≫": "O!much-greater-than", "≺": "O!precedes", "≻": "O!succeeds",
    "⪯": "O!precedes-or-equals", "⪰": "O!succeeds-or-equals", "≼": "O!precedes-or-equals", "≽": "O!succeeds-or-equals",
    "⊨": "O!models", "≲": "O!less-than-or-similar-to", "≳": "O!greater-than-or-equivalent-to",
    "≮": "O!not-less-than", "≯": "O!not-greater-than",
    "≰": "O!not-less-than-or-equals", "≱": "O!not-greater-than-or-equals", "≢": "U!not-equivalent-to",
    "≉": "U!not-approximately-equals", "≁": "U!not-similar-to", "≇": "U!not-approximately-equals",
    "⊲": "O!subgroup-of", "◁": "O!subgroup-of", "⊴": "O!subgroup-of-or-equals",
    "⊑": "O!square-image-of-or-equals", "⊏": "O!square-image-of", "≐": "O!approaches-limit", "≜": "V!≜", "≗": "V!≗",
    "⋉": "O!left-normal-factor-semidirect-product",
}  # fmt: skip
_ARROWS = "→←↔⇒⇐⟶⟵⟷↑↓↕⇑⇓↪↩↠↣↛⇝⇀⇁⇌↗↘↙↖⇉⇄"
_ADDITIVE = {
    "+": "U!plus", "-": "O!minus", "±": "O!plus-or-minus", "∓": "O!minus-or-plus", "∪": "U!union", "∩": "U!intersect",
    "∖": "O!setdiff", "⊕": "O!direct-sum", "∨": "U!or", "∧": "U!and", "⊔": "U!square-union",
    "⊓": "U!square-intersection",
    "⊖": "V!⊖", "⊎": "V!⊎", "⊻": "U!exclusive-or",
}  # fmt: skip
_MULTIPLICATIVE = {
    "×": "U!times", "*": "U!times", "⋅": "V!⋅", "/": "O!divide", "÷": "O!divide", "∘": "O!compose",
    "⊗": "U!tensor-product", "⊙": "V!⊙", "⋊": "O!right-normal-factor-semidirect-product", "∙": "V!∙", "⋆": "V!⋆",
    "⋄": "V!⋄", "≀": "V!≀", "⨯": "U!times", "•": "V!∙", "·": "V!⋅", "∔": "V!∔",
}  # fmt: skip
_BIG = {
    "∑": "O!sum", "∏": "O!product", "∐": "U!coproduct", "∫": "O!int", "∬": "O!double-integral",
    "∭": "O!triple-integral", "⨌": "O!quadruple-integral", "∮": "O!contour-integral", "⋃": "U!union",
    "⋂": "U!intersect",
    "⨁": "O!direct-sum", "⨂": "U!tensor-product", "⋁": "U!or", "⋀": "U!and", "⨆": "U!square-union", "⨄": "V!⨄",
    "∂": "O!partialdiff", "∀": "O!forall", "∃": "O!exists", "∄": "O!not-exists",
    "⨀": "V!⨀",
}  # fmt: skip

WIDE = "\\quad"
"""Text of the atom of a wide space."""

IFF, AST, NOT_MID = "\ue002", "\ue003", "\ue004"
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
    ",": (Role.PUNCTUATION, ""),
    ";": (Role.PUNCTUATION, ""),
    "!": (Role.POSTFIX, "O!factorial"),
    "!!": (Role.POSTFIX, "O!double-factorial"),
    "(": (Role.OPEN, ""),
    "[": (Role.OPEN, ""),
    "{": (Role.OPEN, ""),
    "⌊": (Role.OPEN, ""),
    "⌈": (Role.OPEN, ""),
    "⟨": (Role.OPEN, ""),
    ")": (Role.CLOSE, ""),
    "]": (Role.CLOSE, ""),
    "}": (Role.CLOSE, ""),
    "⌋": (Role.CLOSE, ""),
    "⌉": (Role.CLOSE, ""),
    "⟩": (Role.CLOSE, ""),
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

_ITALIC_CAPITAL, _ITALIC_SMALL, _ITALIC_ALPHA = 0x1D434, 0x1D44E, 0x1D6FC


def _italics() -> dict[str, str]:
    """Map letters to their label in the operator tree: mathematical italic, variants named."""
    letters = {chr(65 + i): chr(_ITALIC_CAPITAL + i) for i in range(26)}
    letters |= {chr(97 + i): chr(_ITALIC_SMALL + i) for i in range(26)}
    letters |= {chr(0x3B1 + i): chr(_ITALIC_ALPHA + i) for i in range(25)}
    return letters | {"h": "ℎ"} | {variant: f"italic-{variant}" for variant in "ϵϕϑϖϱϰ"}


ITALIC = {letter: "V!" + italic for letter, italic in _italics().items()} | {"∞": "C!infinity", "∅": "C!emptyset"}
"""Labels of identifiers that differ between operator tree and layout tree."""
