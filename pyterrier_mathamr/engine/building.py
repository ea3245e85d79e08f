"""Building the indexes of an engine, and bringing a copy of them into line with its posts.

::

    source ──read──▶ posts ──parse──▶ graphs ──encode──▶ vectors ──▶ formulas
                       ├──▶ bm25
                       └──▶ tangent

A new engine reads its posts once for all indexes (``one_pass``). Each is an artifact of its own and resumes where it
was stopped, so the same call continues a build that was killed, then one index after the other. Nobody sees any of it
before the generation is published (``generations``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from pyterrier_mathamr._common.running.executors import Executor
from pyterrier_mathamr.amr import AmrParser
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, build_store
from pyterrier_mathamr.model import MathAMR, vectors_by
from pyterrier_mathamr.posts import document_post
from pyterrier_mathamr.store import Mode, StoredArtifact

from .generations import Indexes
from .one_pass import build_in_one_pass, untouched
from .posts import AT_ONCE, PostStore, Records


def build_indexes(
    indexes: Indexes, model: MathAMR, parser: str | AmrParser, *, mode: Mode, executor: Executor, verbose: bool
) -> None:
    """Build every index from the posts, or add the posts to it that it does not have."""
    sources = {"posts": len(indexes.posts)}
    if mode == "create" and untouched(indexes):
        build_in_one_pass(indexes, model, parser, sources, executor, verbose)
    else:
        _complete(indexes, model, parser, sources, mode, executor, verbose)
    _build_formulas(indexes, mode, verbose)


def _complete(
    indexes: Indexes,
    model: MathAMR,
    parser: str | AmrParser,
    sources: dict[str, Any],
    mode: Mode,
    executor: Executor,
    verbose: bool,
) -> None:
    """Bring one index after the other into line with the posts."""
    if posts := _missing(indexes.graphs, indexes.posts):
        _build_graphs(indexes, parser, posts, sources, mode, executor, verbose)
    if posts := _missing(indexes.bm25, indexes.posts):
        indexes.bm25.indexer(mode, resume=True, verbose=verbose).index(posts)
    if mode == "create" and not indexes.tangent.built():
        _index_symbol_pairs(indexes, executor, verbose)
    if posts := _missing(indexes.vectors, indexes.posts):
        _encode(indexes, model, posts, sources, mode, verbose)


def _missing(index: StoredArtifact, posts: PostStore) -> Records:
    """The posts that an index does not have, in order."""
    return Records(posts, _absent(posts, index) if index.built() else list(posts.snapshot()))


def _absent(some: StoredArtifact, other: StoredArtifact) -> list[str]:
    """The ids of one artifact that another does not have, in order."""
    ids = list(some.snapshot())
    rows = other.snapshot().look_up(ids).tolist()
    return [name for name, row in zip(ids, rows, strict=True) if row < 0]


def _build_graphs(
    indexes: Indexes,
    parser: str | AmrParser,
    posts: Records,
    sources: dict[str, Any],
    mode: Mode,
    executor: Executor,
    verbose: bool,
) -> None:
    builder = GraphBuilder(parser)
    build_store(
        posts, builder, indexes.graphs, sources=sources, mode=mode, executor=executor, verbose=verbose, total=len(posts)
    )


def _encode(
    indexes: Indexes, model: MathAMR, posts: Records, sources: dict[str, Any], mode: Mode, verbose: bool
) -> None:
    """Encode the graphs of posts and index their vectors."""
    indexer = indexes.vectors.indexer(
        mode, model=vectors_by(model), resume=True, sources=sources, verbose=verbose, total=len(posts)
    )
    pending = indexer.pending({"docno": docno} for docno in posts.docnos)
    (model.doc_encoder() >> indexer).index(_graphs_of(indexes.graphs, (record["docno"] for record in pending)))


def _graphs_of(store: GraphStore, docnos: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Read the graphs of posts, many at a time."""
    while batch := list(islice(docnos, AT_ONCE)):
        for docno, graph in zip(batch, store.get_many(batch), strict=True):
            yield {"docno": docno, "graph": graph}


def _index_symbol_pairs(indexes: Indexes, executor: Executor, verbose: bool) -> None:
    """Index the symbol pairs of all posts, if one of them has a formula."""
    posts = Records(indexes.posts, list(indexes.posts.snapshot()))
    if any(document_post(post).formulas for post in posts):
        options: dict[str, Any] = {"resume": True, "executor": executor, "verbose": verbose}
        indexes.tangent.indexer("create", **options).index(posts)


def _build_formulas(indexes: Indexes, mode: Mode, verbose: bool) -> None:
    """Index formulas by their vectors, which the index of vectors holds already; added ones by symbol pairs, too."""
    pending = _unindexed_formulas(indexes)
    if not pending:
        return
    if mode == "append":
        tangent_mode: Mode = "append" if indexes.tangent.built() else "create"
        indexes.tangent.indexer(tangent_mode, resume=True, verbose=verbose).index(Records(indexes.posts, pending))
    wanted = set(pending)
    entries = (entry for entry in indexes.vectors.get_corpus_iter() if entry["docno"] in wanted)
    vector_mode: Mode = "append" if indexes.formulas.built() else mode
    options: dict[str, Any] = {"verbose": verbose, "total": len(pending)}
    indexes.formulas.indexer(vector_mode, model=indexes.vectors.model, resume=True, **options).index(entries)


def _unindexed_formulas(indexes: Indexes) -> list[str]:
    """The posts with formulas of which the index of formula vectors, the last to be built, has none."""
    known = indexes.formulas.snapshot() if indexes.formulas.built() else None
    posts = ((entry["docno"], entry.get("formula_ids") or []) for entry in indexes.vectors.get_corpus_iter())
    return [docno for docno, ids in posts if ids and (known is None or known.look_up(list(ids[:1]))[0] < 0)]


def remove_posts(indexes: Indexes, docnos: Sequence[str]) -> None:
    """Remove posts from every index; the vectors, which say which formulas they have, come last."""
    gone = set(docnos)
    entries = (entry for entry in indexes.vectors.get_corpus_iter() if entry["docno"] in gone)
    formula_ids = [name for entry in entries for name in entry.get("formula_ids") or []]
    for index in (indexes.formulas, indexes.tangent):
        _delete_known(index, formula_ids)
    for index in (indexes.graphs, indexes.bm25, indexes.posts, indexes.vectors):
        _delete_known(index, docnos)


def _delete_known(index: StoredArtifact, ids: Sequence[str]) -> None:
    """Delete those of the ids that an index has."""
    if ids and index.built():
        rows = index.snapshot().look_up(list(ids)).tolist()
        index.delete([name for name, row in zip(ids, rows, strict=True) if row >= 0])
