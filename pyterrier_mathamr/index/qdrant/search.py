"""The best documents by Qdrant, equal to those of ``MathAMRIndex`` in exact mode, provably.

Qdrant sums in float32 in an order of its own and breaks ties arbitrarily, so its lists only select candidates, which
are rescored exactly and ordered by score, then docno. In exact mode each of Qdrant's scores, which a server prints as
float32, is within :func:`float32_error` of the true one, so a document outside a list scores at most the list's last
score and that error. A list is made longer until this is below the score of rank ``k``; then no other document can be
among the best ``k``.

Qdrant computes S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ, and a weight wᵢ >= 0 of a row is a longer row, for wᵢ maxⱼ qᵢ · dⱼ = maxⱼ
(wᵢ qᵢ) · dⱼ. The product of the document vectors that ``query_document_weight`` adds is a second list, over ``doc``; a
document in neither scores at most the sum of both lists' last scores. A negative weight of a row needs the least
product in place of the greatest, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyterrier_mathamr.index.errors import QueryError
from pyterrier_mathamr.index.protocols import Field, Numbers
from pyterrier_mathamr.index.search.maxsim import float32_error
from pyterrier_mathamr.index.search.queries import QueryBatch
from pyterrier_mathamr.index.search.ranking import NO_HITS, Hits, rank
from pyterrier_mathamr.index.transformers.options import Search

from .collection import VECTORS
from .snapshot import QdrantSnapshot

REQUESTED = 16
"""Queries in one request."""


class Listed(NamedTuple):
    """One of Qdrant's lists: int64 numbers and float64 scores, best first."""

    numbers: Numbers
    scores: Any


def search(
    snapshot: QdrantSnapshot,
    queries: QueryBatch,
    k: int,
    field: Field,
    how: Search = "exact",
    hnsw_ef: int | None = None,
) -> list[Hits]:
    """Find the best ``k`` documents of each query."""
    if not snapshot.meta.dimensions:
        return [NO_HITS] * len(queries)
    asked = queries.last_rows() if field == "doc" else queries
    ones = [asked.one(i) for i in range(len(asked))]
    wanted = [_vectors(one, field) for one in ones]
    hits: list[Hits | None] = [None] * len(ones)
    limit = k + 16 if how == "exact" else k
    left = list(range(len(ones)))
    while left:
        open_still = []
        for start in range(0, len(left), REQUESTED):
            some = left[start : start + REQUESTED]
            answers = _ask(snapshot, [wanted[i] for i in some], limit, how, hnsw_ef)
            for i, lists in zip(some, answers, strict=True):
                if how == "exact":
                    hits[i] = _proven(snapshot, ones[i], lists, limit, k, field)
                else:
                    hits[i] = rank(snapshot, ones[i], _union(lists), k, field)
                if hits[i] is None:
                    open_still.append(i)
        left, limit = open_still, limit * 2
    return [found for found in hits if found is not None]


def _vectors(query: QueryBatch, field: Field) -> list[tuple[Field, Any]]:
    """Return the lists that one query requests: a field, and a vector or rows."""
    if field == "doc":
        return [("doc", query.rows[0].tolist())]
    rows = query.rows.astype(np.float64)
    if query.weights is not None:
        if (query.weights < 0).any():
            reason = (
                "query_weights contains a negative weight, which scorer() and doc_vn() can search by, but not Qdrant"
            )
            raise QueryError(query.qids[0], reason)
        rows = (rows * query.weights[:, None])[query.weights > 0]
    lists: list[tuple[Field, Any]] = []
    if len(rows):
        lists.append(("all", rows.astype(np.float32).tolist()))
    blend = 0.0 if query.document_weights is None else float(query.document_weights[0])
    if blend or not lists:
        lists.append(("doc", (blend * query.rows[-1].astype(np.float64)).astype(np.float32).tolist()))
    return lists


def _ask(
    snapshot: QdrantSnapshot, wanted: Sequence[Sequence[tuple[Field, Any]]], limit: int, how: Search, ef: int | None
) -> list[list[Listed]]:
    """Request the lists of some queries at once."""
    connection = snapshot.collection.connection
    models, names = connection.models, VECTORS[snapshot.meta.layout]
    params = None  # local mode searches exactly, and warns of parameters
    if connection.remote:
        whole = models.QuantizationSearchParams(ignore=True)
        exact = models.SearchParams(exact=True, quantization=whole)
        params = exact if how == "exact" else models.SearchParams(hnsw_ef=ef, exact=False)
    requests = [
        models.QueryRequest(
            query=vector,
            using=names[field],
            limit=limit,
            params=params,
            filter=snapshot.visible(),
            with_payload=False,
            with_vector=False,
        )
        for lists in wanted
        for field, vector in lists
    ]
    answers = iter(snapshot.call("query_batch_points", "searching", requests=requests))
    return [[_listed(snapshot, next(answers).points) for _ in lists] for lists in wanted]


def _listed(snapshot: QdrantSnapshot, points: Sequence[Any]) -> Listed:
    numbers = snapshot.numbered([str(point.id) for point in points])
    return Listed(numbers, np.array([point.score for point in points], dtype=np.float64))


def _union(lists: Sequence[Listed]) -> Numbers:
    return np.unique(np.concatenate([of.numbers for of in lists]))


def _proven(
    snapshot: QdrantSnapshot, query: QueryBatch, lists: Sequence[Listed], limit: int, k: int, field: Field
) -> Hits | None:
    """Rank the best ``k`` documents; ``None`` where one outside the lists could be among them."""
    whole = any(len(of.numbers) < limit for of in lists)  # a short list contains every document
    error = float(float32_error(query, snapshot.max_norm, snapshot.meta.dimensions)[0])
    outside = -np.inf if whole else sum(float(of.scores[-1]) for of in lists) + error
    candidates = _union(lists)
    if len(lists) == 1 and len(lists[0].scores) > k:
        floor = float(lists[0].scores[k - 1]) - 2 * error  # the k-th best scores at least this and the error more
        if outside >= floor + error:
            return None
        candidates = lists[0].numbers[lists[0].scores >= floor]
    hits = rank(snapshot, query, candidates, k, field)
    proven = whole or (len(hits.scores) == k and np.float32(outside) < hits.scores[-1])  # scores are float32 numbers
    return hits if proven else None
