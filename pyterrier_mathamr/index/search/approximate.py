"""Approximate candidates by FAISS HNSW graphs, as the paper searches (MathAMR+, section 3.5.2, efSearch 128).

A graph is built on first use, on one thread so that it is the same each time, and stays in memory with the snapshot.
The candidates that it finds are scored exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyterrier_mathamr.index.protocols import Field, Numbers
from pyterrier_mathamr.index.snapshot import Snapshot

from .queries import QueryBatch

EF_SEARCH = 128
"""The least number of nodes that a search considers; more finds more and takes longer."""

_NEIGHBOURS = 32
_EF_CONSTRUCTION = 128


def document_candidates(snapshot: Snapshot, queries: QueryBatch, k: int) -> list[Numbers]:
    """Find documents whose VIRTUAL_DOCUMENT is near the query's, its last row."""
    found = _nearest(snapshot, "doc", queries.last_rows(), k)
    return [np.unique(snapshot.live[row[row >= 0]]) for row in found]


def token_candidates(snapshot: Snapshot, queries: QueryBatch, hits: int) -> list[Numbers]:
    """Find documents of which some row is near some row of the query."""
    found = _nearest(snapshot, "all", queries, hits)
    ends = np.cumsum(snapshot.lengths(snapshot.live))
    of_query = [found[start:end] for start, end in zip(queries.offsets[:-1], queries.offsets[1:], strict=True)]
    documents = [np.searchsorted(ends, rows[rows >= 0], side="right") for rows in of_query]
    return [np.unique(snapshot.live[of]) for of in documents]


def _nearest(snapshot: Snapshot, field: Field, queries: QueryBatch, k: int) -> Numbers:
    """Find the nearest rows of one field to each query row: int64 ``[T, k]``, -1 where the graph found no more."""
    if not len(snapshot):
        return np.empty((len(queries.rows), 0), dtype=np.int64)
    import faiss

    graph = _graph(snapshot, field)
    depth = min(k, graph.ntotal)
    parameters = faiss.SearchParametersHNSW(  # type: ignore[attr-defined]
        efSearch=max(EF_SEARCH, depth)
    )
    _, found = graph.search(np.ascontiguousarray(queries.rows), depth, params=parameters)
    return np.asarray(found, dtype=np.int64)


def _graph(snapshot: Snapshot, field: Field) -> Any:
    import faiss

    name = f"hnsw-{field}"
    if name not in snapshot.caches:
        graph = faiss.IndexHNSWFlat(snapshot.meta.dimensions, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _EF_CONSTRUCTION
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            for shard in snapshot.shards:
                graph.add(np.ascontiguousarray(shard.live_rows(field), dtype=np.float32))
        finally:
            faiss.omp_set_num_threads(threads)
        snapshot.caches[name] = graph
    return snapshot.caches[name]
