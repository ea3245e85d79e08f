"""The parts of an index in a folder: entries, the arrays of a part, and parts read as one.

::

    Entry ──part_content──▶ a part of the store (DOCUMENTS, FORMULAS) ──▶ Shard ──▶ VectorParts

A row of a part is a document with all its virtual nodes, or one formula virtual node. Inside a part documents are
ordered by number of rows (then by arrival), so that a scan reads blocks of one shape without copying. Parts are cut by
the bytes of their rows in float32. ``m`` documents, ``r`` rows, ``d`` dimensions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr.store import Content, DamagedError, Kind, Parts, StoredPart, detail, ranges
from pyterrier_mathamr.store import Field as PartField

from .backend import GROUP, Array, Backend, Field, Numbers, Rows, ScaledRows, Sources, StoredRows, evenly
from .errors import EmbeddingError
from .search.int8 import Coding, encode_rows, packed_rows, scaled_rows
from .search.maxsim import widened

DType = Literal["float32", "float16", "int8", "int4"]
"""How the rows are stored; int8 and int4 have a scale for each row."""

DTYPES: tuple[DType, ...] = ("float32", "float16", "int8", "int4")

CODES: dict[DType, Callable[[Rows], ScaledRows]] = {"int8": scaled_rows, "int4": packed_rows}
"""The quantization of rows that are stored as codes."""

WIDE = 256  # numbers of a row, as of text encoders, from which rows are stored as int8 by default


def default_dtype(dimensions: int) -> DType:
    """Choose int8 for rows as wide as a text encoder's, a fifth of the size of float32 (docs/how-it-works.md)."""
    return "int8" if dimensions >= WIDE else "float32"


def described_rows(dimensions: int, dtype: DType) -> str:
    """Describe the rows of an index, and whether int8 is what rows of their width are by default."""
    by_default = f" (the default from {WIDE})" if dtype == default_dtype(dimensions) == "int8" else ""
    return f"{counted(dimensions, 'dimension')} as {dtype}{by_default}"


Layout = Literal["documents", "formulas"]
"""The entries of an index: posts with all their virtual nodes, or formula virtual nodes."""

TEXTS: dict[Layout, tuple[str, ...]] = {
    "documents": ("docno", "formula_ids"),
    "formulas": ("docno", "post_id", "visual_id"),
}
"""The texts of an entry, its id first; ``formula_ids`` is a JSON list, empty where none were given."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One document (``rows`` ``[n, d]``) or one formula (``rows`` ``[1, d]``), with its texts, ``docno`` first.

    ``kept`` are the kept columns as JSON; see :mod:`.subsets`.
    """

    texts: tuple[str, ...]
    rows: Rows
    kept: str = ""

    @property
    def docno(self) -> str:
        return self.texts[0]


def stored_formula_ids(text: str, path: Path | str) -> list[str] | None:
    """Parse the formula ids of a stored document; ``None`` where none were given."""
    try:
        ids = json.loads(text) if text else None
    except (ValueError, RecursionError) as error:
        raise DamagedError(path, f"the formula ids of a document are not JSON ({error!s:.200})") from error
    if ids is not None and not (isinstance(ids, list) and all(isinstance(name, str) for name in ids)):
        raise DamagedError(path, "the formula ids of a document are not a list of ids")
    return ids


def part_content(
    layout: Layout, dtype: DType | None, entries: Sequence[Entry], sources: Sources, model: str | None
) -> Content:
    """Check entries and lay them out as one part."""
    width = entries[0].rows.shape[1]
    dtype = dtype or default_dtype(width)
    if dtype == "int4" and width % GROUP:
        allowed = f"'int8': four bits are packed in rows whose width is a multiple of {GROUP}, and these have {width}"
        raise ConfigError("dtype", dtype, allowed)
    arrival = np.argsort([len(entry.rows) for entry in entries], kind="stable")
    ordered = [entries[place] for place in arrival.tolist()]
    rows = np.concatenate([entry.rows for entry in ordered])
    offsets = np.cumsum([0, *(len(entry.rows) for entry in ordered)], dtype=np.int64)
    max_norm = check_values(rows, offsets, ordered)
    arrays: dict[str, Array] = {"rows": rows, "sources": sources}
    if dtype == "float16":
        with np.errstate(over="ignore"):  # a number that is too large becomes infinite and is refused
            arrays["rows"] = rows.astype(np.float16)
        rows = arrays["rows"].astype(np.float32)
    elif dtype in CODES:
        scaled = CODES[dtype](rows)
        arrays.update(rows=scaled.codes, row_scales=scaled.scales)
        rows = widened(scaled)
    if dtype != "float32":
        max_norm = check_values(rows, offsets, ordered, f", rounded to {dtype},")
    if layout == "documents":
        arrays.update(offsets=offsets, arrival=arrival.astype(np.int32))
        if dtype not in CODES:  # whose rows are codes, and whose document vectors are read among them
            arrays["document_vectors"] = rows[offsets[1:] - 1]
            arrays.update(zip(("codes", "scales", "code_bounds"), encode_rows(rows), strict=True))
    texts_of = {name: [entry.texts[column] for entry in ordered] for column, name in enumerate(TEXTS[layout][1:], 1)}
    if any(entry.kept for entry in ordered):
        texts_of["kept"] = [entry.kept for entry in ordered]
    for name, texts in texts_of.items():
        coded = [text.encode("utf-8", "surrogatepass") for text in texts]
        arrays[name] = np.frombuffer(b"".join(coded), dtype=np.uint8)
        arrays[f"{name}_offsets"] = np.cumsum([0, *map(len, coded)], dtype=np.int64)
    return Content([entry.docno for entry in ordered], arrays, {"max_norm": max_norm, "model": model})


def merge(layout: Layout, parts: Sequence[StoredPart]) -> Content:
    together = VectorParts(parts)
    sources = [part["sources"] for part in parts]
    if any(len(of_part) == 0 for of_part in sources) or any(len(part.deleted) for part in parts):
        sources = [np.zeros((0, 2), dtype=np.uint64)]  # read only in unfinished jobs, where nothing is deleted
    dtype, _ = stored_as(parts[0])
    model = parts[0].meta.details.get("model")
    return part_content(layout, dtype, list(together.entries()), np.concatenate(sources), model)


def stored_as(part: StoredPart) -> tuple[DType, int]:
    rows = part["rows"]
    if rows.dtype == np.uint8:
        return "int4", 2 * rows.shape[1]
    return next(known for known in DTYPES if known == rows.dtype.name), rows.shape[1]


def check_values(rows: Rows, offsets: Numbers, entries: Sequence[Entry], how: str = "") -> float:
    """Raise an error for rows without a direction; return the greatest length, rounded up."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
    bad = ~(np.isfinite(squares) & (squares > 0))
    if bad.any():
        row = int(np.argmax(bad))
        document = int(np.searchsorted(offsets, row, side="right")) - 1
        if not np.isfinite(rows[row]).all():
            reason = "contains NaN or infinity"
        elif squares[row] == 0:
            reason = "is zero (or its length is below 1e-22), so it has no direction"
        else:
            reason = "is too long for float32"
        raise EmbeddingError(entries[document].docno, f"row {row - offsets[document]} of its doc_embs{how} {reason}")
    return float(np.sqrt(float(squares.max())) * (1 + 1e-5))


VERSION = 3


def _texts(layout: Layout) -> tuple[PartField, ...]:
    """Return the fields of an entry's texts: UTF-8 end to end, and offsets; the store keeps the ids."""
    fields = []
    for name in (*TEXTS[layout][1:], "kept"):
        optional, characters = name == "kept", f"bytes_of_{name}"  # a part without kept columns has no ``kept``
        fields.append(PartField(name, "uint8", characters, optional=optional))
        fields.append(PartField(f"{name}_offsets", "int64", "m+1", cuts=characters, optional=optional))
    return tuple(fields)


_SOURCES = PartField("sources", "uint64", "s 2")
"""Of each document of the corpus in the part: a hash of its docno and its fingerprint, for :class:`.indexing.Corpus`;
empty where one is unknown."""

DOCUMENTS = Kind(
    type="multi_vector_index",
    version=VERSION,
    rebuild="mathamr index GRAPHS MODEL --output {path}",
    fields=(
        # the vectors of all documents end to end; all other fields are computed from them as stored, rounded or not
        # or codes, of int4 two numbers in a byte
        PartField("rows", "float32 float16 int8 uint8", "r d"),
        PartField("row_scales", "float32", "r", optional=True),  # of codes: the vector is the scale times the row
        PartField("offsets", "int64", "m+1", cuts="r"),
        # the rows as int8 codes, which the scan reads; the scale of each dimension; the greatest length of a row's
        # rounding error, in units of the scales, and of a row of codes; rows that are codes have none of the three
        PartField("codes", "int8", "r d", optional=True),
        PartField("scales", "float32", "d", optional=True),
        PartField("code_bounds", "float64", "2", optional=True),
        # a copy of the last row of each document, its VIRTUAL_DOCUMENT, to be read separately; codes have none
        PartField("document_vectors", "float32", "m d", optional=True),
        # the place of each document in the order of indexing
        PartField("arrival", "int32", "m", below="m"),
        *_texts("documents"),
        _SOURCES,
    ),
    merge=partial(merge, "documents"),
)

FORMULAS = Kind(
    type="formula_index",
    version=VERSION,
    rebuild="MathAMRFormulaIndex('{path}').indexer('overwrite').index(…)",
    fields=(
        PartField("rows", "float32 float16 int8 uint8", "m d"),
        PartField("row_scales", "float32", "m", optional=True),
        *_texts("formulas"),
        _SOURCES,
    ),
    merge=partial(merge, "formulas"),
)


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """The width of the rows (0 while there are none), their model, how they are stored, and the kept columns."""

    dimensions: int
    model: str | None
    dtype: DType
    keep: tuple[str, ...] = ()

    @classmethod
    def read(cls, details: Mapping[str, Any], path: Path) -> IndexMeta:
        dimensions, name = detail(details, "dimensions", int, path), detail(details, "dtype", str, path)
        model = None if details.get("model") is None else detail(details, "model", str, path)
        dtype = next((known for known in DTYPES if known == name), None)
        if dtype is None or dimensions < 0:
            raise DamagedError(path, f"rows of {dimensions} numbers of {name!r:.80}")
        return cls(dimensions, model, dtype, tuple(detail(details, "keep", list, path) if "keep" in details else ()))

    def details(self) -> dict[str, Any]:
        """Return the details of the manifest; an index without kept columns is as before there were any."""
        details = asdict(self)
        return details if self.keep else {name: details[name] for name in details if name != "keep"}


_OF_FLOATS = ("document_vectors", "codes", "scales", "code_bounds")
_READ = 4096  # documents
_READ_ROWS = 1 << 13  # which stay in the CPU's caches until they are multiplied


class Shard:
    """A part of vectors, and the arrays derived from it on first use."""

    def __init__(self, part: StoredPart) -> None:
        self.part, self.kept = part, part.kept
        self.layout: Layout = "formulas" if part.kind.type == "formula_index" else "documents"
        self.max_norm = detail(part.meta.details, "max_norm", float, part.path.parent)
        if not 0 <= self.max_norm < math.inf:
            raise DamagedError(part.path.parent, f"the length {self.max_norm} of a row of {part.meta.name}")
        self.dtype, self.dimensions = stored_as(part)
        needed = ("row_scales",) if self.dtype in CODES else _OF_FLOATS if self.layout == "documents" else ()
        if missing := [name for name in needed if name not in part]:
            raise DamagedError(part.path, f"its rows are {self.dtype}, and it has no {missing[0]}")

    def __len__(self) -> int:
        """The number of documents, deleted ones included."""
        return len(self.part)

    @cached_property
    def rows(self) -> StoredRows:
        rows: Array = self.part["rows"]
        if self.dtype not in CODES:
            return rows
        scales = self.part["row_scales"]
        if not (np.isfinite(scales).all() and (scales > 0).all()):
            raise DamagedError(self.part.path, "the scale of a row is not a positive number")
        return ScaledRows(rows, scales)

    @cached_property
    def _all(self) -> tuple[StoredRows, Numbers]:
        offsets: Numbers = self.part["offsets"]
        if bool((offsets[1:] <= offsets[:-1]).any()):
            raise DamagedError(self.part.path, "a document of it has no rows")
        return self.rows, offsets

    @cached_property
    def _single(self) -> tuple[StoredRows, Numbers]:
        """One row of each document: its last, or the only one of a formula."""
        ones = np.arange(len(self) + 1, dtype=np.int64)
        if self.layout == "formulas":
            return self.rows, ones
        if self.dtype in CODES:
            rows, offsets = self._all
            return rows[offsets[1:] - 1], ones
        return self.part["document_vectors"], ones

    def field(self, field: Field) -> tuple[StoredRows, Numbers]:
        """Return the vectors of one field as stored, end to end, and their offsets."""
        return self._single if field == "doc" or self.layout == "formulas" else self._all

    @cached_property
    def coding(self) -> Coding:
        """The rows as codes. Rows that are stored as int8 or int4 are codes already."""
        if isinstance(self.rows, ScaledRows):
            ones, bounds = np.ones(self.dimensions, dtype=np.float32), np.array([0.0, self.max_norm])
            return Coding(self.rows.codes, ones, bounds, self.rows.scales)
        codes, scales, bounds = (self.part[name] for name in ("codes", "scales", "code_bounds"))
        if not (np.isfinite(scales).all() and np.isfinite(bounds).all() and (scales > 0).all() and (bounds >= 0).all()):
            raise DamagedError(self.part.path, "the scales or bounds of its codes are not positive numbers")
        return Coding(codes, scales, bounds)

    def live_rows(self, field: Field) -> StoredRows:
        rows, offsets = self.field(field)
        if not len(self.part.deleted):
            return rows
        live = np.flatnonzero(self.part.alive)
        left: StoredRows = rows[ranges(offsets[live], offsets[live + 1] - offsets[live])]
        return left

    def in_order(self) -> Numbers:
        """Return the documents that are not deleted, in the order of indexing."""
        order = np.arange(len(self)) if self.layout == "formulas" else np.argsort(self.part["arrival"], kind="stable")
        return order[self.part.alive[order]]

    def texts(self, name: str, documents: Numbers) -> list[str]:
        if name == "docno":
            return self.part.ids.texts(documents)
        if name == "kept" and name not in self.part:
            return [""] * len(documents)
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
        return tuple(map(Shard, self.parts))

    @cached_property
    def max_norm(self) -> float:
        """The length of the longest row, rounded up."""
        return max((shard.max_norm for shard in self.shards), default=0.0)

    @cached_property
    def _shard_of(self) -> dict[StoredPart, Shard]:
        return dict(zip(self.parts, self.shards, strict=True))

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        texts = np.empty(len(numbers), dtype=object)
        for part, places, local in self.by_part(numbers):
            texts[places] = self._shard_of[part].texts(name, local)
        return list(texts)

    def lengths(self, numbers: Numbers, field: Field = "all") -> Numbers:
        lengths = np.empty(len(numbers), dtype=np.int64)
        for part, places, local in self.by_part(numbers):
            _, offsets = self._shard_of[part].field(field)
            lengths[places] = offsets[local + 1] - offsets[local]
        return lengths

    def pieces(self, numbers: Numbers, field: Field = "all") -> list[Numbers]:
        """Cut documents into pieces whose vectors are read at once: of at most 8,192 rows, or one document."""
        cuts = np.flatnonzero(np.diff(np.cumsum(self.lengths(numbers, field)) // _READ_ROWS)) + 1
        return [some for some in np.split(numbers, cuts) if len(some)]

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        stored, offsets = self.stored(numbers, field)
        return widened(stored), offsets

    def stored(self, numbers: Numbers, field: Field = "all") -> tuple[StoredRows, Numbers]:
        """Return the vectors of some documents as stored, end to end."""
        lengths = self.lengths(numbers, field)
        ends: Numbers = np.concatenate([[0], np.cumsum(lengths)])
        rows_of_shards, targets = [], []
        for part, places, local in self.by_part(numbers):
            rows, offsets = self._shard_of[part].field(field)
            rows_of_shards.append(rows[ranges(offsets[local], lengths[places])])
            targets.append(ranges(ends[places], lengths[places]))
        ascending = bool((numbers[1:] > numbers[:-1]).all())
        order = slice(None) if ascending else np.argsort(np.concatenate(targets))

        def joined(arrays: list[Any]) -> Array:
            whole: Array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
            return whole[order]

        if scaled := [rows for rows in rows_of_shards if isinstance(rows, ScaledRows)]:
            return ScaledRows(joined([rows.codes for rows in scaled]), joined([rows.scales for rows in scaled])), ends
        width = self.shards[0].dimensions if self.shards else 0
        return joined(rows_of_shards or [np.empty((0, width), dtype=np.float32)]), ends

    def in_order(self) -> Numbers:
        orders = (shard.in_order() + base for shard, base in zip(self.shards, self.bases.tolist(), strict=False))
        return np.concatenate([np.empty(0, dtype=np.int64), *orders])

    def sample(self, count: int) -> Numbers:
        return evenly(self.in_order(), count)

    def entries(self) -> Iterator[Entry]:
        return read_entries(self, self.shards[0].layout, self.in_order()) if self.shards else iter(())


def read_entries(source: VectorParts | Backend, layout: Layout, numbers: Numbers) -> Iterator[Entry]:
    """Read documents in the given order, a few at a time."""
    for start in range(0, len(numbers), _READ):
        some = numbers[start : start + _READ]
        rows, offsets = source.rows(some)
        texts = zip(*(source.texts(name, some) for name in TEXTS[layout]), strict=True)
        kept = source.texts("kept", some)
        for names, (first, last), columns in zip(texts, pairwise(offsets.tolist()), kept, strict=True):
            yield Entry(names, rows[first:last], columns)
