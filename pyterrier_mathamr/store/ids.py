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
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .errors import DamagedError
from .files import Array

Rows = npt.NDArray[np.int64]

Keys = npt.NDArray[np.bytes_]
"""Ids in the form in which they are looked up; see :func:`id_keys`."""

_PLAIN = re.compile(r"(?:[!-$&-/:-~]|[0-9](?![0-9]{17})){1,64}")  # printable ASCII but %, no number beyond 64 bits
_ODD = "\x1f"
_PADDING = ("\x1f-", "\x1f+")  # npids writes no fewer than two ids in a block
_FORM = "fixedbytes"
"""The one format of npids 0.1.3 that is lossless: ``hexdigest`` mistakes 123456 and 12345678 for digests of one length
and writes blocks that cannot be read, ``intsequence`` loses numbers that do not begin with 0."""
_AT_ONCE = 4096


class IdTable:
    """The ids of the rows of one part.

    Args:
        path: the file that :meth:`write` wrote.
        count: the number of ids.
        arrays: those that :meth:`write` returned.
    """

    def __init__(self, path: Path, count: int, arrays: Mapping[str, Array]) -> None:
        import npids

        self.count = count
        self._lookup = npids.Lookup(str(path))
        self._odd = _Odd(path, arrays["odd_ids"], arrays["odd_offsets"], arrays["odd_rows"])
        self._asked = 0
        self._table: _Unpacked | None = None

    @staticmethod
    def write(path: Path, ids: Collection[str]) -> dict[str, Array]:
        """Write ids, all different, in the order of their rows.

        Returns:
            The arrays ``odd_ids``, ``odd_offsets`` and ``odd_rows`` that are stored with the part.
        """
        import npids

        odd: list[int] = []
        texts: list[bytes] = []
        with npids.Lookup.builder(str(path)) as builder:
            builder.formats = {_FORM: builder.formats[_FORM]}
            builder.seeded_formats = dict(builder.formats)
            for row, name in enumerate(ids):
                key = _key(name)
                if key is not name:
                    odd.append(row)
                    texts.append(name.encode("utf-8", "surrogatepass"))
                builder.add(key)
            for key in _PADDING:
                builder.add(key)
        return {
            "odd_ids": np.frombuffer(b"".join(texts), dtype=np.uint8),
            "odd_offsets": np.cumsum([0, *map(len, texts)], dtype=np.int64),
            "odd_rows": np.asarray(odd, dtype=np.int64),
        }

    def rows(self, keys: Keys) -> Rows:
        """Look up the rows of ids: int64 ``[len(keys)]``, -1 for one that is not in it."""
        if not len(keys) or not self.count:
            return np.full(len(keys), -1, dtype=np.int64)
        if unpacked := self._unpacked(len(keys)):
            return unpacked.rows(keys)
        found = np.array(self._lookup.inv.lookup(keys), dtype=np.int64)
        found[found >= self.count] = -1
        return found

    def texts(self, rows: Rows) -> list[str]:
        """Return the ids of some rows."""
        if not len(rows):
            return []
        unpacked = self._unpacked(len(rows))
        keys: Keys = unpacked.keys[rows] if unpacked else self._lookup.fwd.lookup(rows, as_bytes=True)
        names: list[str] = keys.astype(np.str_).tolist()
        if self._odd:
            for place in [place for place, name in enumerate(names) if name.startswith(_ODD)]:
                names[place] = self._odd[int(rows[place])]
        return names

    def _unpacked(self, asked: int) -> _Unpacked | None:
        """Return the table in memory, once more ids were asked for than it has; npids' own copy of the file goes."""
        self._asked += asked
        if self._table is None and self._asked > self.count:
            self._table = _Unpacked(self._lookup.fwd.lookup(np.arange(self.count), as_bytes=True))
            self._lookup = None
        return self._table

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        for start in range(0, self.count, _AT_ONCE):
            yield from self.texts(np.arange(start, min(start + _AT_ONCE, self.count)))


class _Unpacked:
    """All keys of a table in memory, by row and by hash: several times as fast as the file.

    A build looks up the ids of each part in every other, a ranking reads a thousand of them. An id costs its key, and a
    dozen bytes once rows are looked up.
    """

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    @cached_property
    def _by_hash(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
        """The hashes of the keys, ascending, and their rows."""
        hashes = _hashes(self.keys)
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        return hashes[order], order

    def rows(self, keys: Keys) -> Rows:
        """Look up the row of each key: int64 ``[len(keys)]``, -1 for none."""
        known, order = self._by_hash
        hashes = _hashes(keys)
        places = np.minimum(np.searchsorted(known, hashes), len(self.keys) - 1)
        there = np.flatnonzero(known[places] == hashes)
        rows = order[places[there]]
        same = self.keys[rows] == keys[there]
        found = np.full(len(keys), -1, dtype=np.int64)
        found[there[same]] = rows[same]
        for place in there[~same].tolist():  # another key has the same hash
            found[place] = next(iter(np.flatnonzero(self.keys == keys[place])), -1)
        return found


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
    return np.asarray([_key(name).encode() for name in ids], dtype=np.bytes_)


def _key(name: str) -> str:
    """Return the id itself where npids can store it, else a digest of it."""
    if _PLAIN.fullmatch(name):
        return name
    return _ODD + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _hashes(keys: Keys) -> npt.NDArray[np.uint64]:
    """Hash each key, independent of its padding: uint64 ``[len(keys)]``."""
    size = keys.dtype.itemsize
    padded = np.zeros((len(keys), size + -size % 8), dtype=np.uint8)
    padded[:, :size] = np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), size)
    words = padded.view("<u8")
    factors = np.random.default_rng(0).integers(1, 1 << 63, 16, dtype=np.uint64)[: words.shape[1]] * 2 + 1
    sums: npt.NDArray[np.uint64] = (words * factors).sum(axis=1, dtype=np.uint64)
    return sums ^ sums >> np.uint64(32)
