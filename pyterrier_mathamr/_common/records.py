"""Records from outside: JSON, whose every fault is a ``ValueError``, and compressed bytes."""

from __future__ import annotations

import json
import zlib
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Read JSON; unlike Python's reader, deep nesting does not end in ``RecursionError``.

    Raises:
        ValueError: the text is not JSON, nests too deeply, is not UTF-8 or has numbers of thousands of digits.
    """
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
