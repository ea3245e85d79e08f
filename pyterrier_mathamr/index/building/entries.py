"""The entries of an index, and how the records of a stream become entries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.index.errors import EmbeddingError
from pyterrier_mathamr.index.protocols import Rows
from pyterrier_mathamr.posts import formula_id
from pyterrier_mathamr.store import DamagedError

DType = Literal["float32", "float16"]
"""How the rows are stored."""

DTYPES: tuple[DType, ...] = ("float32", "float16")

Layout = Literal["documents", "formulas"]
"""The entries of an index: posts with all their virtual nodes, or formula virtual nodes."""

TEXTS: dict[Layout, tuple[str, ...]] = {
    "documents": ("docno", "formula_ids"),
    "formulas": ("docno", "post_id", "visual_id"),
}
"""The texts of an entry, its id first; ``formula_ids`` is a JSON list, empty where none were given."""

VisualIds = Mapping[str, str] | FormulaStore
"""Formula id to visual id."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One document (``rows`` ``[n, d]``) or one formula (``rows`` ``[1, d]``), with its texts, ``docno`` first."""

    texts: tuple[str, ...]
    rows: Rows

    @property
    def docno(self) -> str:
        """The docno, or the formula id."""
        return self.texts[0]


class Post(NamedTuple):
    """One document of a stream, and the entries that it becomes."""

    docno: str
    entries: list[Entry]


def check_rows(docno: str, value: Any) -> Rows:
    """Convert one document's embeddings to float32 rows."""
    try:
        rows = np.asarray(value)
        if rows.dtype.kind not in "fiu":
            raise ValueError(f"dtype {rows.dtype}")
        if rows.dtype != np.float32:
            with np.errstate(over="ignore"):  # a number that is too large becomes infinite and is refused with the part
                rows = rows.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(docno, f"doc_embs is not an array of numbers ({error})") from error
    if rows.ndim != 2:
        raise EmbeddingError(docno, f"doc_embs has shape {rows.shape}, not [rows, dimensions]")
    if 0 in rows.shape:
        raise EmbeddingError(docno, f"doc_embs is empty (shape {rows.shape}); a post has its document's vector")
    return np.ascontiguousarray(rows)


def document_posts(stream: Iterable[Mapping[str, Any]]) -> Iterator[Post]:
    """Turn ``{docno, doc_embs, (formula_ids)}`` into one entry for each document."""
    for record in stream:
        docno = check_docno(record.get("docno"))
        rows = check_rows(docno, record.get("doc_embs"))
        ids = _formula_ids(docno, record, len(rows))
        yield Post(docno, [Entry((docno, "" if ids is None else json.dumps(ids, ensure_ascii=False)), rows)])


def formula_posts(stream: Iterable[Mapping[str, Any]], visual_ids: VisualIds) -> Iterator[Post]:
    """Turn ``{docno, doc_embs, formula_ids}`` into one entry for each formula virtual node (MathAMR+, 3.5.1)."""
    for record in stream:
        docno = check_docno(record.get("docno"))
        rows = check_rows(docno, record.get("doc_embs"))
        ids = _formula_ids(docno, record, len(rows))
        if ids is None:
            raise EmbeddingError(docno, "it has no formula_ids, the ids of its first rows")
        named = [formula or formula_id(docno, row) for row, formula in enumerate(ids)]
        first = {formula: row for row, formula in reversed(list(enumerate(named)))}
        visual = visual_ids.visual_ids(first) if isinstance(visual_ids, FormulaStore) else visual_ids
        places = sorted((row, formula) for formula, row in first.items())
        texts = [(formula, docno, str(visual.get(formula, ""))) for _, formula in places]
        yield Post(docno, [Entry(of, rows[row : row + 1]) for (row, _), of in zip(places, texts, strict=True)])


def check_docno(docno: Any) -> str:
    """Refuse a docno that is not a string with at least one character."""
    if not isinstance(docno, str) or not docno:
        raise EmbeddingError(str(docno), f"its docno is {docno!r}, not a string with at least one character")
    return docno


def _formula_ids(docno: str, record: Mapping[str, Any], rows: int) -> list[str] | None:
    ids = record.get("formula_ids")
    if ids is None or (isinstance(ids, float) and ids != ids):  # an empty cell of a frame is NaN
        return None
    ids = [str(formula) for formula in ids]
    if len(ids) > rows:
        raise EmbeddingError(docno, f"it has {len(ids)} formula_ids but only {rows} rows")
    return ids


def stored_formula_ids(text: str, path: Path | str) -> list[str] | None:
    """Parse the formula ids of a stored document; ``None`` where none were given."""
    try:
        ids = json.loads(text) if text else None
    except (ValueError, RecursionError) as error:
        raise DamagedError(path, f"the formula ids of a document are not JSON ({error!s:.200})") from error
    if ids is not None and not (isinstance(ids, list) and all(isinstance(name, str) for name in ids)):
        raise DamagedError(path, "the formula ids of a document are not a list of ids")
    return ids
