"""The searches of the index."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pyterrier_mathamr.index import MathAMRIndex

from .floor import Work
from .measure import FEW, Found, K, Search, System

CANDIDATES = 5000


def systems(index: MathAMRIndex, queries: list[np.ndarray], device: str | None = None) -> Iterator[System]:
    """Yield every strategy; the floor of a scan is known for the CPU, but not for a GPU."""
    snapshot = index.snapshot()
    m, d, rows = len(index), snapshot.meta.dimensions, sum(len(shard.part["rows"]) for shard in snapshot.shards)
    scanned, vectors = rows * d, 4 * m * d
    options: dict[str, Any] = {"num_results": K, "device": device}
    of_documents = Work(m, d, ("float32",), "document")
    rescored = Work(CANDIDATES * rows / m, d, ("float32",), shared=False)
    of_rows = () if device else (Work(rows, d),)
    colbert = partial(searcher, index.colbert(**options))
    yield System("colbert(), one by one", colbert, FEW, at_once=False, held=scanned, work=of_rows)
    yield System("colbert(), all at once", colbert, held=scanned, work=of_rows)
    exact = partial(searcher, index.single_vector(**options))
    yield System("single_vector()", exact, held=vectors, truth="document", work=(of_documents,))
    graph = partial(_warm, index.single_vector(exact=False, num_results=K), queries[:1])
    yield System("single_vector(exact=False)", graph, held=3 * vectors, truth="document")
    doc_vn = partial(searcher, index.doc_vn(CANDIDATES, **options))
    yield System(f"doc_vn({CANDIDATES})", doc_vn, held=vectors, work=(of_documents, rescored))
    reranked = Work(K * rows / m, d, ("float32",), shared=False)
    yield System(f"scorer() of {K:,} candidates", partial(_scorer, index, queries), work=(reranked,))


def _scorer(index: MathAMRIndex, queries: list[np.ndarray]) -> Search:
    """Return the reranking of candidates that are retrieved before."""
    ranking, rank = index.colbert(num_results=K)(topics(queries)), index.scorer()
    return lambda _: by_query(rank(ranking))


def _warm(transformer: Any, queries: list[np.ndarray]) -> Search:
    """Return a search after its first call, which builds a graph."""
    search = searcher(transformer)
    search(queries)
    return search


def searcher(transformer: Any) -> Search:
    """Return a transformer as a function of queries."""
    return lambda queries: by_query(transformer(topics(queries)))


def topics(queries: list[np.ndarray]) -> pd.DataFrame:
    """Return the frame of queries."""
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(queries))]}).assign(
        query_embs=pd.Series(queries, dtype=object)
    )


def by_query(ranking: pd.DataFrame) -> Found:
    """Return the documents of each query; the docno of document ``i`` is ``str(i)``."""
    numbers = ranking["docno"].to_numpy(dtype=np.int64)
    cuts = np.flatnonzero(ranking["rank"].to_numpy() == 0)[1:]
    return np.split(numbers, cuts)
