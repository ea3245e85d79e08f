"""Vectors of texts on disk, so that a text is encoded once in all runs (SQLite: safe to kill, safe to share).

::

    vectors   key    16 bytes, hash of the encoder's name and the text
              vector float16 [d_text]
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .errors import ModelFileError

Vector = npt.NDArray[np.float16]
_AT_ONCE = 500  # fewer than any build of SQLite allows in one query


def text_key(encoder: str, text: str) -> bytes:
    """Compute the key of a text: 16 bytes, another for each encoder."""
    return hashlib.blake2b(f"{encoder}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


class TextCache:
    """A file of vectors by key. Several processes may read and write it at the same time.

    Args:
        path: the file; made with its folder when the first vectors are added.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"TextCache({str(self.path)!r})"

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Read the vectors that are there.

        Args:
            keys: of texts.

        Returns:
            float16 ``[d_text]`` for each key that has one.

        Raises:
            ModelFileError: the file is no cache.
        """
        if not self.path.is_file():
            return {}
        found: dict[bytes, Vector] = {}
        with closing(self._open()) as file:
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                for key, data in file.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part):
                    found[key] = np.frombuffer(data, dtype="<f2")
        return found

    def add(self, vectors: Mapping[bytes, Vector]) -> None:
        """Keep vectors; all of them are on disk when this returns, or none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [(key, vector.astype("<f2").tobytes()) for key, vector in vectors.items()]
        with closing(self._open()) as file, file:
            file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)

    def _open(self) -> sqlite3.Connection:
        file = sqlite3.connect(self.path, timeout=60)
        try:
            file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        except sqlite3.DatabaseError as error:
            file.close()
            raise ModelFileError(self.path, f"no cache of text vectors ({error})") from error
        return file
