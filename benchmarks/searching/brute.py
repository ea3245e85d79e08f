"""Brute force in float32 by numpy: the ground truth, and the simplest peer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from .corpus import Corpus
from .floor import Work
from .measure import FEW, Found, K, System

_PIECE = 16_384


def maxsim(corpus: Corpus, queries: list[np.ndarray]) -> Found:
    """Find the best by S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ: one product for each piece of the documents."""
    columns = np.ascontiguousarray(np.concatenate(queries).T)
    starts = np.cumsum([0, *map(len, queries[:-1])])
    scores = np.empty((len(queries), len(corpus)), dtype=np.float32)
    for first, last in corpus.pieces(_PIECE):
        offsets = corpus.offsets[first : last + 1]
        products = corpus.rows[offsets[0] : offsets[-1]] @ columns
        best = np.maximum.reduceat(products, offsets[:-1] - offsets[0], axis=0)
        scores[:, first:last] = np.add.reduceat(best, starts, axis=1).T
    return [top(of) for of in scores]


def by_document(corpus: Corpus, queries: list[np.ndarray]) -> Found:
    """Find the best by the product of the last rows."""
    vectors = corpus.document_vectors()
    return [top(vectors @ query[-1]) for query in queries]


def top(scores: np.ndarray, k: int = K) -> np.ndarray:
    """Return the numbers of the best scores, best first."""
    best = np.argpartition(-scores, k - 1)[:k] if k < len(scores) else np.arange(len(scores))
    order: np.ndarray = best[np.argsort(-scores[best], kind="stable")]
    return order


def systems(corpus: Corpus) -> Iterator[System]:
    """Yield brute force query by query, and some queries at once."""
    work = (Work(len(corpus.rows), corpus.dimensions),)
    for name, at_once in (("one by one", False), (f"{FEW} at once", True)):
        yield System(
            f"brute force, float32, {name}",
            lambda: partial(maxsim, corpus),
            FEW,
            at_once,
            held=corpus.rows.nbytes,
            repeat=1,
            work=work,
        )
