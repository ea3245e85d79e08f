"""One part, opened: its arrays by memory map, its ids, and which of its rows were deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.store.errors import DamagedError, unreadable
from pyterrier_mathamr.store.files import (
    Array,
    FileSum,
    file_sum,
    map_arrays,
    remove,
    settled,
    sync_folder,
    write_arrays,
)
from pyterrier_mathamr.store.kind import ARRAYS, IDS, Content, Field, Kind
from pyterrier_mathamr.store.manifest import Marks, PartMeta

from .ids import IdTable, Keys, Rows

MARKS = np.dtype("<i8")


class Part:
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
            self._bind()
            self.ids = IdTable(self.sound(IDS), meta.count, {name: self[name] for name in _ODD})
        self.deleted: Rows = _read_marks(root, meta.deleted, meta.count)

    def _bind(self) -> None:
        try:
            for field in self.kind.arrays:
                field.bind(self._arrays[field.name], self._extents)
        except (KeyError, ValueError) as error:
            raise DamagedError(self.path / ARRAYS, f"its arrays are not those declared ({error})") from error

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
        """Return an array, deleted rows included."""
        array = self._arrays[name]
        if name not in self._checked:
            try:
                self._field(name).check(array, self._extents)
            except ValueError as error:
                raise DamagedError(self.path / ARRAYS, str(error)) from error
            self._checked.add(name)
        return array

    def _field(self, name: str) -> Field:
        return next(field for field in self.kind.arrays if field.name == name)

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
        """Return what is computed from the part on first use (a copy on a GPU) and kept with it."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def faults(self, read: Callable[[int], object] | None = None) -> Iterator[DamagedError]:
        """Read every file and compare its checksum; ``read`` is told how many bytes are read."""
        for name, written in self.meta.files.items():
            try:
                if file_sum(self.path / name, read) != written:
                    yield DamagedError(self.path / name, "its content was changed since it was written")
            except OSError as error:
                yield unreadable(error, self.path / name)
        for field in self.kind.arrays:
            try:
                self[field.name]
            except DamagedError as error:
                yield error


_ODD = ("odd_ids", "odd_offsets", "odd_rows")


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
        _check(arrays, kind, count)
        files[ARRAYS] = write_arrays(path / ARRAYS, arrays)
        files[IDS] = settled(path / IDS)
    sync_folder(path)
    return PartMeta(path.name, count, files, dict(content.details))


def _check(arrays: Mapping[str, Array], kind: Kind, count: int) -> None:
    extents = {"m": count}
    for field in kind.arrays:
        field.bind(arrays[field.name], extents)
    for field in kind.arrays:
        field.check(arrays[field.name], extents)


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
