"""The state of an index as a reader opened it: its parts, and their documents by number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pyterrier_mathamr.store import DamagedError, Kind, Part, Parts, detail, ranges
from pyterrier_mathamr.store import Snapshot as StoredSnapshot

from .building.entries import DTYPES, TEXTS, DType, Entry, Layout
from .float16 import widened
from .protocols import Codes, Field, Numbers, Rows, StoredRows, Weights


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """The width of the rows (0 while there are none), the model that made them, and how they are stored."""

    dimensions: int
    model: str | None
    dtype: DType

    @classmethod
    def read(cls, details: Mapping[str, Any], path: Path) -> IndexMeta:
        """Read the details of the manifest."""
        dimensions, name = detail(details, "dimensions", int, path), detail(details, "dtype", str, path)
        model = None if details.get("model") is None else detail(details, "model", str, path)
        dtype = next((known for known in DTYPES if known == name), None)
        if dtype is None or dimensions < 0:
            raise DamagedError(path, f"rows of {dimensions} numbers of {name!r:.80}")
        return cls(dimensions, model, dtype)


_READ = 4096


class Shard:
    """A part of vectors, and the arrays derived from it on first use."""

    def __init__(self, part: Part) -> None:
        self.part, self.kept = part, part.kept
        self.layout: Layout = "formulas" if part.kind.type == "formula_index" else "documents"
        self.max_norm = detail(part.meta.details, "max_norm", float, part.path.parent)
        if not 0 <= self.max_norm < math.inf:
            raise DamagedError(part.path.parent, f"the length {self.max_norm} of a row of {part.meta.name}")

    def __len__(self) -> int:
        """The number of documents, deleted ones included."""
        return len(self.part)

    @cached_property
    def _ones(self) -> Numbers:
        return np.arange(len(self) + 1, dtype=np.int64)

    @cached_property
    def _offsets(self) -> Numbers:
        offsets: Numbers = self.part["offsets"]
        if bool((offsets[1:] <= offsets[:-1]).any()):
            raise DamagedError(self.part.path, "a document of it has no rows")
        return offsets

    @cached_property
    def coding(self) -> tuple[Codes, Rows, Weights]:
        """The rows as codes, int8 ``[r, d]``, their scales, float32 ``[d]``, and error bounds, float64 ``[2]``."""
        codes, scales, bounds = (self.part[name] for name in ("codes", "scales", "code_bounds"))
        if not (np.isfinite(scales).all() and np.isfinite(bounds).all() and (scales > 0).all() and (bounds >= 0).all()):
            raise DamagedError(self.part.path, "the scales or bounds of its codes are not positive numbers")
        return codes, scales, bounds

    def field(self, field: Field) -> tuple[StoredRows, Numbers]:
        """Return the vectors of one field as they are stored, end to end."""
        if self.layout == "formulas":
            return self.part["rows"], self._ones
        if field == "doc":
            return self.part["document_vectors"], self._ones
        return self.part["rows"], self._offsets

    def live_rows(self, field: Field) -> StoredRows:
        """Return the vectors of one field without those of deleted documents."""
        rows, offsets = self.field(field)
        if not len(self.part.deleted):
            return rows
        live = np.flatnonzero(self.part.alive)
        left: StoredRows = rows[ranges(offsets[live], offsets[live + 1] - offsets[live])]
        return left

    def in_order(self) -> Numbers:
        """Return the documents that are not deleted, in the order of indexing."""
        if self.layout == "formulas":
            return np.flatnonzero(self.part.alive)
        order = np.argsort(self.part["arrival"], kind="stable")
        return order[self.part.alive[order]]

    def texts(self, name: str, documents: Numbers) -> list[str]:
        """Return one text (``docno``, ``post_id`` …) of some documents."""
        if name == "docno":
            return self.part.ids.texts(documents)
        offsets, view = self.part[f"{name}_offsets"], self.part[name].data
        bounds = zip(offsets[documents].tolist(), offsets[documents + 1].tolist(), strict=True)
        try:
            return [str(view[start:end], "utf-8", "surrogatepass") for start, end in bounds]
        except UnicodeDecodeError as error:
            raise DamagedError(self.part.path, f"its {name} are not UTF-8") from error


class VectorParts(Parts):
    """Parts of vectors as one: documents are numbered from 0 through all of them, deleted ones included."""

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """The parts."""
        return tuple(map(Shard, self.parts))

    @cached_property
    def max_norm(self) -> float:
        """The length of the longest row, rounded up."""
        return max((shard.max_norm for shard in self.shards), default=0.0)

    def _by_shard(self, numbers: Numbers) -> Iterator[tuple[Shard, Numbers, Numbers]]:
        """Return each shard with some of the documents, their places in ``numbers``, and their numbers in the shard."""
        shard_of = dict(zip(self.parts, self.shards, strict=True))
        return ((shard_of[part], places, local) for part, places, local in self.by_part(numbers))

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """Return one text (``docno``, ``post_id`` …) of each document."""
        found = np.empty(len(numbers), dtype=object)
        for shard, places, local in self._by_shard(numbers):
            found[places] = shard.texts(name, local)
        return list(found)

    def lengths(self, numbers: Numbers, field: Field = "all") -> Numbers:
        """Return the number of rows of each document in one field: int64 ``[m]``."""
        lengths = np.empty(len(numbers), dtype=np.int64)
        for shard, places, local in self._by_shard(numbers):
            _, offsets = shard.field(field)
            lengths[places] = offsets[local + 1] - offsets[local]
        return lengths

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """Return the vectors of some documents, end to end."""
        lengths = self.lengths(numbers, field)
        ends = np.zeros(len(numbers) + 1, dtype=np.int64)
        np.cumsum(lengths, out=ends[1:])
        width = self.parts[0]["rows"].shape[1] if self.parts else 0
        gathered = np.empty((int(ends[-1]), width), dtype=np.float32)
        ascending = bool((numbers[1:] > numbers[:-1]).all())
        for shard, places, local in self._by_shard(numbers):
            rows, offsets = shard.field(field)
            found = np.take(rows, ranges(offsets[local], lengths[places]), axis=0)
            if ascending:  # the rows of one shard lie together
                widened(found, gathered[ends[places[0]] : ends[places[-1] + 1]])
            else:
                gathered[ranges(ends[places], lengths[places])] = found
        return gathered, ends

    def entries(self) -> Iterator[Entry]:
        """Yield every document in the order of indexing, read a few at a time."""
        for shard, base in zip(self.shards, self.bases.tolist(), strict=False):
            numbers = shard.in_order() + base
            for start in range(0, len(numbers), _READ):
                some = numbers[start : start + _READ]
                rows, offsets = self.rows(some)
                texts = zip(*(self.texts(name, some) for name in TEXTS[shard.layout]), strict=True)
                for of, (first, last) in zip(texts, pairwise(offsets.tolist()), strict=True):
                    yield Entry(of, rows[first:last])


class Snapshot(StoredSnapshot, VectorParts):
    """All parts of an index; documents are numbered from 0 through all of them, deleted ones included.

    Args:
        path: the index's folder.
        kind: its kind.

    Raises:
        NotBuiltError: there is no finished index.
        OtherArtifactError: the folder contains something else.
        FormatError: this release does not read its format.
        DamagedError: a file is missing, truncated or was changed.
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        super().__init__(path, kind)
        self.meta = IndexMeta.read(self.manifest.details, path)
        for shard in self.shards:
            rows = shard.part["rows"]
            if rows.shape[1] != self.meta.dimensions or rows.dtype.name != self.meta.dtype:
                raise DamagedError(
                    shard.part.path,
                    f"its rows are {rows.dtype}{list(rows.shape)}, not {self.meta.dtype}[r, {self.meta.dimensions}]",
                )
