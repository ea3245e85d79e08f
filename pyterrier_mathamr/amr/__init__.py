"""AMR graphs: the data, its Penman codec, and the parsers that make graphs of posts."""

from __future__ import annotations

from pyterrier_mathamr._common.errors import ConfigError

from .dependency import DependencyAmrParser
from .errors import AmrError, PenmanError
from .graph import AmrEdge, AmrGraph
from .merge import chunked
from .penman_io import PenmanRecord, decode_penman, encode_penman, iter_penman, iter_records
from .protocol import AmrParser, TextParser

__all__ = [
    "AmrEdge",
    "AmrError",
    "AmrGraph",
    "AmrParser",
    "DependencyAmrParser",
    "PenmanError",
    "PenmanRecord",
    "TextParser",
    "chunked",
    "decode_penman",
    "encode_penman",
    "get_parser",
    "iter_penman",
    "iter_records",
]


def get_parser(name_or_parser: str | AmrParser) -> AmrParser:
    """Give the parser of a name, or the parser itself.

    Args:
        name_or_parser: ``"dependency"``, the embedded parser, or any object with the methods of `AmrParser`.

    Raises:
        ConfigError: no parser has this name, or the object is no parser.
    """
    if name_or_parser == "dependency":
        return DependencyAmrParser()
    if isinstance(name_or_parser, str) or not isinstance(name_or_parser, AmrParser):
        raise ConfigError("parser", name_or_parser, "'dependency' or an object with the methods of AmrParser")
    return name_or_parser
