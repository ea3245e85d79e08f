"""Transformers that are their parameters: equality, hash and a `repr` that rebuilds, from the constructor's signature.

PyTerrier recognises equal stages of two pipelines by ``==`` and reads parameters as attributes of the same name, with
or without an underscore before it; a mix-in keeps both promises for every transformer of the package.
"""

from __future__ import annotations

import inspect
from typing import Any


class ByParameters:
    """Gives a class equality, hash and `repr` by the parameters of its ``__init__``.

    Each parameter ``x`` is kept as the attribute ``x`` or ``_x``; those of ``**x`` as a dictionary of that name.
    """

    def parameters(self) -> dict[str, Any]:
        """Give the values of the constructor's parameters, by name, in its order."""
        kept = vars(self)  # not getattr: a method may have the name of a parameter, with or without the underscore
        found: dict[str, Any] = {}
        for name, parameter in list(inspect.signature(type(self).__init__).parameters.items())[1:]:
            value = kept[name] if name in kept else kept[f"_{name}"]
            found.update(value if parameter.kind is parameter.VAR_KEYWORD else {name: value})
        return found

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.parameters().items()
            if name not in signature or value != signature[name].default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters() == other.parameters()

    def __hash__(self) -> int:
        return hash(repr(self))
