"""Qdrant without a server: its own engine in this process (qdrant-edge), and the local mode of its Python client.

Both store documents as the paper does: ``doc``, one vector, and ``all``, all rows with MaxSim. The engine's exact
search reads every row, its HNSW search has the paper's ``hnsw_ef`` of 128. Local mode is numpy with a copy of
everything; above ``most_local`` documents it is left out, and so are packages that are not installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import Corpus
from .floor import Work
from .measure import FEW, Found, K, Search, System

HNSW_EF = 128
_SENT = 2000


def systems(corpus: Corpus, folder: Path, most_hnsw_rows: int, most_local: int) -> Iterator[System]:
    """Yield document vectors and MaxSim by the engine, exact and HNSW; MaxSim by local mode."""
    if find_spec("qdrant_edge"):
        yield from _engine(corpus, folder, most_hnsw_rows)
    if find_spec("qdrant_client") and len(corpus) <= most_local:
        held, work = corpus.rows.nbytes, (Work(len(corpus.rows), corpus.dimensions),)
        options: dict[str, Any] = {"queries": FEW, "at_once": False, "held": held, "repeat": 1, "work": work}
        yield System("Qdrant local mode, exact MaxSim", lambda: _local(corpus), **options)


def _engine(corpus: Corpus, folder: Path, most_hnsw_rows: int) -> Iterator[System]:
    import qdrant_edge as edge

    with tempfile.TemporaryDirectory(dir=folder) as name, ExitStack() as opened:

        @cache
        def shard() -> Any:
            made = _filled(corpus, name)
            opened.callback(made.close)
            return made

        @cache
        def graph() -> Any:
            shard().optimize()
            return shard()

        exact, walked = edge.SearchParams(exact=True), edge.SearchParams(hnsw_ef=HNSW_EF)
        held = corpus.rows.nbytes + len(corpus) * 4 * corpus.dimensions
        one: dict[str, Any] = {"queries": FEW, "at_once": False, "held": held}
        work = (Work(len(corpus), corpus.dimensions, ("float32",), "document"),)
        found = {"held": held, "truth": "document"}
        yield System("qdrant-edge exact, document vectors", lambda: _asked(shard(), "doc", exact), **found, work=work)
        work = (Work(len(corpus.rows), corpus.dimensions),)
        yield System("qdrant-edge exact MaxSim", lambda: _asked(shard(), "all", exact), **one, work=work)
        if len(corpus.rows) <= most_hnsw_rows:
            walk = f"qdrant-edge HNSW {HNSW_EF}"
            yield System(f"{walk}, document vectors", lambda: _asked(graph(), "doc", walked), **found)
            yield System(f"{walk} MaxSim", lambda: _asked(graph(), "all", walked), **one)


def _filled(corpus: Corpus, folder: str) -> Any:
    """Build a shard of the engine with all documents."""
    import qdrant_edge as edge

    maxsim = edge.MultiVectorConfig(comparator=edge.MultiVectorComparator.MaxSim)
    size, dot = corpus.dimensions, edge.Distance.Dot
    vectors = {
        "doc": edge.EdgeVectorParams(size=size, distance=dot),
        "all": edge.EdgeVectorParams(size=size, distance=dot, multivector_config=maxsim),
    }
    shard = edge.EdgeShard.create(folder, edge.EdgeConfig(vectors=vectors))
    for first, last in corpus.pieces(_SENT):
        made = [(i, corpus.rows[corpus.offsets[i] : corpus.offsets[i + 1]]) for i in range(first, last)]
        points = [edge.Point(i, {"doc": rows[-1].tolist(), "all": rows.tolist()}) for i, rows in made]
        shard.update(edge.UpdateOperation.upsert_points(points))
    return shard


def _asked(shard: Any, using: str, params: Any) -> Search:
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


def _local(corpus: Corpus) -> Search:
    """Build local mode in memory: on disk it commits each document, which needs minutes."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    maxsim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    kind = models.VectorParams(size=corpus.dimensions, distance=models.Distance.DOT, multivector_config=maxsim)
    client.create_collection("all", {"all": kind})
    for first, last in corpus.pieces(_SENT):
        rows = [corpus.rows[corpus.offsets[i] : corpus.offsets[i + 1]] for i in range(first, last)]
        points = [models.PointStruct(id=i, vector={"all": of.tolist()}) for i, of in enumerate(rows, first)]
        client.upsert("all", points)

    def search(queries: list[np.ndarray]) -> Found:
        answers = [client.query_points("all", query.tolist(), using="all", limit=K) for query in queries]
        return [np.array([point.id for point in answer.points], dtype=np.int64) for answer in answers]

    return search
