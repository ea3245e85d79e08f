"""Ids by row and rows by id, in one memory-mapped `npids` file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

_PADDING = ("\x1f no id 0", "\x1f no id 1")  # npids cannot write fewer than two ids


class IdTable:
    """The ids of a store's rows.

    Args:
        path: a file that :meth:`write` made.
        count: the number of ids.
    """

    def __init__(self, path: Path, count: int) -> None:
        import npids

        self.path, self.count = path, count
        self._lookup = npids.Lookup(str(path))

    @staticmethod
    def write(path: Path, ids: Sequence[str]) -> None:
        """Write ids, all different, in the order of their rows."""
        import npids

        padded = [*ids, *_PADDING] if len(ids) < len(_PADDING) else ids
        npids.Lookup.build(padded, str(path), return_self=False)

    def rows(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Look up the rows of ids.

        Returns:
            int64 ``[len(ids)]``, -1 for an id that is not there.
        """
        if not ids:
            return np.zeros(0, dtype=np.int64)
        found = np.asarray(self._lookup.inv[list(ids)], dtype=np.int64)
        found[found >= self.count] = -1
        return found

    def __getitem__(self, row: int) -> str:
        return str(self._lookup.fwd[row])

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        for start in range(0, self.count, 4096):
            yield from map(str, self._lookup.fwd[list(range(start, min(start + 4096, self.count)))])
