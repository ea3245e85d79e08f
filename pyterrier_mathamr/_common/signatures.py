"""Real signatures where Python would show ``(*args, **options)``: of the methods that construct, and of classes.

::

    colbert = method(ColBERTRetriever)      # index.colbert(*, num_results=1000, …) constructs it over the index
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def method(kind: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return the method of an index that constructs a transformer over it."""

    def construct(index: Any, /, *args: P.args, **options: P.kwargs) -> T:
        return kind(index, *args, **options)

    update_wrapper(construct, kind, updated=())  # its name and docstring
    signature = inspect.signature(kind).replace(return_annotation=kind)
    construct.__signature__ = signature  # type: ignore[attr-defined]
    return construct


class ConstructorSignature:
    """The ``__signature__`` of a class is that of its ``__init__``."""

    def __get__(self, instance: object | None, owner: type) -> inspect.Signature:
        """Return the signature of a class; an instance, which may be called, has none here."""
        if instance is not None:
            raise AttributeError("__signature__")
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        parameters = list(signature.parameters.values())[1:]
        return signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
