"""The declaration of a kind of artifact, a part of one on disk, and several parts as one.

::

    VECTORS = Kind(
        type="multi_vector_index",
        version=3,
        fields=(
            Field("rows", "float32 float16", "r d"),              one of two dtypes; r rows of d numbers
            Field("offsets", "int64", "m+1", cuts="r"),           row i owns rows[offsets[i]:offsets[i + 1]]
            Field("order", "int32", "r", below="m"),              each value is a row of the part
        ),
        merge=merge_vectors,
        rebuild="mathamr index GRAPHS MODEL -o {path} --fresh",
    )

``m`` is the number of ids of a part; any other name is bound at its first use and must agree from then on.

Small parts are merged as they accumulate, in tiers, as Lucene does it: as soon as the last eight parts are of one tier
or below, they become one, which may complete the eight of the next tier. So an artifact has about eight parts for each
power of eight between the smallest and a full part, and one for each full part; each byte is rewritten once a tier::

    1 1 1 1 1 1 1 1  →  8        8 8 8 8 8 8 8 8  →  64        64 8 8 1 1 1
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.ids import as_id
from pyterrier_mathamr._common.running.processes import runs_within

from .errors import DamagedError, StoreError, unreadable
from .files import Array, FileSum, file_sum, map_arrays, remove, settled, sync_folder, write_arrays
from .ids import IdTable, Keys, Rows, id_keys

PACKAGE = "pyterrier-mathamr"
ARRAYS, IDS = "arrays.safetensors", "ids.npids"
MARKS = np.dtype("<i8")
PART_BYTES = 64 << 20
"""Size of a full part: parts that are smaller are merged as they accumulate."""


@dataclass(frozen=True, slots=True)
class Field:
    """One array of a part.

    Attributes:
        name: of the array.
        dtypes: one dtype or several, separated by a space.
        shape: its extents as letters, ``m+1`` for one more, a number for a fixed extent.
        cuts: the values ascend from 0 to this extent.
        below: the values are at least 0 and below this extent.
        optional: some parts lack it, of another dtype or an earlier release.
    """

    name: str
    dtypes: str
    shape: str
    cuts: str = ""
    below: str = ""
    optional: bool = False

    def bind(self, array: Array, extents: dict[str, int]) -> None:
        """Check dtype and shape of ``array``, and add new extents, by letter, to ``extents``; else ``ValueError``."""
        names = self.shape.split()
        if array.dtype.name not in self.dtypes.split() or array.ndim != len(names):
            raise ValueError(f"{self.name} is {array.dtype}{list(array.shape)}, not {self.dtypes} [{self.shape}]")
        for name, extent in zip(names, array.shape, strict=True):
            letter, _, more = name.partition("+")
            least = int(more or 0)
            known = int(letter) if letter.isdigit() else extents.setdefault(letter, extent - least)
            if extent < least or known != extent - least:
                raise ValueError(f"{self.name} has {extent} where {name} is {known} (+{least})")

    def check(self, array: Array, extents: Mapping[str, int]) -> None:
        """Check that no value of ``array`` points outside the array that has its extent in ``extents``."""
        if self.cuts and (array[0] != 0 or array[-1] != extents[self.cuts] or bool(np.any(array[1:] < array[:-1]))):
            raise ValueError(f"{self.name} does not ascend from 0 to {extents[self.cuts]}")
        if self.below and array.size and not 0 <= int(array.min()) <= int(array.max()) < extents[self.below]:
            raise ValueError(f"{self.name} has values outside 0 … {extents[self.below] - 1}")


ODD_IDS = (
    Field("odd_ids", "uint8", "odd_bytes"),
    Field("odd_offsets", "int64", "odd+1", cuts="odd_bytes"),
    Field("odd_rows", "int64", "odd", below="m"),
)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a part.

    Attributes:
        ids: of its rows, all different.
        arrays: by the names of the kind's fields.
        details: further values of the part, kept in the manifest.
        files: further files by name; they are moved into the part.
        count: number of rows, for a kind without fields and so without ids.
    """

    ids: Collection[str] = ()
    arrays: Mapping[str, Array] = dataclasses.field(default_factory=dict)
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    files: Mapping[str, Path] = dataclasses.field(default_factory=dict)
    count: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of artifact.

    Attributes:
        type: PyTerrier's type of the artifact.
        version: number of the format that is written, and the only one that is read.
        rebuild: the command or call that rebuilds such an artifact; ``{path}`` is replaced.
        fields: the arrays of a part, in addition to its ids; a kind without fields has no ids either, only files.
        files: names of further files of a part; an artifact without any has no parts but consists of other artifacts.
        merge: merges several neighboring parts, without deleted rows; ``None`` if parts are never merged.
        part_bytes: size of a full part, which is not merged again.
        format: PyTerrier's format of the artifact.
    """

    type: str
    version: int
    rebuild: str
    fields: tuple[Field, ...] = ()
    files: tuple[str, ...] = ()
    merge: Callable[[Sequence[StoredPart]], Content] | None = None
    part_bytes: int = PART_BYTES
    format: str = "mathamr"

    @property
    def name(self) -> str:
        """PyTerrier's name of it: type and format."""
        return f"{self.type}.{self.format}"

    @property
    def about(self) -> dict[str, object]:
        """PyTerrier's keys of the manifest."""
        return {"type": self.type, "format": self.format, "package_hint": PACKAGE, "format_version": self.version}

    @property
    def arrays(self) -> tuple[Field, ...]:
        """All arrays of a part, also those of its ids."""
        return (*self.fields, *ODD_IDS) if self.fields else ()

    def fields_in(self, names: Container[str]) -> list[Field]:
        """List the arrays that a part has: all but the optional ones that are not among these names."""
        return [field for field in self.arrays if not field.optional or field.name in names]

    @property
    def file_names(self) -> frozenset[str]:
        return frozenset(self.files) | (frozenset({ARRAYS, IDS}) if self.fields else frozenset())


@dataclass(frozen=True, slots=True)
class Marks:
    """The file of the rows of a part that were deleted: int64, ascending."""

    name: str
    count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PartMeta:
    """One part in a manifest.

    Attributes:
        name: of its folder.
        count: its rows, deleted ones included.
        files: size and SHA-256 of each file.
        details: of the artifact's kind.
        deleted: the file that lists deleted rows; ``None`` where there is none.
    """

    name: str
    count: int
    files: Mapping[str, FileSum]
    details: Mapping[str, Any]
    deleted: Marks | None = None

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())

    @property
    def live(self) -> int:
        """Rows that are not deleted."""
        return self.count - (self.deleted.count if self.deleted else 0)


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
        """Return the path of a file that is parsed as a whole, after its checksum was compared."""
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
    """Make one part of several by their kind's function."""
    kind = parts[0].kind
    for part in parts:
        if fault := next(part.faults(), None):  # which a new checksum would hide
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
            local = self.parts[number].find(keys[left])
            hits = local >= 0
            if hits.any():
                rows[left[hits]] = local[hits] + self.bases[number]
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
        for part, asked, local in self.by_part(rows):
            ids[asked] = part.ids.texts(local)
        return list(ids)
