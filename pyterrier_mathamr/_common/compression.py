"""Compressed records of files that somebody else may have written."""

from __future__ import annotations

import zlib

MOST = 256 << 20
"""Bytes that a record may expand to; the longest post of ARQMath has less than a thousandth of it."""


def decompressed(data: bytes) -> bytes:
    """Decompress what ``zlib.compress`` wrote, in bounded memory."""
    reader = zlib.decompressobj()
    whole = reader.decompress(data, MOST)
    if not reader.eof:
        raise ValueError(f"it is cut off, or expands to more than {MOST >> 20} MB")
    return whole
