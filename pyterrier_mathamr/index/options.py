"""Options that several transformers or indexers share: each is explained once, by the class that introduces it."""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_SECTION = re.compile(r"^Args:\n(?:(?: {4}.*)?\n)*", re.MULTILINE)
_OPTION = re.compile(r"^ {4}(\w+): .*\n(?: {5,}.*\n)*", re.MULTILINE)


def explained(cls: Class) -> Class:
    """Add to a class's docstring the options that only its bases explain, so that ``help`` shows all, in order."""
    if cls.__doc__ is None:  # python -OO
        return cls
    explanations: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for section in _SECTION.findall(inspect.cleandoc(base.__doc__ or "") + "\n"):
            explanations |= {option[1]: option[0] for option in _OPTION.finditer(section)}
    section = "".join(explanations[name] for name in inspect.signature(cls).parameters)
    text = inspect.cleandoc(cls.__doc__) + "\n"
    before, end = found.span() if (found := _SECTION.search(text)) else (len(text), len(text))
    blank = "" if found else "\n"
    rest = text[end:]
    cls.__doc__ = f"{text[:before]}{blank}Args:\n{section}{chr(10) if rest else ''}{rest}".rstrip()
    return cls
