"""An index as it was when it was opened: its shards, counted through, whatever is written meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import Field, Numbers, Rows
from .errors import IndexCorruptError, UnknownDocnoError
from .files import META_NAME, texts_of
from .meta import IndexMeta, read_meta
from .records import Entry
from .shard import Shard
from .texts import hash_texts

_READ = 4096


class Snapshot:
    """All shards of an index; documents are numbered from 0 through all of them, in the order of the shards.

    Args:
        path: the index's folder.

    Raises:
        NotAnIndexError: there is no built index.
        IndexFormatError: it has a format this release does not read.
        IndexCorruptError: a file is missing, cut short or changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.signature = signature(path)
        self.meta, self.shards = _open(path)
        self.bases: Numbers = np.cumsum([0, *map(len, self.shards)], dtype=np.int64)
        self.caches: dict[str, Any] = {}
        """Structures made on first use from this snapshot (graphs of an approximate search), by name."""

    def __len__(self) -> int:
        return int(self.bases[-1])

    @cached_property
    def max_norm(self) -> float:
        """The length of the longest row, rounded up."""
        return max((shard.meta.max_norm for shard in self.shards), default=0.0)

    def find(self, docnos: Sequence[str]) -> Numbers:
        """The number of each document.

        Args:
            docnos: any docnos, the same one any number of times.

        Returns:
            int64, one for each docno.

        Raises:
            UnknownDocnoError: some are not in the index; it names them.
        """
        hashes = hash_texts(docnos)
        numbers = np.full(len(docnos), -1, dtype=np.int64)
        for base, shard in zip(self.bases, self.shards, strict=False):
            found = shard.find(docnos, hashes)
            np.copyto(numbers, found + base, where=found >= 0)
        if (numbers < 0).any():
            raise UnknownDocnoError(self.path, [docnos[i] for i in np.flatnonzero(numbers < 0).tolist()])
        return numbers

    def _by_shard(self, numbers: Numbers) -> Iterator[tuple[Shard, Numbers, Numbers]]:
        """Each shard that holds some of the documents, their places in ``numbers``, and their numbers in the shard."""
        order = np.argsort(numbers, kind="stable")
        rising = numbers[order]
        cuts = np.searchsorted(rising, self.bases).tolist()
        for shard, base, (first, last) in zip(self.shards, self.bases.tolist(), pairwise(cuts), strict=False):
            if first < last:
                yield shard, order[first:last], rising[first:last] - base

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """One text (``docno``, ``post_id`` …) of each document."""
        found = np.empty(len(numbers), dtype=object)
        for shard, places, local in self._by_shard(numbers):
            found[places] = shard.texts(name, local)
        return list(found)

    def lengths(self, numbers: Numbers, field: Field = "all") -> Numbers:
        """The number of rows of each document in one field: int64 ``[m]``."""
        lengths = np.empty(len(numbers), dtype=np.int64)
        for shard, places, local in self._by_shard(numbers):
            _, offsets = shard.field(field)
            lengths[places] = offsets[local + 1] - offsets[local]
        return lengths

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """The vectors of some documents, end to end.

        Args:
            numbers: int64 ``[m]``, documents in any order; fastest where they rise.
            field: all vectors of each, or its document's alone.

        Returns:
            float32 ``[r, d]`` and int64 ``[m + 1]``, where each document's rows begin and the last one's end.
        """
        lengths = self.lengths(numbers, field)
        ends = np.zeros(len(numbers) + 1, dtype=np.int64)
        np.cumsum(lengths, out=ends[1:])
        gathered = np.empty((int(ends[-1]), self.meta.dimensions), dtype=np.float32)
        rising = bool((numbers[1:] > numbers[:-1]).all())
        for shard, places, local in self._by_shard(numbers):
            rows, offsets = shard.field(field)
            found = np.take(rows, _ranges(offsets[local], lengths[places]), axis=0)
            if rising:  # those of one shard lie together
                gathered[ends[places[0]] : ends[places[-1] + 1]] = found
            else:
                gathered[_ranges(ends[places], lengths[places])] = found
        return gathered, ends

    def verify(self) -> None:
        """Read the whole index and compare every checksum.

        Raises:
            IndexCorruptError: a file was changed since it was written.
        """
        for shard in self.shards:
            shard.verify()


def entries(snapshot: Snapshot, numbers: Numbers) -> Iterator[Entry]:
    """Read some documents as they were given, a few at a time and in the order of ``numbers``."""
    for start in range(0, len(numbers), _READ):
        some = numbers[start : start + _READ]
        rows, offsets = snapshot.rows(some)
        texts = zip(*(snapshot.texts(name, some) for name in texts_of(snapshot.meta.layout)), strict=True)
        for of, (first, last) in zip(texts, pairwise(offsets.tolist()), strict=True):
            yield Entry(of, rows[first:last])


def signature(path: Path) -> tuple[int, int, int]:
    """What changes when ``pt_meta.json`` is swapped: inode, time and size; zeros where there is none."""
    try:
        found = os.stat(path / META_NAME)
    except (FileNotFoundError, NotADirectoryError):
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _open(path: Path) -> tuple[IndexMeta, tuple[Shard, ...]]:
    """Open what ``pt_meta.json`` names; where a writer swapped it in between, open what it names now."""
    meta = read_meta(path)
    while True:
        try:
            return meta, tuple(Shard(path / shard.name, meta.layout, meta.dtype, shard) for shard in meta.shards)
        except FileNotFoundError as error:
            now = read_meta(path)
            if now == meta:
                raise IndexCorruptError(Path(error.filename or path), "it is missing") from error
            meta = now


def _ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """The integers of each range ``[start, start + length)``, end to end."""
    ends = np.cumsum(lengths)
    steps = np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
    ranges: Numbers = steps + np.repeat(starts - (ends - lengths), lengths)
    return ranges
