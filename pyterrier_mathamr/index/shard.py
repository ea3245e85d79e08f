"""One shard: written once from checked entries, then read by memory map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .arrays import Array, Field, Numbers, Rows, StoredRows
from .codes import encode_rows
from .disk import file_digest, sync_folder, write_array
from .errors import EmbeddingError, IndexCorruptError
from .files import TEXTS, DType, IndexFile, Layout, texts_of
from .meta import ShardMeta
from .records import Entry
from .texts import Hashes, hash_texts, pack_texts, unpack_texts


def write_shard(path: Path, layout: Layout, dtype: DType, entries: Sequence[Entry]) -> ShardMeta:
    """Check entries and write them as one shard, synced.

    Args:
        path: the shard's folder; it must not exist.
        layout: what an entry is.
        dtype: how rows are stored. Those of float16 are rounded first, so that all that is made of them, and every
            search, is of the rows as they are stored.
        entries: at least one, all of the same width, each with a docno of its own.

    Raises:
        EmbeddingError: a row is not finite, is zero, or is too long or too short for float32 or ``dtype``.
    """
    ordered = sorted(entries, key=lambda entry: len(entry.rows))  # stable: equal lengths keep their order
    rows = np.concatenate([entry.rows for entry in ordered])
    offsets = np.zeros(len(ordered) + 1, dtype=np.int64)
    np.cumsum([len(entry.rows) for entry in ordered], out=offsets[1:])
    max_norm = check_values(rows, offsets, ordered)
    stored: StoredRows = rows
    if dtype == "float16":
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused
            stored = rows.astype(np.float16)
        rows = stored.astype(np.float32)
        max_norm = check_values(rows, offsets, ordered, ", rounded to float16,")
    arrays: dict[IndexFile, Array] = {
        IndexFile.ROWS: stored,
        IndexFile.OFFSETS: offsets,
        IndexFile.DOCUMENT_VECTORS: rows[offsets[1:] - 1],
    }
    if layout == "documents":
        arrays.update(zip((IndexFile.CODES, IndexFile.SCALES, IndexFile.CODE_BOUNDS), encode_rows(rows), strict=True))
    for column, name in enumerate(texts_of(layout)):
        arrays.update(zip(TEXTS[name], pack_texts([entry.texts[column] for entry in ordered]), strict=True))
    hashes = hash_texts(entry.docno for entry in ordered)
    order = np.argsort(hashes, kind="stable")
    arrays[IndexFile.DOCNO_HASHES], arrays[IndexFile.DOCNO_ORDER] = hashes[order], order.astype(np.int32)
    path.mkdir()
    files = {file.filename: write_array(path / file.filename, arrays[file]) for file in IndexFile.of(layout)}
    sync_folder(path)
    return ShardMeta(path.name, len(ordered), len(rows), max_norm, files)


def check_values(rows: Rows, offsets: Numbers, entries: Sequence[Entry], how: str = "") -> float:
    """Refuse rows that have no direction, naming the first; return the greatest length, rounded up.

    Args:
        rows: float32 ``[r, d]``.
        offsets: int64 ``[m + 1]``, where each entry's rows begin and the last one's end.
        entries: whose rows they are.
        how: what was done to the rows before, for the error.

    Raises:
        EmbeddingError: a row is not finite, is zero, or is too long.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
    bad = ~(np.isfinite(squares) & (squares > 0))
    if bad.any():
        row = int(np.argmax(bad))
        document = int(np.searchsorted(offsets, row, side="right")) - 1
        if not np.isfinite(rows[row]).all():
            reason = "holds NaN or infinity"
        elif squares[row] == 0:
            reason = "is zero (or its length is below 1e-22), so it has no direction"
        else:
            reason = "is too long for float32"
        raise EmbeddingError(entries[document].docno, f"row {row - offsets[document]} of its doc_embs{how} {reason}")
    return float(np.sqrt(float(squares.max())) * (1 + 1e-5))


class Shard:
    """A shard that is read: its arrays are memory maps, opened at once so that a later overwrite does no harm.

    Args:
        path: the shard's folder.
        layout: what an entry is.
        dtype: how its rows are stored.
        meta: what ``pt_meta.json`` says of it.

    Raises:
        FileNotFoundError: a file is gone; the caller looks whether the index was replaced meanwhile.
        IndexCorruptError: a file has another size, dtype or shape than it should.
    """

    def __init__(self, path: Path, layout: Layout, dtype: DType, meta: ShardMeta) -> None:
        self.path, self.layout, self.dtype, self.meta = path, layout, dtype, meta
        self._arrays = {file: self._open(file) for file in IndexFile.of(layout)}
        self._kept: dict[str, Any] = {}

    def __len__(self) -> int:
        return self.meta.documents

    def _open(self, file: IndexFile) -> Array:
        path = self.path / file.filename
        size, _ = self.meta.files.get(file.filename, (-1, ""))
        if path.stat().st_size != size:
            raise IndexCorruptError(path, f"it has {path.stat().st_size} bytes where {size} were written")
        mode: Literal["r", "c"] = "c" if file is IndexFile.CODES else "r"  # torch takes none that is read-only
        try:
            array: Array = np.load(path, mmap_mode=mode, allow_pickle=False)
        except ValueError:
            array = np.load(path, allow_pickle=False)  # nothing can be mapped of an array without elements
        dtype = file.dtype_in(self.dtype)
        if array.dtype != np.dtype(dtype) or array.ndim != file.ndim:
            raise IndexCorruptError(path, f"it holds {array.dtype}{array.shape}, not {dtype}")
        return array.view(np.ndarray)

    def __getitem__(self, file: IndexFile) -> Array:
        return self._arrays[file]

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """What was made of the shard under a name (a copy on a card), made on first use and kept with it."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    @cached_property
    def _ones(self) -> Numbers:
        return np.arange(len(self) + 1, dtype=np.int64)

    def field(self, field: Field) -> tuple[StoredRows, Numbers]:
        """The vectors of one field, end to end.

        Returns:
            float32 or float16 ``[r, d]``, as they are stored, and int64 ``[m + 1]``, where each document's rows begin
            and the last one's end.
        """
        if self.layout == "formulas":
            return self[IndexFile.ROWS], self._ones
        if field == "doc":
            return self[IndexFile.DOCUMENT_VECTORS], self._ones
        return self[IndexFile.ROWS], self[IndexFile.OFFSETS]

    def texts(self, name: str, documents: Sequence[int] | Numbers) -> list[str]:
        """One text (``docno``, ``post_id`` …) of some documents of the shard."""
        data, offsets = TEXTS[name]
        return unpack_texts(self[data], self[offsets], documents)

    def find(self, docnos: Sequence[str], hashes: Hashes) -> Numbers:
        """The document of each docno, or -1.

        Args:
            docnos: what is sought.
            hashes: uint64, of the same length: :func:`~.texts.hash_texts` of them.
        """
        keys, order = self[IndexFile.DOCNO_HASHES], self[IndexFile.DOCNO_ORDER]
        places = np.searchsorted(keys, hashes)
        found = np.full(len(hashes), -1, dtype=np.int64)
        hits = np.flatnonzero(keys[np.minimum(places, len(keys) - 1)] == hashes)
        while hits.size:
            documents = order[places[hits]].astype(np.int64)
            same = [
                text == docnos[hit] for text, hit in zip(self.texts("docno", documents), hits.tolist(), strict=True)
            ]
            found[hits[same]] = documents[same]
            hits = hits[np.logical_not(same)]  # two docnos may share a hash: look at the next place
            places[hits] += 1
            hits = hits[keys[np.minimum(places[hits], len(keys) - 1)] == hashes[hits]]
            hits = hits[places[hits] < len(keys)]
        return found

    def verify(self) -> None:
        """Read every file and compare its SHA-256.

        Raises:
            IndexCorruptError: a file was changed since it was written.
        """
        for name, (_, digest) in self.meta.files.items():
            if file_digest(self.path / name) != digest:
                raise IndexCorruptError(self.path / name, "its content was changed since it was written")
