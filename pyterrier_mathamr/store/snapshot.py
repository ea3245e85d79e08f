"""An artifact as a reader opened it, unaffected by later writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .errors import UnknownIdError, unreadable
from .kind import META, Kind
from .manifest import Manifest, read_manifest
from .parts.ids import Rows, id_keys
from .parts.part import Part


class Parts:
    """Several parts as one: rows are numbered from 0 through all of them, deleted rows included.

    Args:
        parts: in the order of their rows.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self.bases: Rows = np.cumsum([0, *map(len, self.parts)], dtype=np.int64)
        self._last = 0  # the part where ids were found last; the next ones are likely there

    def __len__(self) -> int:
        """The number of rows that are not deleted."""
        return sum(part.meta.live for part in self.parts)

    @cached_property
    def live(self) -> Rows:
        """The rows that are not deleted, ascending."""
        alive = [np.flatnonzero(part.alive) + base for part, base in zip(self.parts, self.bases, strict=False)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *alive])

    def look_up(self, ids: Sequence[str]) -> Rows:
        """Look up the row of each id: int64 ``[len(ids)]``, -1 for one that is not in them."""
        rows = np.full(len(ids), -1, dtype=np.int64)
        keys, left = id_keys(ids), np.arange(len(ids))
        for number in sorted(range(len(self.parts)), key=lambda number: number != self._last):  # no id is live in two
            if not left.size:
                break
            found = self.parts[number].find(keys[left])
            hits = found >= 0
            if hits.any():
                rows[left[hits]] = found[hits] + self.bases[number]
                left, self._last = left[~hits], number
        return rows

    def by_part(self, rows: Rows) -> Iterator[tuple[Part, Rows, Rows]]:
        """Yield each part that holds some of the rows, their places in ``rows``, and their numbers in the part."""
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        cuts = np.searchsorted(ascending, self.bases).tolist()
        for part, base, (first, last) in zip(self.parts, self.bases.tolist(), pairwise(cuts), strict=False):
            if first < last:
                yield part, order[first:last], ascending[first:last] - base

    def ids(self, rows: Rows) -> list[str]:
        """Return the ids of some rows, in their order."""
        found = np.empty(len(rows), dtype=object)
        for part, places, local in self.by_part(rows):
            found[places] = part.ids.texts(local)
        return list(found)

    def __iter__(self) -> Iterator[str]:
        """Yield the ids that are not deleted, in the order of their rows."""
        for part in self.parts:
            alive = part.alive
            yield from (name for row, name in enumerate(part.ids) if alive[row])


class Snapshot(Parts):
    """An artifact as it was when it was opened.

    Args:
        path: the artifact's folder.
        kind: its declaration.

    Raises:
        NotBuiltError, OtherArtifactError, FormatError, DamagedError: see :func:`read_manifest` and :class:`Part`.
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path, self.kind = path, kind
        self.signature = signature(path)
        self.manifest, parts = _open(path, kind)
        super().__init__(parts)
        self.caches: dict[str, Any] = {}
        """What is computed from this snapshot on first use (graphs of an approximate search), by name."""

    @cached_property
    def identity(self) -> str:
        """What identifies this state of the artifact: the checksum of its manifest."""
        return self.manifest.checksum(self.kind)

    def find(self, ids: Sequence[str]) -> Rows:
        """Look up the row of each id.

        Args:
            ids: any ids, with or without repetitions.

        Returns:
            int64 ``[len(ids)]``.

        Raises:
            UnknownIdError: some are not in it; it names them.
        """
        rows = self.look_up(ids)
        if (rows < 0).any():
            raise UnknownIdError(self.path, [ids[i] for i in np.flatnonzero(rows < 0).tolist()])
        return rows


def signature(path: Path) -> tuple[int, int, int]:
    """Return what changes when the manifest is swapped: inode, time and size; zeros where there is none."""
    try:
        found = os.stat(path / META)
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _open(path: Path, kind: Kind) -> tuple[Manifest, tuple[Part, ...]]:
    """Open the parts that the manifest names; if a writer swaps it meanwhile, those of the new one."""
    manifest = read_manifest(path, kind)
    while True:
        try:
            return manifest, tuple(Part(path, meta, kind, path) for meta in manifest.parts)
        except OSError as error:
            now = read_manifest(path, kind)
            if now == manifest:
                raise unreadable(error, path) from error
            manifest = now
