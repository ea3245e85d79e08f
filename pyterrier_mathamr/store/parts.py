"""A part of an artifact, several of them as one, and the snapshot that a reader opened, unaffected by later writes.

A part has its arrays by memory map, its ids, and which of its rows were deleted.

Small parts are merged as they accumulate, in tiers, as Lucene does it: as soon as the last eight parts are of one tier
or below, they become one, which may complete the eight of the next tier. So an artifact has about eight parts for each
power of eight between the smallest and a full part, and one for each full part; each byte is rewritten once a tier::

    1 1 1 1 1 1 1 1  →  8        8 8 8 8 8 8 8 8  →  64        64 8 8 1 1 1
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.ids import as_id
from pyterrier_mathamr._common.running.processes import runs_within

from .errors import DamagedError, StoreError, UnknownIdError, unreadable
from .files import Array, FileSum, file_sum, map_arrays, remove, settled, sync_folder, write_arrays
from .ids import IdTable, Keys, Rows, id_keys
from .manifest import ARRAYS, IDS, META, ODD_IDS, Content, Kind, Marks, PartMeta, read_manifest

MARKS = np.dtype("<i8")


class StoredPart:
    """A part that is read. Its files are opened at once, so that a later overwrite does no harm.

    Opening compares sizes, headers, and the checksums of files that are parsed (ids, marks); :meth:`faults` reads the
    rest. An array whose values point into others is checked at its first use.

    Args:
        folder: the folder that holds the part.
        meta: its entry in the manifest.
        kind: the declaration.
        root: the folder that holds the marks of deleted rows.

    Raises:
        FileNotFoundError: a file is gone; the caller checks whether the artifact was replaced meanwhile.
        DamagedError: a file was changed since it was written.
    """

    def __init__(self, folder: Path, meta: PartMeta, kind: Kind, root: Path) -> None:
        self.path, self.meta, self.kind = folder / meta.name, meta, kind
        self._arrays: dict[str, Array] = {}
        self._extents = {"m": meta.count}
        self._checked: set[str] = set()
        self._kept: dict[str, Any] = {}
        if missing := sorted(kind.file_names - set(meta.files)):
            raise DamagedError(self.path, f"the manifest does not name its {missing[0]}")
        for name, file in meta.files.items():
            if (size := (self.path / name).stat().st_size) != file.size:
                raise DamagedError(self.path / name, f"it has {size} bytes where {file.size} were written")
        if kind.fields:
            self._arrays = map_arrays(self.path / ARRAYS)
            try:
                for field in kind.fields_in(self._arrays):
                    field.bind(self._arrays[field.name], self._extents)
            except (KeyError, ValueError) as error:
                raise DamagedError(self.path / ARRAYS, f"its arrays are not those declared ({error})") from error
            self.ids = IdTable(self.sound(IDS), meta.count, {field.name: self[field.name] for field in ODD_IDS})
        self.deleted: Rows = _read_marks(root, meta.deleted, meta.count)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def sound(self, name: str) -> Path:
        """Return the path of a file that is parsed as a whole, after its checksum was compared.

        Raises:
            DamagedError: it was changed.
        """
        if file_sum(self.path / name) != self.meta.files[name]:
            raise DamagedError(self.path / name, "its content was changed since it was written")
        return self.path / name

    def __len__(self) -> int:
        return self.meta.count

    def __getitem__(self, name: str) -> Array:
        array = self._arrays[name]
        if name not in self._checked:
            try:
                next(field for field in self.kind.arrays if field.name == name).check(array, self._extents)
            except ValueError as error:
                raise DamagedError(self.path / ARRAYS, str(error)) from error
            self._checked.add(name)
        return array

    @cached_property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Which rows are not deleted: bool ``[m]``."""
        alive = np.ones(len(self), dtype=np.bool_)
        alive[self.deleted] = False
        return alive

    def find(self, keys: Keys) -> Rows:
        """Look up the row of each key: int64 ``[len(keys)]``, -1 for one that is not in it or was deleted."""
        if not self.kind.fields:
            return np.full(len(keys), -1, dtype=np.int64)
        rows = self.ids.rows(keys)
        if len(self.deleted):
            rows[(rows >= 0) & ~self.alive[rows]] = -1
        return rows

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Call ``make`` on first use, such as for a copy on a GPU, and keep its result with the part as ``name``."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def faults(self, read: Callable[[int], object] | None = None) -> Iterator[StoreError]:
        """Read every file and compare its checksum; ``read`` is called with the number of bytes of each read."""
        for name, written in self.meta.files.items():
            try:
                if file_sum(self.path / name, read) != written:
                    yield DamagedError(self.path / name, "its content was changed since it was written")
            except OSError as error:
                yield unreadable(error, self.path / name)
        for field in self.kind.fields_in(self._arrays):
            try:
                self[field.name]
            except DamagedError as error:
                yield error


def write_part(path: Path, content: Content, kind: Kind) -> PartMeta:
    """Write a part into a new folder, every file synced."""
    remove(path)  # of a job that was killed here
    path.mkdir()
    files: dict[str, FileSum] = {}
    for name, source in content.files.items():
        files[name] = settled(source)  # before it is moved: a job that is killed here still finds it
        source.rename(path / name)
    count = len(content.ids) if kind.fields else content.count
    if kind.fields:
        arrays = {**content.arrays, **IdTable.write(path / IDS, content.ids)}
        extents = {"m": count}
        for field in kind.fields_in(arrays):
            field.bind(arrays[field.name], extents)
        for field in kind.fields_in(arrays):
            field.check(arrays[field.name], extents)
        files[ARRAYS] = write_arrays(path / ARRAYS, arrays)
        files[IDS] = settled(path / IDS)
    sync_folder(path)
    return PartMeta(path.name, count, files, dict(content.details))


def _read_marks(root: Path, marks: Marks | None, count: int) -> Rows:
    """Read the deleted rows of a part."""
    if marks is None:
        return np.zeros(0, dtype=np.int64)
    path = root / marks.name
    if file_sum(path) != FileSum(marks.count * MARKS.itemsize, marks.sha256):
        raise DamagedError(path, "its content was changed since it was written")
    rows: Rows = np.fromfile(path, dtype=MARKS).astype(np.int64)
    if len(rows) and not (rows[0] >= 0 and rows[-1] < count and bool(np.all(rows[1:] > rows[:-1]))):
        raise DamagedError(path, f"it does not list rows of {count}")
    return rows


_FACTOR = 8
_AT_ONCE = 4096
_SMALLEST = 1 << 16  # bytes; all parts below are of the lowest tier


def parts_to_merge(sizes: Sequence[int], full: int) -> range | None:
    """Choose the neighbors to merge now."""
    last = len(sizes)
    while last and 2 * sizes[last - 1] < full:
        first = last - 1
        while first and 2 * sizes[first - 1] < full and _tier(sizes[first - 1]) <= _tier(sizes[last - 1]):
            first -= 1
        if last - first >= _FACTOR and len(run := runs_within(sizes[first:last], full)[0]) > 1:
            return range(first, first + len(run))
        last = first
    return None


def _tier(size: int) -> int:
    return 0 if size < _SMALLEST else 1 + int(math.log(size / _SMALLEST, _FACTOR))


def merged(parts: Sequence[StoredPart]) -> Content:
    """Make one part of several by their kind's function.

    Raises:
        DamagedError: a file of theirs was changed, which a new checksum would hide.
    """
    kind = parts[0].kind
    for part in parts:
        if fault := next(part.faults(), None):
            raise fault
    if kind.merge is None:
        raise TypeError(f"parts of {kind.name} are not merged")
    return kind.merge(parts)


def merge_ragged(parts: Sequence[StoredPart]) -> Content:
    """Concatenate parts without their deleted rows.

    For kinds whose arrays are ``[m, …]``, or ``[r, …]`` with offsets ``[m+1]`` that cut ``r``.
    """
    fields = parts[0].kind.fields
    pieces = {field.name: [parts[0][field.name][:0]] for field in fields}
    for part in parts:
        runs = np.flatnonzero(np.diff(part.alive, prepend=False, append=False)).reshape(-1, 2)  # of live rows
        cuts = {"m": runs, **{field.cuts: part[field.name][runs] for field in fields if field.cuts}}
        for field in fields:
            array = part[field.name]
            for start, end in cuts["m" if field.cuts else field.shape.split()[0]].tolist():
                # the lengths of rows instead of their offsets
                pieces[field.name].append(np.diff(array[start : end + 1]) if field.cuts else array[start:end])
    arrays = {name: np.concatenate(of_parts) for name, of_parts in pieces.items()}
    for field in fields:
        if field.cuts:
            lengths = arrays[field.name]
            arrays[field.name] = np.cumsum(np.append(np.zeros(1, dtype=np.int64), lengths), dtype=np.int64)
    return Content(Parts(parts), arrays, parts[0].meta.details)


def ranges(starts: Rows, lengths: Rows) -> Rows:
    """Return the integers of each range ``[start, start + length)``, from ``starts`` and ``lengths``, end to end."""
    ends = np.cumsum(lengths)
    steps = np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
    integers: Rows = steps + np.repeat(starts - (ends - lengths), lengths)
    return integers


class Parts(Collection[str]):
    """Several parts as one: a collection of the ids that are not deleted, read when needed, in the order of their rows.

    Rows are numbered from 0 through all parts, deleted rows included.
    """

    def __init__(self, parts: Sequence[StoredPart]) -> None:
        self.parts = tuple(parts)
        self.bases: Rows = np.cumsum([0, *map(len, self.parts)], dtype=np.int64)
        self._last = 0  # the part where ids were found last; it probably has the next ones, too

    def __len__(self) -> int:
        return sum(len(part) - len(part.deleted) for part in self.parts)

    def __iter__(self) -> Iterator[str]:
        for part in self.parts:
            for start in range(0, len(part), _AT_ONCE):
                yield from part.ids.texts(start + np.flatnonzero(part.alive[start : start + _AT_ONCE]))

    def __contains__(self, id: object) -> bool:
        name = as_id(id)
        return name is not None and bool(self.look_up([name])[0] >= 0)

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

    def by_part(self, rows: Rows) -> Iterator[tuple[StoredPart, Rows, Rows]]:
        """Yield each part that holds some of the rows, their places in ``rows``, and their numbers in the part."""
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        cuts = np.searchsorted(ascending, self.bases).tolist()
        for part, base, (first, last) in zip(self.parts, self.bases.tolist(), pairwise(cuts), strict=False):
            if first < last:
                yield part, order[first:last], ascending[first:last] - base

    def ids(self, rows: Rows) -> list[str]:
        """Return the ids of some rows, in their order."""
        ids = np.empty(len(rows), dtype=object)
        for part, places, local in self.by_part(rows):
            ids[places] = part.ids.texts(local)
        return list(ids)


class Snapshot(Parts):
    """The artifact of a ``kind`` at ``path`` as it was when it was opened.

    Raises:
        NotBuiltError, OtherArtifactError, FormatError, DamagedError: see :func:`read_manifest` and :class:`StoredPart`.
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path, self.kind = path, kind
        self.signature = signature(path)
        self.manifest = read_manifest(path, kind)
        while True:
            try:
                super().__init__([StoredPart(path, meta, kind, path) for meta in self.manifest.parts])
                break
            except OSError as error:  # perhaps since a writer has swapped the manifest meanwhile
                now = read_manifest(path, kind)
                if now == self.manifest:
                    raise unreadable(error, path) from error
                self.manifest = now
        self.caches: dict[str, Any] = {}
        """Values computed from this snapshot on first use, such as graphs of an approximate search, by name."""

    @cached_property
    def identity(self) -> str:
        """The identity of this state of the artifact: the checksum of its manifest."""
        return self.manifest.checksum(self.kind)

    def find(self, ids: Sequence[str]) -> Rows:
        """Look up the row of each id: int64 ``[len(ids)]``.

        Raises:
            UnknownIdError: some are not in it; the error names them.
        """
        rows = self.look_up(ids)
        if (rows < 0).any():
            raise UnknownIdError(self.path, [ids[i] for i in np.flatnonzero(rows < 0).tolist()])
        return rows


def signature(path: Path) -> tuple[int, int, int]:
    """Return inode, time and size of the manifest, which change when it is swapped; zeros where there is none."""
    try:
        status = os.stat(path / META)
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_mtime_ns, status.st_size)
