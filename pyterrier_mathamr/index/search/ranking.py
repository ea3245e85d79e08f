"""Exact scores of some documents, and their order: score descending, then docno ascending."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pyterrier_mathamr.index.protocols import ExactScores, Field, Numbers, Rows, SearchableSnapshot

from .queries import QueryBatch

_ROWS = 1 << 16
"""Rows gathered at once, which bounds the memory."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The best documents of one query: int64 numbers and float64 scores, best first, ties by docno."""

    numbers: Numbers
    scores: ExactScores


NO_HITS = Hits(np.empty(0, dtype=np.int64), np.empty(0))


def rank(snapshot: SearchableSnapshot, query: QueryBatch, numbers: Numbers, k: int, field: Field = "all") -> Hits:
    """Score some documents exactly and return the best ``k``.

    Args:
        snapshot: the index.
        query: one query.
        numbers: distinct documents.
        k: how many at most.
        field: the vectors that are compared.
    """
    scores = exact_scores(snapshot, query, numbers, field)
    if len(scores) > k:
        place = len(scores) - k
        keep = scores >= np.partition(scores, place)[place]
        numbers, scores = numbers[keep], scores[keep]
    order = np.argsort(-scores, kind="stable")
    if (scores[order[1:]] == scores[order[:-1]]).any():  # docnos are read only where there are ties
        docnos = [docno.encode("utf-8", "surrogatepass") for docno in snapshot.texts("docno", numbers)]
        by_docno = np.array(sorted(range(len(docnos)), key=docnos.__getitem__), dtype=np.int64)
        order = by_docno[np.argsort(-scores[by_docno], kind="stable")]
    return Hits(numbers[order[:k]], scores[order[:k]])


def exact_scores(
    snapshot: SearchableSnapshot, query: QueryBatch, numbers: Numbers, field: Field = "all"
) -> ExactScores:
    """Score some documents against one query by ``model.exact_maxsim``, in bounded memory.

    Args:
        snapshot: the index.
        query: one query.
        numbers: int64 ``[m]``; fastest where they ascend.
        field: the vectors that are compared; with ``doc``, the query's last row with each document's, unweighted.

    Returns:
        float64 ``[m]``, rounded to float32 precision.
    """
    from pyterrier_mathamr.model import exact_maxsim  # loads torch, which opening an index does not need

    asked = query.last_rows() if field == "doc" else query
    blend = None if asked.document_weights is None else float(asked.document_weights[0])
    parts = [
        exact_maxsim(asked.rows, rows, offsets, asked.weights, blend)
        for _, rows, offsets in gathered(snapshot, numbers, field)
    ]
    return np.concatenate([np.empty(0), *parts])


def gathered(snapshot: SearchableSnapshot, numbers: Numbers, field: Field) -> Iterator[tuple[Numbers, Rows, Numbers]]:
    """Read the vectors of some documents, at most 65,536 rows (or one document) at once.

    Yields:
        Some of the numbers in order, their vectors, float32 ``[r, d]``, and offsets, int64 ``[m + 1]``.
    """
    cuts = np.flatnonzero(np.diff(np.cumsum(snapshot.lengths(numbers, field)) // _ROWS)) + 1
    for some in np.split(numbers, cuts):
        if len(some):
            yield some, *snapshot.rows(some, field)
