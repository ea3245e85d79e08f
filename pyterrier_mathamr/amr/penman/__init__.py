"""Penman notation: strict and lenient reading, and writing."""

from __future__ import annotations

from .lenient import LenientGraph, decode_leniently
from .reader import PenmanRecord, decode_penman, iter_penman, iter_records
from .writer import check_penman, encode_penman

__all__ = [
    "LenientGraph",
    "PenmanRecord",
    "check_penman",
    "decode_leniently",
    "decode_penman",
    "encode_penman",
    "iter_penman",
    "iter_records",
]
