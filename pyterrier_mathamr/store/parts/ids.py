r"""Ids by row and rows by id: an ``npids`` file, and the few ids that it cannot store unchanged.

npids assumes text without NUL, reads numbers without their leading zeros, and pads each id to the longest. So a short
and plain id is stored unchanged, and any other as a digest, with the id itself in two arrays beside the file::

    plain     "154", "fcla-12-proof"      ids.npids:  154
    other     "été", "", "x" * 20_000     ids.npids:  \x1f and 24 hexadecimal digits      odd_ids, odd_offsets: the id
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store.errors import DamagedError
from pyterrier_mathamr.store.files import Array

from .id_file import IdFile, hashes_of, write_id_file
from .id_file import Rows as Rows

_PLAIN = re.compile(r"(?:[!-$&-/:-~]|[0-9](?![0-9]{17})){1,64}")  # printable ASCII but %, no number beyond 64 bits
_ODD = "\x1f"
_PADDING = ("\x1f-", "\x1f+")  # npids writes no fewer than two ids in a block
_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Ids in the form in which they are looked up; see :func:`id_keys`.

    Attributes:
        names: bytes ``[n]``.
        hashes: uint32 ``[n]``.
    """

    names: npt.NDArray[np.bytes_]
    hashes: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, places: Rows) -> Keys:
        return Keys(self.names[places], self.hashes[places])


class IdTable:
    """The ids of the rows of one part."""

    def __init__(self, path: Path, count: int, arrays: Mapping[str, Array]) -> None:
        self.count = count
        self._file = IdFile(path)
        self._odd = _Odd(path, arrays["odd_ids"], arrays["odd_offsets"], arrays["odd_rows"])

    @staticmethod
    def write(path: Path, ids: Collection[str]) -> dict[str, Array]:
        """Write ids, all different, in the order of their rows."""
        odd: list[int] = []
        texts: list[bytes] = []

        def keys() -> Iterator[str]:
            for row, name in enumerate(ids):
                key = _key(name)
                if key is not name:
                    odd.append(row)
                    texts.append(name.encode("utf-8", "surrogatepass"))
                yield key
            yield from _PADDING

        write_id_file(path, keys())
        return {
            "odd_ids": np.frombuffer(b"".join(texts), dtype=np.uint8),
            "odd_offsets": np.cumsum([0, *map(len, texts)], dtype=np.int64),
            "odd_rows": np.asarray(odd, dtype=np.int64),
        }

    def rows(self, keys: Keys) -> Rows:
        """Look up the rows of ids: int64 ``[len(keys)]``, -1 for one that is not in it."""
        if not len(keys) or not self.count:
            return np.full(len(keys), -1, dtype=np.int64)
        found = self._file.rows(keys.names, keys.hashes)
        found[found >= self.count] = -1
        return found

    def texts(self, rows: Rows) -> list[str]:
        """Return the ids of some rows."""
        names: list[str] = []
        for start in range(0, len(rows), _AT_ONCE):
            names += self._file.ids(rows[start : start + _AT_ONCE]).astype(np.str_).tolist()
        if self._odd:
            for place in [place for place, name in enumerate(names) if name.startswith(_ODD)]:
                names[place] = self._odd[int(rows[place])]
        return names

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        for start in range(0, self.count, _AT_ONCE):
            yield from self.texts(np.arange(start, min(start + _AT_ONCE, self.count)))


class _Odd:
    """The ids that npids cannot store, by row."""

    def __init__(self, path: Path, texts: Array, offsets: Array, rows: Array) -> None:
        self._path, self._texts, self._offsets, self._rows = path, texts, offsets, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> str:
        try:
            place = int(np.searchsorted(self._rows, row))
            start, end = self._offsets[place : place + 2].tolist()
            return bytes(self._texts[start:end]).decode("utf-8", "surrogatepass")
        except ValueError as error:
            raise DamagedError(self._path.parent, f"the id of its row {row} cannot be read ({error})") from error


def id_keys(ids: Sequence[str]) -> Keys:
    """Return the keys by which ids are looked up, the same in every part."""
    names = np.asarray([_key(name).encode() for name in ids], dtype=np.bytes_)
    return Keys(names, hashes_of(names))


def _key(name: str) -> str:
    """Return the id itself where npids can store it, else a digest of it."""
    if _PLAIN.fullmatch(name):
        return name
    return _ODD + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
