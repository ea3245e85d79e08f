"""AMR graphs: the data, its Penman codec, and the parsers that make graphs of posts."""

from __future__ import annotations

from .errors import AmrError, PenmanError
from .graph import AmrEdge, AmrGraph
from .penman_io import PenmanRecord, decode_penman, encode_penman, iter_penman, iter_records

__all__ = [
    "AmrEdge",
    "AmrError",
    "AmrGraph",
    "PenmanError",
    "PenmanRecord",
    "decode_penman",
    "encode_penman",
    "iter_penman",
    "iter_records",
]
