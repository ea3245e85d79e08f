"""What identifies the sources of a job, so that its unfinished work is never taken for another's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .files import file_sum

_WHOLE = 100 << 20  # bytes; of a larger file the ends are read
_END = 1 << 20


def file_fingerprint(path: str | Path) -> list[object]:
    """What identifies the content of a file: its size and SHA-256.

    Above 100 MB: its size, the time it was last changed, and the SHA-256 of its first and last megabyte.

    Raises:
        OSError: the file cannot be read.
    """
    path = Path(path)
    found = path.stat()
    if found.st_size <= _WHOLE:
        return list(file_sum(path))
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(_END))
        file.seek(-_END, 2)
        digest.update(file.read(_END))
    return [found.st_size, found.st_mtime_ns, digest.hexdigest()]


def row_fingerprint(row: Mapping[str, Any]) -> int:
    """A 64-bit hash of a document as it comes from a corpus: equal for equal values, in any order of its keys."""
    text = json.dumps({str(name): value for name, value in row.items()}, sort_keys=True, default=repr)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
