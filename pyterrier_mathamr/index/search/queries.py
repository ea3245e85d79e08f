"""From a PyTerrier frame to a batch of queries, each distinct query once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.frames import MissingValueError, first_values
from pyterrier_mathamr.index.backend import Backend, Numbers, Rows, Weights
from pyterrier_mathamr.index.errors import check_model, query_error


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
        """Return the queries from ``first`` to the one before ``last``."""
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        weights = None if self.weights is None else self.weights[rows]
        of_documents = None if self.document_weights is None else self.document_weights[first:last]
        among = None if self.among is None else self.among[first:last]
        return QueryBatch(self.rows[rows], offsets - offsets[0], weights, of_documents, self.qids[first:last], among)

    def each(self) -> list[QueryBatch]:
        """Return each query by itself."""
        return self.of_size(1)

    def of_size(self, queries: int) -> list[QueryBatch]:
        """Split into parts of at most so many queries."""
        return [self.part(first, min(first + queries, len(self))) for first in range(0, len(self), queries)]

    def of_rows(self, rows: int) -> Iterator[QueryBatch]:
        """Split into parts of at most so many rows, or of one query that has more."""
        first = 0
        while first < len(self):
            last = int(np.searchsorted(self.offsets, self.offsets[first] + rows, side="right")) - 1
            last = max(last, first + 1)
            yield self.part(first, last)
            first = last

    def row_weights(self) -> Weights:
        """Return the total weight of an error in each row's products: |wᵢ|, and |a| more for a last row."""
        totals = np.ones(len(self.rows)) if self.weights is None else np.abs(self.weights)
        if self.document_weights is not None:
            totals[self.offsets[1:] - 1] += np.abs(self.document_weights)
        return totals

    def weighted_lengths(self) -> Weights:
        """Return the bound of each query's score over unit rows, Σᵢ |wᵢ| |qᵢ| + |a| |q_doc|: float64 ``[queries]``."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64)) * self.row_weights()
        sums: Weights = np.add.reduceat(lengths, self.offsets[:-1])
        return sums


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
    given = {name: first_values(frame, name) for name in names}
    need_values(given["query_embs"], "query_embs", frame["qid"].tolist())
    return batch_of(given, backend, normalise=normalise, formulas=formulas)


_OF_FORMULAS = ("query_formula_ids", "query_formula_id")
_OF_SCORES = ("query_weights", "query_document_weight")


def batch_of(
    given: Mapping[str, Mapping[str, Any]], backend: Backend, *, normalise: bool = False, formulas: bool = False
) -> QueryBatch:
    """Read queries whose columns are given by qid; see :func:`query_batch`."""
    of_rows = _OF_FORMULAS if formulas else _OF_SCORES
    for model in given.get("query_model", {}).values():
        check_model(backend.path, backend.meta.model, str(model))
    all_rows = {qid: _check_rows(qid, value, backend) for qid, value in given["query_embs"].items()}
    rows = {qid: of for qid, of in all_rows.items() if len(of)}
    weights = of_documents = None
    if formulas:
        for name in of_rows:
            need_values(given[name], name, rows)
        ids, asked = (given[name] for name in of_rows)
        rows = {qid: _formula_row(qid, of, ids[qid], asked[qid]) for qid, of in rows.items()}
    else:
        sizes = np.array([len(of) if normalise else 1 for of in rows.values()])
        if "query_weights" in given or normalise:
            own = given.get("query_weights", {})
            checked = [_check_weights(qid, own.get(qid), len(of)) for qid, of in rows.items()]
            weights = np.concatenate([np.empty(0), *(of / size for of, size in zip(checked, sizes, strict=True))])
        if "query_document_weight" in given:
            own = given["query_document_weight"]
            of_documents = np.array([_check_document_weight(qid, own.get(qid)) for qid in rows]) / sizes
    stacked = np.concatenate(list(rows.values())) if rows else np.empty((0, 0), dtype=np.float32)
    offsets = np.cumsum([0, *map(len, rows.values())], dtype=np.int64)
    return QueryBatch(stacked, offsets, weights, of_documents, tuple(rows))


def need_values(values: Mapping[str, Any], column: str, qids: Iterable[str]) -> None:
    """Raise an error for queries without a value."""
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


def _check_weights(qid: str, value: Any, rows: int) -> Weights:
    """Convert one query's weights to float64 ``[q]``; ``None`` is a weight of 1 for each row."""
    if value is None:
        return np.ones(rows, dtype=np.float64)
    weights = np.asarray(value, dtype=np.float64)
    if weights.shape != (rows,) or not np.isfinite(weights).all():
        reason = f"query_weights has shape {weights.shape}, not one finite number for each of {rows} rows"
        raise query_error(qid, reason)
    return weights


def _check_document_weight(qid: str, value: Any) -> float:
    """Convert the weight of the product of the document vectors of one query; ``None`` is 0."""
    try:
        weight = 0.0 if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise query_error(qid, f"query_document_weight is {value!r}, not a number") from error
    if not np.isfinite(weight):
        raise query_error(qid, f"query_document_weight is {value!r}, not a finite number")
    return weight


def _formula_row(qid: str, rows: Rows, ids: Sequence[str], asked: str) -> Rows:
    known = [str(formula) for formula in ids]
    if str(asked) not in known:
        raise query_error(qid, f"formula {asked!r} is not among its formulas: {', '.join(known[:5]) or '(none)'}")
    row = known.index(str(asked))
    if row >= len(rows):
        raise query_error(qid, f"formula {asked!r} is number {row}, but query_embs has {len(rows)} rows")
    return rows[row : row + 1]
