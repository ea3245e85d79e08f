"""Queries, and what retrievers and the scorer require of an index, wherever it is: :class:`Backend`.

::

    frame of queries ──query_batch──▶ QueryBatch        the rows of all queries end to end, each query once
                                          │ select      the best documents by the vectors of one field    Hits
                                          ▼ score       the exact scores of some documents
                                       Backend          a folder, parts elsewhere, a Qdrant collection
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.frames import MissingValueError, first_values
from pyterrier_mathamr.store import UnknownIdError

from .errors import check_model, query_error

Array = npt.NDArray[Any]

Rows = npt.NDArray[np.float32]  # vectors, float32 ``[r, d]``
Codes = npt.NDArray[np.int8]  # vectors quantized to int8 ``[r, d]``

PackedCodes = npt.NDArray[np.uint8]
"""Vectors quantized to four bits, two numbers in a byte, uint8 ``[r, d / 2]``: see :func:`unpack_codes`."""

GROUP = 8  # the width of packed rows is a multiple of it, so that each half of a row has whole words of four bytes
STEP = 16  # codes of four bits are multiples of it, from -128 to 112


def pack_codes(codes: Codes) -> PackedCodes:
    """Pack codes of four bits: byte ``j`` of a row has code ``j`` in its low bits, and code ``d / 2 + j`` above."""
    low, high = np.split(codes.view(np.uint8), 2, axis=1)
    packed: PackedCodes = low >> np.uint8(4) | high
    return packed


def unpack_codes(codes: Codes | PackedCodes) -> Codes:
    """Return codes as int8 ``[r, d]``: in new memory, or int8 codes as they are."""
    if codes.dtype == np.int8:
        return codes.view(np.int8)
    rows, half = codes.shape
    whole = np.empty((rows, 2 * half), dtype=np.uint8)
    np.multiply(codes, np.uint8(STEP), out=whole[:, :half])  # the high bits are lost; numpy shifts ten times as slowly
    np.bitwise_and(codes, np.uint8(0xF0), out=whole[:, half:])
    return whole.view(np.int8)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRows:
    """Vectors as codes of 8 or 4 bits and a scale for each, float32 ``[r]``: row ``i`` is ``scales[i] codes[i]``.

    A scale has 17 significant bits, so that its product with a code is exact in float32, and rows that are read and
    stored again keep their bytes.
    """

    codes: Codes | PackedCodes
    scales: npt.NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), self.codes.shape[1] * (1 if self.codes.dtype == np.int8 else 2)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, which: Any) -> ScaledRows:
        return ScaledRows(self.codes[which], self.scales[which])


StoredRows = npt.NDArray[np.float32] | npt.NDArray[np.float16] | ScaledRows
"""Vectors as a file stores them, ``[r, d]``; all computation is in float32 or float64."""

Scores = npt.NDArray[np.float32]  # scores of a scan, float32, within a known error of the exact scores
ExactScores = npt.NDArray[np.float64]  # exact scores, float64, rounded to float32 precision
Numbers = npt.NDArray[np.int64]  # documents by number, or offsets, int64

Sources = npt.NDArray[np.uint64]
"""Documents of a corpus, uint64 ``[s, 2]``: a hash of the docno, and a hash of the document."""

Weights = npt.NDArray[np.float64]  # weights of query rows, or error bounds, float64

Field = Literal["all", "doc"]
"""Which vectors are read: all of a document, or only its VIRTUAL_DOCUMENT (MathAMR+, section 3.5.1)."""


@dataclass(frozen=True)
class How:
    """How documents are selected: exactly, on a GPU or not, or by HNSW graphs of the given effort."""

    exact: bool = True
    hnsw_ef: int = 128
    hits: int = 128
    device: str | None = None
    scored: bool = True
    """Whether approximate hits need scores: not where they are scored by other vectors then."""
    where: str | None = None
    """A condition on kept columns (:mod:`.subsets`), which every document that is found must meet."""


class Hits(NamedTuple):
    """The best documents of one query: numbers and exact scores, best first, ties by docno."""

    numbers: Numbers
    scores: ExactScores


NO_HITS = Hits(np.empty(0, dtype=np.int64), np.empty(0))


def evenly(numbers: Numbers, count: int) -> Numbers:
    """Take at most so many numbers, evenly spread."""
    return numbers[np.linspace(0, len(numbers) - 1, min(count, len(numbers))).astype(np.int64)]


def blocks(offsets: Numbers, rows: int) -> Iterator[tuple[int, int]]:
    """Cut documents (or queries) into blocks of at most so many rows, at least one document each."""
    first = 0
    while first < len(offsets) - 1:
        last = max(int(np.searchsorted(offsets, offsets[first] + rows, side="right")) - 1, first + 1)
        yield first, last
        first = last


@dataclass(frozen=True)
class QueryBatch:
    """Some queries: their rows end to end, the weight of each row, and the weight of the two documents' product.

    ``among`` are the documents that are searched for each query, ascending; ``None`` for all.
    """

    rows: Rows
    offsets: Numbers
    weights: Weights | None = None
    document_weights: Weights | None = None
    qids: tuple[str, ...] = ()
    among: tuple[Numbers, ...] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def last_rows(self) -> QueryBatch:
        """Return each query as only its document's vector, with weight 1."""
        ones = np.arange(len(self) + 1, dtype=np.int64)
        return QueryBatch(self.rows[self.offsets[1:] - 1], ones, qids=self.qids, among=self.among)

    def part(self, first: int, last: int) -> QueryBatch:
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        weights = None if self.weights is None else self.weights[rows]
        blends = None if self.document_weights is None else self.document_weights[first:last]
        among = None if self.among is None else self.among[first:last]
        return QueryBatch(self.rows[rows], offsets - offsets[0], weights, blends, self.qids[first:last], among)

    def of_size(self, queries: int) -> list[QueryBatch]:
        return [self.part(first, min(first + queries, len(self))) for first in range(0, len(self), queries)]

    def row_weights(self) -> Weights:
        """Return the total weight of an error in each row's products: |wᵢ|, and |a| more for a last row."""
        totals = np.ones(len(self.rows)) if self.weights is None else np.abs(self.weights)
        if self.document_weights is not None:
            totals[self.offsets[1:] - 1] += np.abs(self.document_weights)
        return totals

    def sums(self, values: Weights) -> Weights:
        """Sum the values of each query's rows: float64 ``[queries]``."""
        sums: Weights = np.add.reduceat(values, self.offsets[:-1])
        return sums


_OF_FORMULAS = ("query_formula_ids", "query_formula_id")
_OF_SCORES = ("query_weights", "query_document_weight")


def query_batch(
    frame: pd.DataFrame, backend: Backend, *, normalise: bool = False, formulas: bool = False
) -> QueryBatch:
    """Read the distinct queries of a frame that have rows, in order of appearance.

    Args:
        frame: ``qid`` and ``query_embs``; where it has the column ``query_model``, the index must be of that model;
            ``query_weights`` (a number for each row) and ``query_document_weight`` (a number) weigh the scores.
        backend: the index that they are for.
        normalise: divide the weights by the number of rows.
        formulas: of each query only the row at the place of ``query_formula_id`` in ``query_formula_ids``.
    """
    names = {"query_embs", "query_model", *_OF_FORMULAS, *_OF_SCORES} & {*frame.columns}
    columns = {name: first_values(frame, name) for name in names}
    need_values(columns["query_embs"], "query_embs", frame["qid"].tolist())
    return batch_of(columns, backend, normalise=normalise, formulas=formulas)


def batch_of(
    columns: Mapping[str, Mapping[str, Any]], backend: Backend, *, normalise: bool = False, formulas: bool = False
) -> QueryBatch:
    """Read queries whose columns are given by qid; see :func:`query_batch`."""
    for model in columns.get("query_model", {}).values():
        check_model(backend.path, backend.meta.model, str(model))
    checked = {qid: _check_rows(qid, value, backend) for qid, value in columns["query_embs"].items()}
    rows = {qid: of_query for qid, of_query in checked.items() if len(of_query)}
    weights = document_weights = None
    if formulas:
        ids, asked = (columns[name] for name in _OF_FORMULAS)
        for name in _OF_FORMULAS:
            need_values(columns[name], name, rows)
        rows = {qid: _formula_row(qid, of_query, ids[qid], asked[qid]) for qid, of_query in rows.items()}
    else:
        row_weights, blends = (columns.get(name, {}) for name in _OF_SCORES)
        if "query_weights" in columns or normalise:
            each = [
                _check_weights(qid, "query_weights", row_weights.get(qid), (len(of_query),), 1.0)
                / (len(of_query) if normalise else 1)
                for qid, of_query in rows.items()
            ]
            weights = np.concatenate([np.empty(0), *each])
        if "query_document_weight" in columns:
            sizes = np.array([len(of_query) if normalise else 1 for of_query in rows.values()])
            each = [_check_weights(qid, "query_document_weight", blends.get(qid), (), 0.0) for qid in rows]
            document_weights = np.array(each) / sizes
    stacked = np.concatenate(list(rows.values())) if rows else np.empty((0, 0), dtype=np.float32)
    offsets = np.cumsum([0, *map(len, rows.values())], dtype=np.int64)
    return QueryBatch(stacked, offsets, weights, document_weights, tuple(rows))


def need_values(values: Mapping[str, Any], column: str, qids: Iterable[str]) -> None:
    if missing := [qid for qid in dict.fromkeys(qids) if qid not in values]:
        raise MissingValueError(column, "qid", missing)


def _check_rows(qid: str, value: Any, backend: Backend) -> Rows:
    """Convert one query's embeddings to float32 rows of the index's width; they may be none."""
    try:
        rows = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise query_error(qid, f"query_embs is not an array of numbers ({error})") from error
    if rows.ndim != 2 or (len(rows) and not rows.shape[1]):
        raise query_error(qid, f"query_embs has shape {rows.shape}, not [rows, dimensions]")
    width = backend.meta.dimensions
    if width and len(rows) and rows.shape[1] != width:
        raise query_error(qid, f"query_embs has {rows.shape[1]} dimensions, the index {backend.path} has {width}")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.einsum("ij,ij->", rows, rows)):
            raise query_error(qid, "query_embs contains NaN, infinity or numbers too large for float32")
    return rows


def _check_weights(qid: str, column: str, value: Any, shape: tuple[int, ...], default: float) -> Weights:
    """Convert the weights of one query to float64, the ``default`` where there are none."""
    try:
        weights = np.full(shape, default) if value is None else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise query_error(qid, f"{column} is {value!r:.80}, not numbers") from error
    if weights.shape != shape or not np.isfinite(weights).all():
        wanted = f"one finite number for each of {shape[0]} rows" if shape else "a finite number"
        raise query_error(qid, f"{column} is {value!r:.80}, not {wanted}")
    return weights


def _formula_row(qid: str, rows: Rows, ids: Sequence[str], asked: str) -> Rows:
    known = [str(formula) for formula in ids]
    if str(asked) not in known:
        raise query_error(qid, f"formula {asked!r} is not among its formulas: {', '.join(known[:5]) or '(none)'}")
    row = known.index(str(asked))
    if row >= len(rows):
        raise query_error(qid, f"formula {asked!r} is number {row}, but query_embs has {len(rows)} rows")
    return rows[row : row + 1]


class IndexDescription(Protocol):
    """The width of an index's rows (0 if it has none), the model of its vectors where known, and the kept columns."""

    @property
    def dimensions(self) -> int: ...

    @property
    def model(self) -> str | None: ...

    @property
    def keep(self) -> tuple[str, ...]: ...


class Backend(Protocol):
    """The state of an index when it was opened. Documents have numbers, which are valid within it only.

    There are three: a folder (:mod:`.search.folder`), parts elsewhere (:mod:`.sharded`) and a Qdrant
    collection (:mod:`.qdrant.index`).
    """

    path: Path | str
    meta: IndexDescription

    @property
    def identity(self) -> str:
        """The identity of this state of the index, which changes with every document."""

    def __len__(self) -> int:
        """The number of documents (or formulas)."""

    def select(self, queries: QueryBatch, k: int, field: Field, how: How) -> list[Hits]:
        """Find the best ``k`` documents of each query by the vectors of one field: all of them if ``how.exact``.

        Only documents of ``queries.among``, where that is given, that meet ``how.where``.
        """

    def score(self, queries: QueryBatch, numbers: Sequence[Numbers], field: Field) -> list[ExactScores]:
        """Score some documents of each query exactly: float64 for each."""

    def sample(self, count: int) -> Numbers:
        """Return so many documents, evenly spread, or all if there are no more; the same each time."""

    def look_up(self, docnos: Sequence[str]) -> Numbers:
        """Look up the number of each document: -1 for one that is not in the index."""

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """Return one text (``docno``, ``post_id`` …) of each document; ``kept`` are its columns as JSON."""

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """Return the vectors of some documents end to end, float32 ``[r, d]``, and their offsets, int64 ``[m + 1]``."""

    def stored(self, numbers: Numbers, field: Field = "all") -> tuple[StoredRows, Numbers]:
        """Return the same vectors as stored, which need not be float32."""
        return self.rows(numbers, field)

    def find(self, docnos: Sequence[str]) -> Numbers:
        """Return the number of each document; ``UnknownIdError`` names unknown ones."""
        numbers = self.look_up(docnos)
        if (unknown := np.flatnonzero(numbers < 0)).size:
            raise UnknownIdError(self.path, [docnos[place] for place in unknown.tolist()])
        return numbers
