"""Options that correct the form of the reference (LaTeXML and Tangent-S).

The default of each is the reference's form, since the published graphs have it.
"""

from __future__ import annotations

from typing import Literal, get_args

from pyterrier_mathamr._common.errors import ConfigError

Chains = Literal["reference", "shared"]
"""How the middle operand of a chain of relations is read."""

Applications = Literal["reference", "function"]
"""How a letter that usually names a function is read before parentheses."""

Lines = Literal["reference", "all"]
"""How much of a derivation in lines is read: its first cell, or all of it."""


_ALLOWED = {"chains": get_args(Chains), "applications": get_args(Applications), "lines": get_args(Lines)}


def check(**options: str) -> None:
    """Raise a ConfigError where an option has none of its values."""
    for option, value in options.items():
        allowed = _ALLOWED[option]
        if value not in allowed:
            raise ConfigError(option, value, " or ".join(map(repr, allowed)))
