"""Real signatures where Python would show ``(*args, **options)``: of the methods that construct, and of classes.

::

    colbert = method(ColBERTRetriever)      # index.colbert(*, num_results=1000, …) constructs it over the index
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def method(kind: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return the method of an index that constructs a transformer over it, with the options and docstring of its class.

    Args:
        kind: a class whose constructor takes the index first.
    """

    def construct(index: Any, /, *args: P.args, **options: P.kwargs) -> T:
        return kind(index, *args, **options)

    update_wrapper(construct, kind, updated=())  # its name, docstring and signature
    return construct
