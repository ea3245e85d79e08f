"""A shard: the compressed records of some graphs in one file that is either whole or recognised as torn.

From the first byte to the last::

    record  record  …  record │ tail: compressed JSON {"ids": […], "lengths": […]} │ footer: magic, sizes, checksum
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .errors import DamagedStoreError

_FOOTER = struct.Struct("<8sQQQII")  # magic, bytes of records, of the tail, number of records, crc of both parts
_MAGIC = b"mathamr1"
_LEVEL = 6


class ShardTail(NamedTuple):
    """What a shard says about its records: their ids, and the length of each in bytes."""

    ids: list[str]
    lengths: list[int]


def pack(text: str) -> bytes:
    """Compress the text of one graph's record; the same bytes each time."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


def unpack(data: bytes | memoryview, path: Path) -> str:
    """Read what :func:`pack` wrote.

    Raises:
        DamagedStoreError: the bytes are damaged; names the file.
    """
    try:
        return zlib.decompress(data).decode("utf-8", "surrogatepass")
    except (zlib.error, ValueError) as error:
        raise DamagedStoreError(path, f"a record cannot be read ({error})") from error


def write_shard(path: Path, ids: Sequence[str], records: Sequence[bytes]) -> None:
    """Write a shard under another name, sync it, then give it its name: no torn file ever has it."""
    body = b"".join(records)
    tail = zlib.compress(json.dumps({"ids": list(ids), "lengths": [*map(len, records)]}).encode(), _LEVEL)
    footer = _FOOTER.pack(_MAGIC, len(body), len(tail), len(records), zlib.crc32(body), zlib.crc32(tail))
    unfinished = path.with_suffix(".unfinished")
    with open(unfinished, "wb") as out:
        out.writelines((body, tail, footer))
        out.flush()
        os.fsync(out.fileno())
    os.replace(unfinished, path)


def read_tail(path: Path, *, check_records: bool = False) -> ShardTail:
    """Read what a shard says about its records.

    Args:
        path: the shard.
        check_records: also compare the records with their checksum.

    Raises:
        DamagedStoreError: the file is cut short or was changed.
    """
    data = path.read_bytes() if check_records else b""
    size = path.stat().st_size
    with open(path, "rb") as file:
        file.seek(max(size - _FOOTER.size, 0))
        footer = file.read()
        if len(footer) != _FOOTER.size:
            raise DamagedStoreError(path, "the shard is cut short")
        magic, body_size, tail_size, count, body_crc, tail_crc = _FOOTER.unpack(footer)
        if magic != _MAGIC or body_size + tail_size + _FOOTER.size != size:
            raise DamagedStoreError(path, "the shard is cut short")
        file.seek(body_size)
        tail = file.read(tail_size)
    if zlib.crc32(tail) != tail_crc or (check_records and zlib.crc32(data[:body_size]) != body_crc):
        raise DamagedStoreError(path, "the shard's checksum is wrong")
    content = json.loads(zlib.decompress(tail))
    found = ShardTail(content["ids"], content["lengths"])
    if len(found.ids) != count or sum(found.lengths) != body_size:
        raise DamagedStoreError(path, "the shard's numbers do not agree")
    return found
