r"""Ids by row and rows by id: an ``npids`` file, and the few ids that it cannot store unchanged.

npids assumes text without NUL, reads numbers without their leading zeros, and pads each id to the longest. So a short
and plain id is stored unchanged, and any other as a digest, with the id itself in two arrays next to the file::

    plain     "154", "fcla-12-proof"      ids.npids:  154
    other     "été", "", "x" * 20_000     ids.npids:  \x1f and 24 hexadecimal digits      odd_ids, odd_offsets: the id

The file has the format of npids; it is read in place and written with the memory of one block::

    header │ block of ids │ block of ids │ … │ rows by the hash of their ids

npids itself copies each block into memory and looks ids up block by block; millions of ids have thousands of blocks.
Of its block formats only :data:`FORM` is written and read.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.ids import as_id

from .errors import DamagedError
from .files import Array, parse_object, scratch_array

Rows = npt.NDArray[np.int64]

FORM = "fixedbytes"
"""The one format of npids 0.1.3 that is lossless: ``hexdigest`` mistakes 123456 and 12345678 for digests of one length
and writes blocks that cannot be read, ``intsequence`` loses numbers that do not begin with 0."""

_HEADER = struct.Struct("<IqqI")  # kind, where the next header is or -1, ids, bytes of JSON that follow
_IDS, _BY_HASH = 0, 1
_BLOCK = 1 << 16
_MAPPED = 1 << 20  # bytes; a smaller file is read, so that an artifact of many small parts has fewer open


class IdFile:
    """Short plain ids by row, and rows by id, read from a file of npids."""

    def __init__(self, path: Path) -> None:
        small = path.stat().st_size < _MAPPED
        self._data: Array = np.fromfile(path, np.uint8) if small else np.memmap(path, np.uint8, "r")
        blocks: list[tuple[int, int, int]] = []  # ids before it, where it begins, bytes of an id
        prefixes: list[bytes] = []
        self._ends = self._order = np.zeros(0, dtype=np.uint32)
        self.count, header = 0, 0
        try:
            while header >= 0:
                kind, following, ids, length = _HEADER.unpack(self._data[header : header + _HEADER.size].tobytes())
                content = header + _HEADER.size + length
                about = parse_object(self._data[header + _HEADER.size : content].tobytes(), path)
                if kind == _IDS and about["format"] == FORM:
                    prefixes.append(about["prefix"].encode())
                    blocks.append((self.count, content, about["length"] - len(prefixes[-1])))
                    self.count += ids
                elif kind == _BY_HASH and about["format"] == "hash":
                    buckets = (1 << about["hash_bits"]) + 1
                    # uint32 that need not be aligned in the file
                    numbers = np.ndarray(buckets + ids, "<u4", buffer=self._data.data, offset=content)
                    self._ends, self._order = numbers[:buckets], numbers[buckets:]
                elif header:
                    raise ValueError(f"a block of the format {about.get('format')}")
                if 0 <= following <= header:
                    raise ValueError("blocks that go round")
                header = following
        except (struct.error, KeyError, TypeError, ValueError) as error:
            raise DamagedError(path, f"it is not a file of ids ({error!s:.200})") from error
        self._firsts, self._contents, self._widths = np.array(blocks, dtype=np.int64).reshape(-1, 3).T
        self._prefixes = np.array(prefixes or [b"-"], dtype=np.bytes_)
        self._starts = np.array(list(map(len, prefixes)), dtype=np.int64)

    def ids(self, rows: Rows) -> npt.NDArray[np.bytes_]:
        """Return the ids of rows, of at least one."""
        block = np.searchsorted(self._firsts, rows, side="right") - 1
        start, width = self._starts[block], self._widths[block]
        length = int((start + width).max())
        columns = np.arange(length)
        ids = self._prefixes.astype(f"S{max(length, self._prefixes.itemsize)}")[block]
        letters = ids.view(np.uint8).reshape(len(rows), -1)
        stored = (columns >= start[:, None]) & (columns < (start + width)[:, None])
        offsets = (self._contents[block] + (rows - self._firsts[block]) * width - start)[:, None] + columns
        letters[:, :length][stored] = self._data[offsets[stored]]
        return ids

    def rows(self, ids: npt.NDArray[np.bytes_], hashes: npt.NDArray[np.uint32]) -> Rows:
        """Look up the row of each id by its hash: int64 ``[len(ids)]``, -1 for one that is not in the file."""
        rows = np.full(len(ids), -1, dtype=np.int64)
        buckets = hashes & np.uint32(len(self._ends) - 2)
        next_in_bucket, ends = self._ends[buckets].astype(np.int64), self._ends[buckets + np.uint32(1)]
        left = np.flatnonzero(next_in_bucket < ends)
        while len(left):
            candidates = self._order[next_in_bucket[left]].astype(np.int64)
            same = self.ids(candidates) == ids[left]
            rows[left[same]] = candidates[same]
            left = left[~same]
            next_in_bucket[left] += 1
            left = left[next_in_bucket[left] < ends[left]]
        return rows


def hashes_of(ids: npt.NDArray[np.bytes_]) -> npt.NDArray[np.uint32]:
    """Hash ids as npids does, by their bytes without padding: uint32 ``[len(ids)]``."""
    from npids.codecs.inv_hash import fnv1_32

    hashes: npt.NDArray[np.uint32] = fnv1_32(ids) if len(ids) else np.zeros(0, dtype=np.uint32)
    return hashes


def write_id_file(path: Path, ids: Iterable[str]) -> None:
    """Write ``ids``, at least two and all different, to ``path`` in the order of their rows.

    npids reads any text without NUL, :class:`IdFile` printable ASCII.
    """
    import npids
    from npids.utils import FileManager

    with npids.Lookup.builder(str(path), build_inv=False) as builder:
        builder.formats = {FORM: builder.formats[FORM]}
        builder.seeded_formats = dict(builder.formats)
        for name in ids:
            builder.add(name)
    # the rows by hash, which npids would add with many times the memory
    file = IdFile(path)
    bits = (file.count - 1).bit_length()
    folder = path.parent if file.count > _BLOCK else None
    buckets, sizes = (scratch_array(folder, n, np.dtype(np.uint32)) for n in (file.count, 1 << bits))
    for start in range(0, file.count, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, file.count))
        buckets[rows] = hashes_of(file.ids(rows)) & np.uint32((1 << bits) - 1)
        np.add.at(sizes, buckets[rows], 1)
    order = np.argsort(np.asarray(buckets), kind="stable")
    about: dict[str, Any] = {"format": "hash", "hash_bits": bits, "hash_fn": "fnv1_32"}
    with FileManager(path, "a") as writer:
        writer.write_header(_BY_HASH, file.count, about)
        end = 0
        writer.write(bytes(4))
        for start in range(0, len(sizes), _BLOCK):
            ends = end + np.cumsum(sizes[start : start + _BLOCK], dtype=np.int64)
            writer.write(ends.astype("<u4").tobytes())
            end = int(ends[-1])
        for start in range(0, file.count, _BLOCK):
            writer.write(order[start : start + _BLOCK].astype("<u4").tobytes())


_PLAIN = re.compile(r"(?:[!-$&-/:-~]|[0-9](?![0-9]{17})){1,64}")  # printable ASCII but %, no number beyond 64 bits
_ODD = "\x1f"
_PADDING = ("\x1f-", "\x1f+")  # npids writes no fewer than two ids in a block
_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Ids in the form in which they are looked up: bytes ``[n]`` and uint32 ``[n]``."""

    names: npt.NDArray[np.bytes_]
    hashes: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, chosen: Rows) -> Keys:
        return Keys(self.names[chosen], self.hashes[chosen])


class IdTable:
    """The ids of the rows of one part."""

    def __init__(self, path: Path, count: int, arrays: Mapping[str, Array]) -> None:
        self.count, self._path = count, path
        self._file = IdFile(path)
        self._odd = tuple(arrays[name] for name in ("odd_ids", "odd_offsets", "odd_rows"))

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
        rows = self._file.rows(keys.names, keys.hashes)
        rows[rows >= self.count] = -1
        return rows

    def texts(self, rows: Rows) -> list[str]:
        names: list[str] = []
        for start in range(0, len(rows), _AT_ONCE):
            names += self._file.ids(rows[start : start + _AT_ONCE]).astype(np.str_).tolist()
        if len(self._odd[-1]):
            texts, offsets, odd_rows = self._odd
            for i in [i for i, name in enumerate(names) if name.startswith(_ODD)]:
                try:
                    number = int(np.searchsorted(odd_rows, rows[i]))
                    start, end = offsets[number : number + 2].tolist()
                    names[i] = bytes(texts[start:end]).decode("utf-8", "surrogatepass")
                except ValueError as error:
                    reason = f"the id of its row {rows[i]} cannot be read ({error})"
                    raise DamagedError(self._path.parent, reason) from error
        return names

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        for start in range(0, self.count, _AT_ONCE):
            yield from self.texts(np.arange(start, min(start + _AT_ONCE, self.count)))


def id_keys(ids: Sequence[str]) -> Keys:
    """Return the keys for looking up ids, also integers, which are the same in every part."""
    names = np.asarray([_key(as_id(name) or "").encode() for name in ids], dtype=np.bytes_)
    return Keys(names, hashes_of(names))


def _key(name: str) -> str:
    """Return the id itself where npids can store it, else a digest of it."""
    if _PLAIN.fullmatch(name):
        return name
    return _ODD + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
