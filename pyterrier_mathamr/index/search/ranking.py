"""Exact scores of some documents, and their order: score descending, then docno ascending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pyterrier_mathamr.index.protocols import ExactScores, Field, Numbers, SearchableSnapshot

from .queries import QueryBatch

_ROWS = 1 << 13
"""Rows gathered at once, which stay in the CPU's caches until they are multiplied."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The best documents of one query: int64 numbers and float64 scores, best first, ties by docno."""

    numbers: Numbers
    scores: ExactScores


NO_HITS = Hits(np.empty(0, dtype=np.int64), np.empty(0))


def rank(snapshot: SearchableSnapshot, query: QueryBatch, numbers: Numbers, k: int, field: Field = "all") -> Hits:
    """Score some documents exactly and return the best ``k``."""
    scores = exact_scores(snapshot, query, numbers, field)
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


def exact_scores(
    snapshot: SearchableSnapshot, query: QueryBatch, numbers: Numbers, field: Field = "all"
) -> ExactScores:
    """Score some documents against one query by ``model.exact_maxsim``, in bounded memory."""
    from pyterrier_mathamr.model import exact_maxsim  # loads torch, which opening an index does not need

    asked = query.last_rows() if field == "doc" else query
    blend = None if asked.document_weights is None else float(asked.document_weights[0])
    parts = [
        exact_maxsim(asked.rows, *snapshot.rows(some, field), asked.weights, blend)
        for some in pieces(snapshot, numbers, field)
    ]
    return np.concatenate([np.empty(0), *parts])


def pieces(snapshot: SearchableSnapshot, numbers: Numbers, field: Field) -> list[Numbers]:
    """Cut documents into pieces whose vectors are read at once: of at most 8,192 rows, or one document."""
    cuts = np.flatnonzero(np.diff(np.cumsum(snapshot.lengths(numbers, field)) // _ROWS)) + 1
    return [some for some in np.split(numbers, cuts) if len(some)]
