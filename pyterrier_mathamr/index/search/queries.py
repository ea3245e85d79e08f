"""From a PyTerrier frame to a batch of queries, each distinct query once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.frames import MissingValueError, first_values
from pyterrier_mathamr.index.arrays import Backend, ExactScores, Field, Numbers, Rows, Weights
from pyterrier_mathamr.index.errors import QueryError, check_model

MODEL_COLUMN = "query_model"
"""The identity of the model of ``query_embs``; compared with the index's where a frame has the column."""

WEIGHTS_COLUMN = "query_weights"
"""A weight for each row of ``query_embs``; where a frame has the column, S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ."""

DOCUMENT_WEIGHT_COLUMN = "query_document_weight"
"""A number a; where a frame has the column, a (q_doc · d_doc) is added to S(Q, D)."""


@dataclass(frozen=True)
class QueryBatch:
    """Some queries: their rows end to end, the weight of each row, and the weight of the two documents' product."""

    rows: Rows
    offsets: Numbers
    weights: Weights | None = None
    document_weights: Weights | None = None
    qids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def last_rows(self) -> QueryBatch:
        """Return each query as its document's vector alone, with weight 1."""
        ones = np.arange(len(self) + 1, dtype=np.int64)
        return QueryBatch(self.rows[self.offsets[1:] - 1], ones, qids=self.qids)

    def part(self, first: int, last: int) -> QueryBatch:
        """Return the queries from ``first`` to the one before ``last``."""
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        weights = None if self.weights is None else self.weights[rows]
        of_documents = None if self.document_weights is None else self.document_weights[first:last]
        return QueryBatch(self.rows[rows], offsets - offsets[0], weights, of_documents, self.qids[first:last])

    def one(self, query: int) -> QueryBatch:
        """Return one of the queries."""
        return self.part(query, query + 1)

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


def query_batch(frame: pd.DataFrame, snapshot: Backend, *, normalise: bool = False) -> QueryBatch:
    """Read all distinct queries of a frame in order of appearance."""
    rows = query_rows(frame, snapshot)
    sizes = np.array([len(of) if normalise else 1 for of in rows.values()])
    weights = of_documents = None
    if WEIGHTS_COLUMN in frame.columns or normalise:
        given = first_values(frame, WEIGHTS_COLUMN) if WEIGHTS_COLUMN in frame.columns else {}
        of_rows = [check_weights(qid, given.get(qid), len(of)) for qid, of in rows.items()]
        weights = np.concatenate([np.empty(0), *(of / size for of, size in zip(of_rows, sizes, strict=True))])
    if DOCUMENT_WEIGHT_COLUMN in frame.columns:
        given = first_values(frame, DOCUMENT_WEIGHT_COLUMN)
        of_documents = np.array([check_document_weight(qid, given.get(qid)) for qid in rows]) / sizes
    return _stacked(rows, weights, of_documents)


def formula_batch(frame: pd.DataFrame, snapshot: Backend) -> QueryBatch:
    """Read the vector of the formula that each distinct query asks for; queries without rows are left out."""
    rows = query_rows(frame, snapshot)
    ids, asked = first_values(frame, "query_formula_ids"), first_values(frame, "query_formula_id")
    for name, found in (("query_formula_ids", ids), ("query_formula_id", asked)):
        if missing := [qid for qid in rows if qid not in found]:
            raise MissingValueError(name, "qid", missing)
    return _stacked({qid: _formula_row(qid, of, ids[qid], asked[qid]) for qid, of in rows.items()})


def query_rows(frame: pd.DataFrame, snapshot: Backend) -> dict[str, Rows]:
    """Read the rows of each distinct query that has any, float32 ``[q, d]``, in order of appearance."""
    values = first_values(frame, "query_embs")
    if missing := [qid for qid in dict.fromkeys(frame["qid"]) if qid not in values]:
        raise MissingValueError("query_embs", "qid", missing)
    if MODEL_COLUMN in frame.columns:
        for model in first_values(frame, MODEL_COLUMN).values():
            check_model(snapshot.path, snapshot.meta.model, str(model))
    rows = {qid: check_query(qid, value, snapshot) for qid, value in values.items()}
    return {qid: of for qid, of in rows.items() if len(of)}


def check_query(qid: str, value: Any, snapshot: Backend) -> Rows:
    """Convert one query's embeddings to float32 rows of the index's width; they may be none."""
    try:
        rows = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise QueryError(qid, f"query_embs is not an array of numbers ({error})") from error
    if rows.ndim != 2 or (len(rows) and not rows.shape[1]):
        raise QueryError(qid, f"query_embs has shape {rows.shape}, not [rows, dimensions]")
    width = snapshot.meta.dimensions
    if width and len(rows) and rows.shape[1] != width:
        raise QueryError(qid, f"query_embs has {rows.shape[1]} dimensions, the index {snapshot.path} has {width}")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.einsum("ij,ij->", rows, rows)):
            raise QueryError(qid, "query_embs contains NaN, infinity or numbers too large for float32")
    return rows


def check_weights(qid: str, value: Any, rows: int) -> Weights:
    """Convert one query's weights to float64 ``[q]``; ``None`` is a weight of 1 for each row."""
    if value is None:
        return np.ones(rows, dtype=np.float64)
    weights = np.asarray(value, dtype=np.float64)
    if weights.shape != (rows,) or not np.isfinite(weights).all():
        raise QueryError(qid, f"query_weights has shape {weights.shape}, not one finite number for each of {rows} rows")
    return weights


def check_document_weight(qid: str, value: Any) -> float:
    """Convert the weight of the product of the document vectors of one query; ``None`` is 0."""
    try:
        weight = 0.0 if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise QueryError(qid, f"{DOCUMENT_WEIGHT_COLUMN} is {value!r}, not a number") from error
    if not np.isfinite(weight):
        raise QueryError(qid, f"{DOCUMENT_WEIGHT_COLUMN} is {value!r}, not a finite number")
    return weight


def _formula_row(qid: str, rows: Rows, ids: Sequence[str], asked: str) -> Rows:
    known = [str(formula) for formula in ids]
    if str(asked) not in known:
        raise QueryError(qid, f"formula {asked!r} is not among its formulas: {', '.join(known[:5]) or 'it has none'}")
    row = known.index(str(asked))
    if row >= len(rows):
        raise QueryError(qid, f"formula {asked!r} is number {row}, but query_embs has {len(rows)} rows")
    return rows[row : row + 1]


def _stacked(
    rows: dict[str, Rows], weights: Weights | None = None, document_weights: Weights | None = None
) -> QueryBatch:
    offsets = np.cumsum([0, *map(len, rows.values())], dtype=np.int64)
    stacked = np.concatenate(list(rows.values())) if rows else np.empty((0, 0), dtype=np.float32)
    return QueryBatch(stacked, offsets, weights, document_weights, tuple(rows))


_ROWS = 1 << 13
"""Rows gathered at once, which stay in the CPU's caches until they are multiplied."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The best documents of one query: int64 numbers and float64 scores, best first, ties by docno."""

    numbers: Numbers
    scores: ExactScores


NO_HITS = Hits(np.empty(0, dtype=np.int64), np.empty(0))


def rank(snapshot: Backend, query: QueryBatch, numbers: Numbers, k: int, field: Field = "all") -> Hits:
    """Score some documents exactly and return the best ``k``."""
    return best_of(snapshot, numbers, exact_scores(snapshot, query, numbers, field), k)


def best_of(snapshot: Backend, numbers: Numbers, scores: ExactScores, k: int) -> Hits:
    """Return the best ``k`` of some scored documents."""
    best = best_places(scores, k, lambda places: snapshot.texts("docno", numbers[places]))
    return Hits(numbers[best], scores[best])


def best_places(scores: ExactScores, k: int, docnos: Callable[[Numbers], list[str]]) -> Numbers:
    """Find the best ``k`` of some documents: score descending, then docno ascending."""
    places = np.arange(len(scores))
    if len(scores) > k:
        least = len(scores) - k
        places = np.flatnonzero(scores >= np.partition(scores, least)[least])
    ordered = places[np.argsort(-scores[places], kind="stable")]
    equal = scores[ordered[1:]] == scores[ordered[:-1]]
    if equal.any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        among = ordered[tied]
        names = [docno.encode("utf-8", "surrogatepass") for docno in docnos(among)]
        by_docno = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        ordered[tied] = among[by_docno[np.argsort(-scores[among[by_docno]], kind="stable")]]
    return ordered[:k]


def exact_scores(snapshot: Backend, query: QueryBatch, numbers: Numbers, field: Field = "all") -> ExactScores:
    """Score some documents against one query by ``model.exact_maxsim``, in bounded memory."""
    from pyterrier_mathamr.model import exact_maxsim  # loads torch, which opening an index does not need

    asked = query.last_rows() if field == "doc" else query
    blend = None if asked.document_weights is None else float(asked.document_weights[0])
    parts = [
        exact_maxsim(asked.rows, *snapshot.rows(some, field), asked.weights, blend)
        for some in pieces(snapshot, numbers, field)
    ]
    return np.concatenate([np.empty(0), *parts])


def pieces(snapshot: Backend, numbers: Numbers, field: Field) -> list[Numbers]:
    """Cut documents into pieces whose vectors are read at once: of at most 8,192 rows, or one document."""
    cuts = np.flatnonzero(np.diff(np.cumsum(snapshot.lengths(numbers, field)) // _ROWS)) + 1
    return [some for some in np.split(numbers, cuts) if len(some)]
