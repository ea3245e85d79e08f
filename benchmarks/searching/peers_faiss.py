"""FAISS in its usual forms: flat and HNSW over document vectors, and rows found one by one, rescored by MaxSim.

The paper retrieves 128 rows for each row of the query. Building HNSW over all rows needs hours at full size; above
``most_rows`` it is left out. The inverted file (IVF) stores int8 (SQ8), so that it fits into memory at full size.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import faiss
import numpy as np

from .brute import top
from .corpus import Corpus
from .floor import Work
from .measure import FEW, Found, K, Search, System

HITS = 128
"""Rows found for each row of the query."""

PROBES = 32
"""Lists of the inverted file that are read."""

_EF_SEARCH, _NEIGHBORS, _ADDED = 128, 32, 1 << 20


def systems(corpus: Corpus, most_rows: int) -> Iterator[System]:
    """Flat and HNSW document vectors; flat, IVF and HNSW rows with MaxSim."""
    m, rows, d = len(corpus), len(corpus.rows), corpus.dimensions
    of_documents, graph = 4 * m * d, 8 * _NEIGHBORS
    work = (Work(m, d, ("float32",), "document"),)
    flat = partial(_flat, corpus)
    yield System("FAISS flat, document vectors", flat, held=of_documents, truth="document", work=work)
    name = f"FAISS HNSW, document vectors, efSearch {_EF_SEARCH}"
    near = partial(_nearest, corpus)
    yield System(name, near, held=of_documents + m * graph, truth="document")
    name = f"FAISS IVF rows, {HITS} hits, {PROBES} probes + MaxSim"
    yield System(name, partial(_inverted, corpus), FEW, at_once=False, held=rows * (d + 8))
    if rows <= most_rows:
        found = partial(_row_graph, corpus)
        held = corpus.rows.nbytes + rows * graph
        yield System(f"FAISS HNSW rows, {HITS} hits + MaxSim", found, FEW, at_once=False, held=held)


def _flat(corpus: Corpus) -> Search:
    flat = faiss.IndexFlatIP(corpus.dimensions)
    flat.add(corpus.document_vectors())
    return _last_rows(flat)


def _nearest(corpus: Corpus) -> Search:
    return _last_rows(_hnsw(corpus.document_vectors()))


def _row_graph(corpus: Corpus) -> Search:
    return _tokens(_hnsw(corpus.rows), corpus)


def _inverted(corpus: Corpus) -> Search:
    rows = len(corpus.rows)
    lists = faiss.index_factory(corpus.dimensions, f"IVF{_lists(rows)},SQ8", faiss.METRIC_INNER_PRODUCT)
    some = np.random.default_rng(0).choice(rows, min(rows, 40 * _lists(rows)), replace=False)
    lists.train(np.array(corpus.rows[np.sort(some)]))
    for start in range(0, rows, _ADDED):
        lists.add(np.array(corpus.rows[start : start + _ADDED]))
    lists.nprobe = PROBES
    return _tokens(lists, corpus)


def _lists(rows: int) -> int:
    return int(min(4096, max(16, 2 ** int(np.log2(max(1.0, 4 * rows**0.5))))))


def _hnsw(rows: np.ndarray) -> Any:
    graph = faiss.IndexHNSWFlat(rows.shape[1], _NEIGHBORS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction, graph.hnsw.efSearch = 128, _EF_SEARCH
    for start in range(0, len(rows), _ADDED):
        graph.add(np.array(rows[start : start + _ADDED]))
    return graph


def _last_rows(found: Any) -> Search:
    def search(queries: list[np.ndarray]) -> Found:
        asked = np.stack([query[-1] for query in queries])
        return [row[row >= 0] for row in found.search(asked, min(K, found.ntotal))[1]]

    return search


def _tokens(found: Any, corpus: Corpus) -> Search:
    """The documents that own the rows found, ranked by exact MaxSim."""

    def search(queries: list[np.ndarray]) -> Found:
        results = []
        for query in queries:
            hits = found.search(np.ascontiguousarray(query), HITS)[1].ravel()
            numbers = np.unique(np.searchsorted(corpus.offsets, hits[hits >= 0], side="right") - 1)
            lengths = corpus.offsets[numbers + 1] - corpus.offsets[numbers]
            starts = np.cumsum([0, *lengths[:-1]])
            rows = corpus.rows[np.repeat(corpus.offsets[numbers] - starts, lengths) + np.arange(lengths.sum())]
            best = np.maximum.reduceat(rows @ query.T, starts, axis=0)
            results.append(numbers[top(best.sum(axis=1))])
        return results

    return search
