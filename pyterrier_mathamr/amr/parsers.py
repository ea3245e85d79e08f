"""Parsers by name: the embedded one, and any that another distribution registers (``mathamr_parsers``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError

from .dependency import DependencyAmrParser
from .parsing import AmrParser

REGISTERED = "mathamr_parsers"
_OTHERS = "; 'transition' and 'amrlib' need: pip install 'pyterrier-mathamr[systems]'"


def get_parser(name_or_parser: str | AmrParser, **options: Any) -> AmrParser:
    """Return the parser of a name, made with ``options``, or ``name_or_parser`` itself where it is a parser.

    Raises:
        ConfigError: there is no such parser, or it does not accept an option.
    """
    if isinstance(name_or_parser, str) and (make := _class_of(name_or_parser)) is not None:
        return make(**options) if options else _shared(make)
    if isinstance(name_or_parser, str) or not isinstance(name_or_parser, AmrParser):
        names = [DependencyAmrParser.name, *(entry.name for entry in entry_points(group=REGISTERED))]
        allowed = f"{', '.join(map(repr, names))} or an object with the methods of AmrParser"
        raise ConfigError("parser", name_or_parser, allowed + ("" if len(names) > 1 else _OTHERS))
    return name_or_parser


def _class_of(name: str) -> Callable[..., AmrParser] | None:
    if name == DependencyAmrParser.name:
        return DependencyAmrParser
    for entry in entry_points(group=REGISTERED, name=name):
        make: Callable[..., AmrParser] = entry.load()
        return make
    return None


@cache
def _shared(make: Callable[[], AmrParser]) -> AmrParser:
    return make()
