"""Exact scores of some documents, and their order: score descending, then docno ascending."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyterrier_mathamr.index.protocols import Field, Numbers, Scores, Searched

from .maxsim import QueryBatch, document_scores

_RESCORED_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Hits:
    """The best documents of one query: int64 numbers and float32 scores, best first, ties by docno."""

    numbers: Numbers
    scores: Scores


def rank(snapshot: Searched, query: QueryBatch, numbers: Numbers, k: int, field: Field = "all") -> Hits:
    """Score some documents in double precision and take the best ``k``.

    Args:
        snapshot: the index.
        query: one query.
        numbers: distinct documents.
        k: how many at most.
        field: which vectors; with ``doc`` the query has one row.
    """
    return _best_of(snapshot, numbers, score(snapshot, query, numbers, field), k)


def _best_of(snapshot: Searched, numbers: Numbers, scores: Scores, k: int) -> Hits:
    """The best ``k`` of scored documents, ties by docno; docnos are read only where there are ties."""
    if len(scores) > k:
        place = len(scores) - k
        keep = scores >= np.partition(scores, place)[place]
        numbers, scores = numbers[keep], scores[keep]
    order = np.argsort(-scores, kind="stable")
    if (scores[order[1:]] == scores[order[:-1]]).any():
        docnos = [docno.encode("utf-8", "surrogatepass") for docno in snapshot.texts("docno", numbers)]
        by_docno = np.array(sorted(range(len(docnos)), key=docnos.__getitem__), dtype=np.int64)
        order = by_docno[np.argsort(-scores[by_docno], kind="stable")]
    return Hits(numbers[order[:k]], scores[order[:k]])


def score(
    snapshot: Searched, query: QueryBatch, numbers: Numbers, field: Field = "all", *, precise: bool = True
) -> Scores:
    """Score some documents against one query from their rows, in bounded memory.

    Args:
        snapshot: the index.
        query: one query.
        numbers: int64 ``[m]``.
        field: which vectors; with ``doc`` the query has one row.
        precise: compute in double precision and round once; else in float32, within :func:`float32_error`.

    Returns:
        float32 ``[m]``.
    """
    lengths = snapshot.lengths(numbers, field)
    order = np.argsort(lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths[order]) // _RESCORED_ROWS)) + 1
    scores = np.empty(len(numbers), dtype=np.float32)
    for some in np.split(order, cuts):
        scores[some] = document_scores(
            *snapshot.rows(numbers[some], field), query, np.float64 if precise else np.float32
        )
    return scores
