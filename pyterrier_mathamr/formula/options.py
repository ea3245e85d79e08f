"""The named corrections of the reference's form: what a converter may be asked for instead.

Each option has the reference's form as its default, because the published graphs hold that form.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from pyterrier_mathamr._common.errors import ConfigError

Chains = Literal["reference", "shared"]
"""What becomes of the middle operand of a chain of relations."""

Applications = Literal["reference", "function"]
"""What becomes of a letter that usually names a function, before parentheses."""

Lines = Literal["reference", "all"]
"""What becomes of a derivation in lines: its first cell, or all of it."""


def check(option: str, value: str, allowed: Any) -> None:
    """Refuse a value that an option does not have.

    Args:
        option: the name of the option.
        value: what was given.
        allowed: the ``Literal`` of the option's values.

    Raises:
        ConfigError: the value is none of them.
    """
    if value not in get_args(allowed):
        raise ConfigError(option, value, " or ".join(map(repr, get_args(allowed))))
