"""AMR graphs: the data, its Penman notation, and the parsers that turn posts into graphs.

post ── protocol ──▶ texts ──┬─ dependency/   the embedded parser: rules over a dependency tree
what a parser is     └─ worker/       neural parsers in other interpreters
│
▼
graph ◀── merge ◀── parts, one for each sentence: placeholders unique, one root
│
penman/   graphs to Penman text and back
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError

from .dependency import DependencyAmrParser
from .errors import AmrError, ParserUnavailableError, PenmanError
from .graph import AmrEdge, AmrGraph
from .merge import chunked
from .penman import (
    LenientGraph,
    PenmanRecord,
    check_penman,
    decode_leniently,
    decode_penman,
    encode_penman,
    iter_penman,
    iter_records,
)
from .protocol import AmrParser, TextParser
from .worker import AmrlibParser, Finding, ForeignParser, TransitionAmrParser, WorkerLimits, WorkerParser, examine

__all__ = [
    "PARSERS",
    "AmrEdge",
    "AmrError",
    "AmrGraph",
    "AmrParser",
    "AmrlibParser",
    "DependencyAmrParser",
    "Finding",
    "ForeignParser",
    "LenientGraph",
    "ParserUnavailableError",
    "PenmanError",
    "PenmanRecord",
    "TextParser",
    "TransitionAmrParser",
    "WorkerLimits",
    "WorkerParser",
    "check_penman",
    "chunked",
    "decode_leniently",
    "decode_penman",
    "encode_penman",
    "examine",
    "get_parser",
    "iter_penman",
    "iter_records",
]


PARSERS: Mapping[str, Callable[..., AmrParser]] = {
    parser.name: parser for parser in (DependencyAmrParser, TransitionAmrParser, AmrlibParser)
}
"""The class of each parser by name."""


def get_parser(name_or_parser: str | AmrParser, **options: Any) -> AmrParser:
    """Return the parser of a name, or the parser itself."""
    if isinstance(name_or_parser, str) and name_or_parser in PARSERS:
        return PARSERS[name_or_parser](**options) if options else _shared(name_or_parser)
    if isinstance(name_or_parser, str) or not isinstance(name_or_parser, AmrParser):
        allowed = ", ".join(map(repr, PARSERS))
        raise ConfigError("parser", name_or_parser, f"{allowed} or an object with the methods of AmrParser")
    return name_or_parser


@cache
def _shared(name: str) -> AmrParser:
    return PARSERS[name]()
