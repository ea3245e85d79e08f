"""The labels of names in Content MathML: which operators are functions, ordered or unordered.

A csymbol is ordered (``O!``) unless it is listed here, also where Tangent-S does not know it.
"""

from __future__ import annotations

import string

_POSITIONS = string.digits + string.ascii_uppercase


def position(operand: int) -> str:
    """Return the edge label of an operand's position: 0-9, A-Z, then from "a" on through Unicode."""
    if operand < len(_POSITIONS):
        return _POSITIONS[operand]
    return chr(61 + operand) if operand < _LAST else chr(_LAST_AND_ON + operand)


_LAST, _LAST_AND_ON = 50_000, 0x10000  # past the surrogates, which are no characters


FUNCTIONS = frozenset(
    {
        "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "arccos", "arccot",
        "arccsc", "arcsec", "arcsin", "arctan", "arccosh", "arccoth", "arccsch", "arcsech", "arcsinh", "arctanh",
        "abs", "exp", "log", "ln", "min", "max", "ceiling", "floor", "arg", "gcd", "real", "imaginary"
    }
)  # fmt: skip
"""Elements that become ``F!``."""

UNORDERED = frozenset(
    {
        "approx", "eq", "neq", "equivalent", "union", "intersect", "plus", "times", "and", "or"
    }
)  # fmt: skip
"""Elements that become ``U!``: the order of their operands has no meaning."""

ORDERED = frozenset(
    {
        "lt", "gt", "leq", "geq", "minus", "divide", "subset", "prsubset", "notsubset", "notprsubset", "in", "notin",
        "forall", "exists", "setdiff", "not", "implies", "int", "sum", "partialdiff", "limit", "factorial", "compose",
        "root"
    }
)  # fmt: skip
"""Elements that become ``O!``."""

CONSTANTS = frozenset(
    {
        "infinity", "emptyset", "imaginaryi", "exponentiale", "reals", "integers", "naturalnumbers", "complexes",
        "rationals"
    }
)  # fmt: skip
"""Elements that become ``C!``."""

_UNORDERED_SYMBOLS = frozenset(
    {
        "not-asymptotically-equals", "not-not-equals", "join", "not-less-than-nor-greater-than",
        "approximately-equals-or-equals", "coproduct", "double-union", "exclusive-or", "double-intersection",
        "geometrically-equals", "greater-than-or-equals-or-less-than", "greater-than-or-less-than", "iff",
        "inner-product", "not-and", "not-approximately-equals", "not-equivalent-to",
        "less-than-or-equals-or-greater-than", "similar-to", "similar-to-or-equals", "less-than-or-greater-than",
        "not-parallel-to", "not-perpendicular-to", "equivalent-to", "not-proportional-to", "not-similar-to",
        "parallel-to", "proper-intersection", "not-direct-sum", "square-intersection", "square-union", "subset-plus",
        "superset-plus", "symmetric-difference", "tensor-product", "not-iff", "not-intersection", "not-exclusive-or",
        "not-times", "not-or", "not-proper-intersection", "intersection-plus", "additive-conjunction",
        "additive-disjunction", "multiplicative-conjunction", "multiplicative-disjunction", "not-difference-between",
        "not-approximately-equals-or-equals", "not-equivalent-to-nor-equals", "not-geometrically-equals",
        "approximately-equals", "not-not-equivalent-to", "times", "not-not-approximately-equals", "not-coproduct"
    }
)  # fmt: skip
"""Symbols of LaTeXML that become ``U!``."""

SYMBOLS = {
    **{name: "U!" + name for name in _UNORDERED_SYMBOLS},
    "not-empty-set": "C!not-empty-set",
    "empty-set": "C!empty-set",
    "absent": "W!",
    "for-all": "O!forall",
    "hyperbolic-cotangent": "F!coth",
    "modulo": "O!rem",
    "planck-constant-over-2-pi": "C!hbar",
    "square-root": "O!root",
    "formulae-sequence": "O!form-seq",
    "missing-subexpression": "W!",
    "subscript": "O!SUB",
    "superscript": "O!SUP",
}
"""Label of each csymbol that is not ``O!`` and its name."""

RELATIONS = frozenset(
    {
        "U!eq", "U!neq", "U!equivalent", "U!approx", "U!similar-to", "U!similar-to-or-equals",
        "U!approximately-equals", "U!iff", "U!parallel-to", "O!lt", "O!gt", "O!leq", "O!geq", "O!subset",
        "O!prsubset", "O!in", "O!notin", "O!implies", "O!implied-by", "O!assign", "O!maps-to", "O!contains",
        "O!superset-of", "O!superset-of-or-equals", "O!much-less-than", "O!much-greater-than", "O!precedes",
        "O!succeeds", "O!proportional-to", "O!asymptotically-equals", "O!perpendicular-to", "F!→", "F!←", "F!↔",
        "F!⇒", "F!⇐", "F!⇔", "F!⟶", "F!⟵", "F!⟹", "F!⟺"
    }
)  # fmt: skip
"""Labels of relations that form chains."""
