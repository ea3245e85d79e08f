"""Arrays on the way into a part, in files without a name: the system may write them out, and they leave nothing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from pyterrier_mathamr.store.files import Array

_CHUNK = 1 << 24


def scratch_array(folder: Path | None, count: int, dtype: np.dtype[Any]) -> Array:
    """Make an array of zeros in a file without a name, which the system may write out and which ends with the array.

    Args:
        folder: on whose disk the file lies, or that of other temporary files if it is read-only; ``None`` for memory.
        count: of the numbers.
        dtype: theirs.

    Raises:
        OSError: the disk has no room for it.
    """
    if folder is None or not count:
        return np.zeros(count, dtype)
    with _nameless(folder) as file:
        size, zeros = count * dtype.itemsize, bytes(_CHUNK)
        for start in range(0, size, _CHUNK):  # a file with holes would end the process where the disk is full
            file.write(zeros[: size - start])
        file.flush()
        return np.memmap(file, dtype, "r+", shape=(count,))


class Appended:
    """An array that grows at its end, in a file as that of :func:`scratch_array`.

    Args:
        folder: on whose disk the file lies; ``None`` for memory.
        dtype: of the numbers.
    """

    def __init__(self, folder: Path | None, dtype: np.dtype[Any]) -> None:
        self._dtype, self._count = dtype, 0
        self._pieces: list[Array] = []
        self._file = None if folder is None else _nameless(folder)

    def append(self, values: Array) -> None:
        """Add numbers at the end.

        Raises:
            OSError: the disk has no room for them.
        """
        values = np.ascontiguousarray(values, self._dtype)
        self._count += len(values)
        if self._file is None:
            self._pieces.append(values)
        else:
            self._file.write(values.data)

    def array(self) -> Array:
        """Return all numbers; nothing is appended from then on."""
        if self._file is None:
            return np.concatenate([np.zeros(0, self._dtype), *self._pieces])
        with self._file as file:
            file.flush()
            return np.memmap(file, self._dtype, "r+", shape=(self._count,)) if self._count else np.zeros(0, self._dtype)


def _nameless(folder: Path) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder if os.access(folder, os.W_OK) else None)
