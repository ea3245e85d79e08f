"""From scores to the best documents: provably the true ones, in a documented order.

The scan rounds, so it only chooses: every document whose scanned score is within twice the greatest possible error of
the k-th best is scored again in double precision, and the best ``k`` of these are the answer. Equal scores (as float32)
are ordered by docno, rising.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .scan import QueryBatch, exact_scores, scan
from .shard import Field, Numbers
from .snapshot import Snapshot

_RESCORED_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Hits:
    """The best documents of one query: int64 numbers and float32 scores, best first, ties by docno."""

    numbers: Numbers
    scores: npt.NDArray[np.float32]


def search_exact(snapshot: Snapshot, queries: QueryBatch, k: int, field: Field) -> list[Hits]:
    """The best ``k`` documents of each query, over every document; all queries in one pass over the data.

    Args:
        snapshot: the index.
        queries: their rows have the index's dimensions.
        k: how many, at least 1.
        field: which vectors are searched; with ``doc`` the queries' last rows are used.
    """
    asked = queries.last_rows() if field == "doc" else queries
    margins = 2 * float32_error(asked, snapshot.max_norm, snapshot.meta.dimensions)
    best = [_Best(k, margin) for margin in margins.tolist()]
    for base, shard in zip(snapshot.bases.tolist(), snapshot.shards, strict=False):
        rows, offsets = shard.field(field)
        scores = np.empty((len(asked), len(shard)), dtype=np.float32)
        for first, block in scan(rows, offsets, asked):
            scores[:, first : first + len(block)] = block.T
        for of_query, found in zip(best, scores, strict=True):
            of_query.add(base, found)
    return [rank(snapshot, asked.one(query), kept.numbers(), k, field) for query, kept in enumerate(best)]


def float32_error(queries: QueryBatch, max_norm: float, dimensions: int) -> npt.NDArray[np.float64]:
    """How far a score computed in float32, in any order of summation, can be from the true one.

    A product of ``d`` terms is within ``d u |q| |d|`` of the truth (``u`` = 2⁻²⁴), and summing ``q`` of them adds at
    most ``q u`` of their sum; both are doubled, which covers the higher-order terms.

    Args:
        queries: the queries.
        max_norm: the length of the longest row of the index.
        dimensions: ``d``.

    Returns:
        float64 ``[queries]``.
    """
    steps = dimensions + np.diff(queries.offsets) + 1
    return 2 * steps * 2.0**-24 * queries.weighted_lengths() * max_norm


class _Best:
    """The documents of one query that can still be among the best ``k``, shard after shard."""

    def __init__(self, k: int, margin: float) -> None:
        self.k, self.margin = k, margin
        self._floor = -np.inf
        self._numbers: Numbers = np.empty(0, dtype=np.int64)
        self._scores: npt.NDArray[np.float32] = np.empty(0, dtype=np.float32)

    def add(self, base: int, scores: npt.NDArray[np.float32]) -> None:
        """Take the scores of a whole shard whose first document is ``base``."""
        local = np.flatnonzero(scores >= self._floor)
        self._numbers = np.concatenate([self._numbers, local + base])
        self._scores = np.concatenate([self._scores, scores[local]])
        if len(self._scores) > self.k:
            place = len(self._scores) - self.k
            self._floor = float(np.partition(self._scores, place)[place]) - self.margin
            keep = self._scores >= self._floor
            self._numbers, self._scores = self._numbers[keep], self._scores[keep]

    def numbers(self) -> Numbers:
        """The documents that are left, rising."""
        return self._numbers


def rank(snapshot: Snapshot, query: QueryBatch, numbers: Numbers, k: int, field: Field = "all") -> Hits:
    """Score some documents again in double precision and take the best ``k``.

    Args:
        snapshot: the index.
        query: one query.
        numbers: distinct documents.
        k: how many at most.
        field: which vectors; with ``doc`` the query has one row.
    """
    scores = score(snapshot, query, numbers, field)
    if len(scores) > k:  # docnos are read only of what can still be in the answer
        place = len(scores) - k
        keep = scores >= np.partition(scores, place)[place]
        numbers, scores = numbers[keep], scores[keep]
    order = np.argsort(-scores, kind="stable")
    if (scores[order[1:]] == scores[order[:-1]]).any():
        docnos = [docno.encode("utf-8", "surrogatepass") for docno in snapshot.texts("docno", numbers)]
        by_docno = np.array(sorted(range(len(docnos)), key=docnos.__getitem__), dtype=np.int64)
        order = by_docno[np.argsort(-scores[by_docno], kind="stable")]
    return Hits(numbers[order[:k]], scores[order[:k]])


def score(snapshot: Snapshot, query: QueryBatch, numbers: Numbers, field: Field = "all") -> npt.NDArray[np.float32]:
    """Score some documents against one query in double precision, in bounded memory.

    Args:
        snapshot: the index.
        query: one query.
        numbers: int64 ``[m]``.
        field: which vectors; with ``doc`` the query has one row.

    Returns:
        float32 ``[m]``.
    """
    lengths = snapshot.lengths(numbers, field)
    order = np.argsort(lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths[order]) // _RESCORED_ROWS)) + 1
    scores = np.empty(len(numbers), dtype=np.float32)
    for some in np.split(order, cuts):
        scores[some] = exact_scores(*snapshot.rows(numbers[some], field), query)
    return scores
