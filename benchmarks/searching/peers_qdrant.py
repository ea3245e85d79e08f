"""Qdrant without a server: its own engine in this process (qdrant-edge), and the local mode of its Python client.

Both keep documents as the paper does: ``doc``, one vector, and ``all``, all rows with MaxSim. The engine's exact search
reads every row, its HNSW is walked with the paper's ``hnsw_ef`` of 128. Local mode is plain numpy and keeps a copy of
everything; above ``most_local`` documents it is left out, and so are packages that are not installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import DIMENSIONS, Corpus
from .measure import FEW, Found, K, System

HNSW_EF = 128
_SENT = 2000


def systems(corpus: Corpus, folder: Path, most_hnsw_rows: int, most_local: int) -> Iterator[System]:
    """Document vectors and MaxSim by the engine, exact and HNSW; MaxSim by local mode."""
    if find_spec("qdrant_edge"):
        yield from _engine(corpus, folder, most_hnsw_rows)
    if find_spec("qdrant_client") and len(corpus) <= most_local:
        yield from _local(corpus)


def _engine(corpus: Corpus, folder: Path, most_hnsw_rows: int) -> Iterator[System]:
    import qdrant_edge as edge

    maxsim = edge.MultiVectorConfig(comparator=edge.MultiVectorComparator.MaxSim)
    vectors = {
        "doc": edge.EdgeVectorParams(size=DIMENSIONS, distance=edge.Distance.Dot),
        "all": edge.EdgeVectorParams(size=DIMENSIONS, distance=edge.Distance.Dot, multivector_config=maxsim),
    }
    with tempfile.TemporaryDirectory(dir=folder) as name:
        shard = edge.EdgeShard.create(name, edge.EdgeConfig(vectors=vectors))
        for first, last in corpus.pieces(_SENT):
            made = [(i, corpus.rows[corpus.offsets[i] : corpus.offsets[i + 1]]) for i in range(first, last)]
            points = [edge.Point(i, {"doc": rows[-1].tolist(), "all": rows.tolist()}) for i, rows in made]
            shard.update(edge.UpdateOperation.upsert_points(points))
        held = corpus.rows.nbytes + len(corpus) * 4 * DIMENSIONS
        exact = edge.SearchParams(exact=True)
        yield System("qdrant-edge exact, document vectors", _asked(shard, "doc", exact), held=held, truth="document")
        one = {"queries": FEW, "at_once": False, "held": held}
        yield System("qdrant-edge exact MaxSim", _asked(shard, "all", exact), **one)
        if len(corpus.rows) <= most_hnsw_rows:
            shard.optimize()
            graph = edge.SearchParams(hnsw_ef=HNSW_EF)
            found = _asked(shard, "doc", graph)
            yield System(f"qdrant-edge HNSW {HNSW_EF}, document vectors", found, held=held, truth="document")
            yield System(f"qdrant-edge HNSW {HNSW_EF} MaxSim", _asked(shard, "all", graph), **one)
        shard.close()


def _asked(shard: Any, using: str, params: Any) -> Any:
    import qdrant_edge as edge

    def search(queries: list[np.ndarray]) -> Found:
        results = []
        for query in queries:
            vector = query[-1].tolist() if using == "doc" else query.tolist()
            nearest = edge.Query.Nearest(vector, using=using)
            found = shard.query(edge.QueryRequest(limit=K, query=nearest, params=params))
            results.append(np.array([point.id for point in found], dtype=np.int64))
        return results

    return search


def _local(corpus: Corpus) -> Iterator[System]:
    """The client's local mode in memory: on disk it commits each document, which takes minutes."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    maxsim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    kind = models.VectorParams(size=DIMENSIONS, distance=models.Distance.DOT, multivector_config=maxsim)
    client.create_collection("all", {"all": kind})
    for first, last in corpus.pieces(_SENT):
        rows = [corpus.rows[corpus.offsets[i] : corpus.offsets[i + 1]] for i in range(first, last)]
        points = [models.PointStruct(id=i, vector={"all": of.tolist()}) for i, of in enumerate(rows, first)]
        client.upsert("all", points)

    def search(queries: list[np.ndarray]) -> Found:
        answers = [client.query_points("all", query.tolist(), using="all", limit=K) for query in queries]
        return [np.array([point.id for point in answer.points], dtype=np.int64) for answer in answers]

    yield System("Qdrant local mode, exact MaxSim", search, FEW, at_once=False, held=corpus.rows.nbytes, repeat=1)
