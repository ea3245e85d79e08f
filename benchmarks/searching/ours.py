"""The searches of the index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from pyterrier_mathamr.index import MathAMRIndex

from .measure import FEW, Found, K, System


def systems(index: MathAMRIndex, device: str | None = None) -> Iterator[System]:
    """Every strategy; those of one query at a time with ``batch_size=1``."""
    rows, m = index.snapshot().meta.rows, len(index)
    scanned, vectors = rows * index.snapshot().meta.dimensions, 4 * m * index.snapshot().meta.dimensions
    options: dict[str, Any] = {"num_results": K, "device": device}
    colbert = searcher(index.colbert(**options))
    yield System("colbert(), one by one", colbert, FEW, at_once=False, held=scanned)
    yield System("colbert(), all at once", colbert, held=scanned)
    single, graph = index.single_vector(**options), index.single_vector(exact=False, num_results=K)
    yield System("single_vector()", searcher(single), held=vectors, truth="document")
    yield System("single_vector(exact=False)", searcher(graph), held=3 * vectors, truth="document")
    yield System("doc_vn(5000)", searcher(index.doc_vn(5000, **options)), held=vectors)


def scorer(index: MathAMRIndex, queries: list[np.ndarray]) -> tuple[System, pd.DataFrame]:
    """Reranking of 1,000 candidates for each query, which stand in the frame that comes with it."""
    ranking = index.colbert(num_results=K)(topics(queries))
    rank = index.scorer()
    return System("scorer() of 1,000 candidates", lambda _: by_query(rank(ranking))), ranking


def searcher(transformer: Any) -> Any:
    """A transformer as a function of queries."""
    return lambda queries: by_query(transformer(topics(queries)))


def topics(queries: list[np.ndarray]) -> pd.DataFrame:
    """The frame of queries."""
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(queries))]}).assign(
        query_embs=pd.Series(queries, dtype=object)
    )


def by_query(ranking: pd.DataFrame) -> Found:
    """The documents of each query; the docno of document ``i`` is ``str(i)``."""
    numbers = ranking["docno"].to_numpy(dtype=np.int64)
    cuts = np.flatnonzero(ranking["rank"].to_numpy() == 0)[1:]
    return np.split(numbers, cuts)
