"""The arrays of a part, from its entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyterrier_mathamr.index.errors import EmbeddingError
from pyterrier_mathamr.index.protocols import Array, Numbers, Rows, Sources, StoredRows
from pyterrier_mathamr.index.search.int8_coding import encode_rows
from pyterrier_mathamr.index.snapshot import VectorParts
from pyterrier_mathamr.store import Content, Part

from .entries import TEXTS, DType, Entry, Layout


def part_content(
    layout: Layout, dtype: DType, entries: Sequence[Entry], sources: Sources, model: str | None
) -> Content:
    """Check entries and lay them out as one part."""
    lengths = np.array([len(entry.rows) for entry in entries], dtype=np.int64)
    arrival = np.argsort(lengths, kind="stable")
    ordered = [entries[place] for place in arrival.tolist()]
    rows = np.concatenate([entry.rows for entry in ordered])
    offsets = np.zeros(len(ordered) + 1, dtype=np.int64)
    np.cumsum(lengths[arrival], out=offsets[1:])
    max_norm = check_values(rows, offsets, ordered)
    stored: StoredRows = rows
    if dtype == "float16":
        with np.errstate(over="ignore"):  # a number that is too large becomes infinite and is refused
            stored = rows.astype(np.float16)
        rows = stored.astype(np.float32)
        max_norm = check_values(rows, offsets, ordered, ", rounded to float16,")
    arrays: dict[str, Array] = {"rows": stored, "sources": sources}
    if layout == "documents":
        arrays.update(offsets=offsets, document_vectors=rows[offsets[1:] - 1], arrival=arrival.astype(np.int32))
        arrays.update(zip(("codes", "scales", "code_bounds"), encode_rows(rows), strict=True))
    for column, name in enumerate(TEXTS[layout][1:], 1):
        texts = [entry.texts[column].encode("utf-8", "surrogatepass") for entry in ordered]
        arrays[name] = np.frombuffer(b"".join(texts), dtype=np.uint8)
        arrays[f"{name}_offsets"] = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return Content([entry.docno for entry in ordered], arrays, {"max_norm": max_norm, "model": model})


def merge(layout: Layout, parts: Sequence[Part]) -> Content:
    """Lay out the entries of several parts as one, without the deleted ones."""
    together = VectorParts(parts)
    sources = [part["sources"] for part in parts]
    if any(len(of) == 0 for of in sources) or any(len(part.deleted) for part in parts):
        sources = [np.zeros((0, 2), dtype=np.uint64)]  # read only in unfinished jobs, of which nothing is deleted
    dtype: DType = "float16" if parts[0]["rows"].dtype == np.float16 else "float32"
    model = parts[0].meta.details.get("model")
    return part_content(layout, dtype, list(together.entries()), np.concatenate(sources), model)


def check_values(rows: Rows, offsets: Numbers, entries: Sequence[Entry], how: str = "") -> float:
    """Refuse rows that have no direction; return the greatest length, rounded up."""
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
