"""The searches of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.index.search import folder
from pyterrier_mathamr.index.search.compiled import compiled
from pyterrier_mathamr.index.search.int8 import usable

from .floor import Work
from .measure import FEW, Found, K, Search, System, timed

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
    for scan, used in _scans(snapshot, device):
        of_scan = partial(_scanning, used, colbert)
        yield System(f"colbert(), {scan}, one by one", of_scan, FEW, at_once=False, held=scanned, work=of_rows)
        yield System(f"colbert(), {scan}, all at once", of_scan, held=scanned, work=of_rows)
    exact = partial(searcher, index.single_vector(**options))
    yield System("single_vector()", exact, held=vectors, truth="document", work=(of_documents,))
    graph = partial(_warm, index.single_vector(exact=False, num_results=K), queries[:1])
    yield System("single_vector(exact=False)", graph, held=3 * vectors, truth="document")
    doc_vn = partial(searcher, index.doc_vn(CANDIDATES, **options))
    yield System(f"doc_vn({CANDIDATES})", doc_vn, held=vectors, work=(of_documents, rescored))
    reranked = Work(K * rows / m, d, ("float32",), shared=False)
    yield System(f"scorer() of {K:,} candidates", partial(_scorer, index, queries), work=(reranked,))


def more_for_all(index: MathAMRIndex, queries: list[np.ndarray], device: str | None = None) -> float:
    """Measure how many CPU milliseconds K documents cost more than ten, median of queries that are asked in turn."""
    few, many = (searcher(index.colbert(num_results=k, device=device)) for k in (10, K))

    def used(search: Search, query: np.ndarray) -> float:
        return min(timed(lambda: search([query]), 1).cpu for _ in range(5))

    return 1e3 * float(np.median([used(many, query) - used(few, query) for query in queries]))


def _scans(snapshot: Any, device: str | None) -> list[tuple[str, Callable[[int], Any]]]:
    """Return the names of the scans of this machine, each with what :func:`folder.compiled` is then."""
    width, absent = snapshot.meta.dimensions, lambda dimensions: None
    if device:
        return [(f"int8, {device}", folder.compiled)]
    if not folder._codes_pay(snapshot, K):
        return [("float32", folder.compiled)]
    extra = [("compiled", folder.compiled)] if compiled(width) is not None else []
    return [*extra, (f"default: {'int8 by torch' if usable(width) else 'float32'}", absent)]


def _scanning(used: Callable[[int], Any], make: Callable[[], Search]) -> Search:
    """Return a search by one of the scans."""
    search = make()

    def run(queries: list[np.ndarray]) -> Found:
        with mock.patch.object(folder, "compiled", used):
            return search(queries)

    return run


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
