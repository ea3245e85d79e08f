"""Records from outside: JSON, whose every fault is a ``ValueError``, and compressed bytes."""

from __future__ import annotations

import json
import zlib
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Read JSON, whose every fault is a ``ValueError``; deep nesting is a ``RecursionError`` of Python's reader."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that nests too deeply") from None


MOST = 256 << 20
"""Bytes that a record may expand to; the longest post of ARQMath has less than a thousandth of it."""


def decompressed(data: bytes) -> bytes:
    """Decompress what ``zlib.compress`` wrote, in bounded memory."""
    reader = zlib.decompressobj()
    whole = reader.decompress(data, MOST)
    if not reader.eof:
        raise ValueError(f"it is cut off, or expands to more than {MOST >> 20} MB")
    return whole
