"""How each part is built from a collection, resumed after a kill, and queried.

Every build continues after the finished work of one that was killed; every query is one call on an open artifact.
Packages are imported where they are used, so that no part has the memory of another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from pyterrier_mathamr.arqmath import ARQMathCollection
    from pyterrier_mathamr.formula import FormulaStore

ROWS, DIMENSIONS, QUERY_ROWS = 16, 32, 13  # of a document and a query, as the paper has them
MODEL = "mathamr-plus-mini"
QUERIES = 20

Query = Callable[[], object]


class Place(NamedTuple):
    """Where a part is built.

    Attributes:
        source: the small collection.
        folder: of this size; the collection is in ``release``, next to each artifact.
        posts: the number of posts.
        share: the part of the posts from which graphs are built.
    """

    source: Path
    folder: Path
    posts: int
    share: float

    @property
    def collection(self) -> ARQMathCollection:
        """The multiplied collection."""
        from pyterrier_mathamr.arqmath import ARQMathCollection

        return ARQMathCollection(self.folder / "release")


class Part(NamedTuple):
    """A part.

    Attributes:
        unit: the unit of its size.
        build: builds or completes it, and returns the number of units.
        queries: opens it, and returns some queries; ``None`` if it has no queries.
        needs: the parts from which it is built.
        files: the name of its output, in the folder of its size.
    """

    unit: str
    build: Callable[[Place], int]
    queries: Callable[[Place], list[Query]] | None = None
    needs: tuple[str, ...] = ("release",)
    files: str = ""


def _release(place: Place) -> int:
    from .release import multiply

    return multiply(place.source, place.folder / "release", place.posts) and place.posts


def _verify(place: Place) -> int:
    from mathamr_systems import verify

    findings = list(verify(place.folder / "release"))
    if bad := [finding for finding in findings if not finding.good]:
        raise SystemExit(f"{bad[0].role}: {bad[0].problems}")
    return place.posts


def _stats(place: Place) -> int:
    from mathamr_systems import release_statistics

    rows = {row.name: row.here for row in release_statistics(place.collection)}
    if rows["Total posts"] != place.posts:
        raise SystemExit(f"{rows['Total posts']} posts, not {place.posts}")
    return rows["Mathematical formulas"] or 0


def _formula_store(place: Place) -> FormulaStore:
    from pyterrier_mathamr.formula import FormulaStore

    return FormulaStore(place.folder / "formulas")


def _formulas(place: Place) -> int:
    tables = place.collection.slt_tables, place.collection.opt_tables
    return len(_formula_store(place).build(_formula_store(place).path, *tables, reuse=True))


def _formula_queries(place: Place) -> list[Query]:
    ids = [row.id for row in islice(place.collection.formulas(), 100_000)]
    store = _formula_store(place)
    some = np.random.default_rng(0).choice(ids, (QUERIES, 100))
    return [lambda names=names: store.get_many(names) for names in some.tolist()]


def _posts(place: Place) -> Iterator[dict[str, Any]]:
    return ({"docno": post.id, "title": post.title, "body": post.body} for post in place.collection.posts())


def _bm25(place: Place) -> int:
    from pyterrier_mathamr.sparse import BM25Index

    index = BM25Index(place.folder / "bm25", preset="math")
    if not index.built():
        index.indexer(resume=True).index(_posts(place))
    return len(index)


def _bm25_queries(place: Place) -> list[Query]:
    from pyterrier_mathamr.sparse import BM25Index

    topics = islice(place.collection.topics(2022), QUERIES)
    search = BM25Index(place.folder / "bm25", preset="math").retriever(num_results=1000)
    frames = [pd.DataFrame([{"qid": topic.id, "title": topic.title, "body": topic.body}]) for topic in topics]
    return [lambda frame=frame: search(frame) for frame in frames]


def _tangent(place: Place) -> int:
    from pyterrier_mathamr.sparse import TangentIndex

    index = TangentIndex(place.folder / "tangent")
    if not index.built():
        index.indexer(store=_formula_store(place), resume=True).index(_posts(place))
    return len(index)


def _tangent_queries(place: Place) -> list[Query]:
    from pyterrier_mathamr.sparse import TangentIndex

    topics = islice(place.collection.topics(2022, task=2), QUERIES)
    search = TangentIndex(place.folder / "tangent").retriever(num_results=1000)
    frames = [pd.DataFrame([{"qid": topic.id, "latex": topic.latex, "query": topic.latex}]) for topic in topics]
    return [lambda frame=frame: search(frame) for frame in frames]


def _drawn(place: Place) -> Iterator[dict[str, Any]]:
    """Draw unit vectors for every answer."""
    rng = np.random.default_rng(0)
    for post in place.collection.answers():
        yield {"docno": post.id, "doc_embs": _unit(rng, ROWS)}


def _unit(rng: np.random.Generator, rows: int, dimensions: int = DIMENSIONS) -> np.ndarray:
    drawn = rng.standard_normal((rows, dimensions), dtype=np.float32)
    unit: np.ndarray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def _vectors(place: Place) -> int:
    from pyterrier_mathamr.index import MathAMRIndex

    index = MathAMRIndex(place.folder / "vectors")
    if not index.built():
        index.indexer(resume=True).index(_drawn(place))
    return len(index)


def _vector_queries(name: str) -> Callable[[Place], list[Query]]:
    def queries(place: Place) -> list[Query]:
        from pyterrier_mathamr.index import MathAMRIndex

        index, rng = MathAMRIndex(place.folder / name), np.random.default_rng(1)
        search, width = index.colbert(num_results=1000), index.snapshot().meta.dimensions
        rows = [_unit(rng, QUERY_ROWS, width) for _ in range(QUERIES)]
        frames = [pd.DataFrame({"qid": ["1"], "query_embs": [asked]}) for asked in rows]
        return [lambda frame=frame: search(frame) for frame in frames]

    return queries


def _share(place: Place) -> int:
    """Write the first posts again, as a separate collection, unless graphs are built of all."""
    from .release import multiply

    wanted = round(place.share * place.posts)
    if place.share < 1:
        multiply(place.source, place.folder / "share", wanted)
    return wanted


def _graphs(place: Place) -> int:
    """Build graphs as ``mathamr graphs`` does."""
    from pyterrier_mathamr.arqmath import complete_store
    from pyterrier_mathamr.graph import GraphBuilder, GraphStore

    source = place.folder / ("share" if place.share < 1 else "release")
    builder = GraphBuilder("dependency", "both", _formula_store(place))
    return len(complete_store([source], builder, GraphStore(place.folder / "graphs"), workers=1))


def _graph_queries(place: Place) -> list[Query]:
    from pyterrier_mathamr.graph import GraphStore

    store = GraphStore(place.folder / "graphs")
    some = np.random.default_rng(0).choice(store.ids(), QUERIES)
    return [lambda name=name: store[name] for name in some.tolist()]


def _encoding(place: Place) -> int:
    from pyterrier_mathamr.index import MathAMRIndex, index_graph_store

    index = MathAMRIndex(place.folder / "encoding")
    if not index.built():
        index_graph_store(place.folder / "graphs", MODEL, index.path)
    return len(index)


PARTS = {
    "release": Part("posts", _release, needs=(), files="release"),
    "verify": Part("posts", _verify),
    "stats": Part("formulas", _stats),
    "formulas": Part("formulas", _formulas, _formula_queries, files="formulas"),
    "bm25": Part("posts", _bm25, _bm25_queries, files="bm25"),
    "tangent": Part("formulas", _tangent, _tangent_queries, ("release", "formulas"), "tangent"),
    "vectors": Part("answers", _vectors, _vector_queries("vectors"), files="vectors"),
    "share": Part("posts", _share, files="share"),
    "graphs": Part("posts", _graphs, _graph_queries, ("share", "formulas"), "graphs"),
    "encoding": Part("posts", _encoding, _vector_queries("encoding"), ("graphs",), "encoding"),
}
