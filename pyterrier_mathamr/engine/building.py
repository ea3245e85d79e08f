"""Building an engine, and adding to it: one pass over the posts, then one index after the other from what it stored.

::

    source ──read──▶ posts ──parse──▶ graphs ──encode──▶ vectors ──▶ formulas
                       ├──▶ bm25
                       └──▶ tangent      by a process of its own, while vectors are made

Each is an artifact of its own and resumes where it was stopped, so the same call continues a build that was killed. The
posts define what an engine holds: an index that is ahead of them or behind after a kill is brought into line by the
next change, and until then only posts that are in all of them are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.problems import Overheard, overheard
from pyterrier_mathamr._common.running.aside import aside
from pyterrier_mathamr._common.running.processes import usable_cores
from pyterrier_mathamr.amr import AmrParser
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, build_store
from pyterrier_mathamr.model import MathAMR, vectors_by
from pyterrier_mathamr.posts import document_post
from pyterrier_mathamr.store import Mode, StoredArtifact

from .generations import Indexes
from .posts import PostStore

_BATCH = 64
_BESIDE = 500  # posts; the formulas of fewer are read before a process has started


def build_indexes(
    indexes: Indexes, model: MathAMR, parser: str | AmrParser, *, mode: Mode, workers: int | None, verbose: bool
) -> None:
    """Build every index from the posts, or add the posts to it that it does not have and remove those that are gone.

    Args:
        indexes: the posts are stored.
        model: makes the vectors.
        parser: makes the graphs.
        mode: ``create``, where an index that is built already is left as it is, or ``append``.
        workers: processes that make graphs; ``None`` for all cores.
        verbose: show progress.
    """
    if mode == "append":
        remove_strays(indexes)
    sources = {"posts": len(indexes.posts)}
    if posts := _missing(indexes.graphs, indexes.posts):
        _build_graphs(indexes, parser, posts, sources, mode, workers, verbose)
    with _symbol_pairs(indexes, mode, workers, verbose):
        if posts := _missing(indexes.bm25, indexes.posts):
            indexes.bm25.indexer(mode, resume=True, verbose=verbose).index(posts)
        if posts := _missing(indexes.vectors, indexes.posts):
            _encode(indexes, model, posts, sources, mode, verbose)
    _build_formulas(indexes, mode, verbose)


class _Records:
    """Posts as records, with their number; ``tick`` is called with each."""

    def __init__(self, posts: PostStore, docnos: Sequence[str], tick: Callable[[], None] = lambda: None) -> None:
        self.posts, self.docnos, self.tick = posts, docnos, tick

    def __len__(self) -> int:
        return len(self.docnos)

    def __iter__(self) -> Iterator[dict[str, str]]:
        names = iter(self.docnos)
        while batch := list(islice(names, _BATCH)):
            for document in self.posts.get_many(batch):
                yield document.record()
                self.tick()


def _missing(index: StoredArtifact, posts: PostStore) -> _Records:
    """The posts that an index does not have, in order."""
    return _Records(posts, _absent(posts, index) if index.built() else list(posts.snapshot()))


def _absent(some: StoredArtifact, other: StoredArtifact) -> list[str]:
    """The ids of one artifact that another does not have, in order."""
    ids = list(some.snapshot())
    rows = other.snapshot().look_up(ids).tolist()
    return [name for name, row in zip(ids, rows, strict=True) if row < 0]


def _build_graphs(
    indexes: Indexes,
    parser: str | AmrParser,
    posts: _Records,
    sources: dict[str, Any],
    mode: Mode,
    workers: int | None,
    verbose: bool,
) -> None:
    builder = GraphBuilder(parser)
    build_store(
        posts, builder, indexes.graphs, sources=sources, mode=mode, workers=workers, verbose=verbose, total=len(posts)
    )


def _encode(
    indexes: Indexes, model: MathAMR, posts: _Records, sources: dict[str, Any], mode: Mode, verbose: bool
) -> None:
    """Encode the graphs of posts and index their vectors."""
    indexer = indexes.vectors.indexer(
        mode, model=vectors_by(model), resume=True, sources=sources, verbose=verbose, total=len(posts)
    )
    pending = indexer.pending({"docno": docno} for docno in posts.docnos)
    (model.doc_encoder() >> indexer).index(_graphs_of(indexes.graphs, (record["docno"] for record in pending)))


def _graphs_of(store: GraphStore, docnos: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Read the graphs of posts, many at a time."""
    while batch := list(islice(docnos, _BATCH)):
        for docno, graph in zip(batch, store.get_many(batch), strict=True):
            yield {"docno": docno, "graph": graph}


@contextmanager
def _symbol_pairs(indexes: Indexes, mode: Mode, workers: int | None, verbose: bool) -> Iterator[None]:
    """Index the symbol pairs of a new engine's formulas beside the body, on a second core where it may be used."""
    beside = (workers or usable_cores()) > 1 and len(indexes.posts) >= _BESIDE
    if mode != "create" or indexes.tangent.built():
        yield
    elif not beside:
        yield
        _index_symbol_pairs(indexes, verbose)
    else:
        with aside(partial(_symbol_pairs_of, indexes.posts.path.parent)) as work:
            yield
            work.result("indexing formulas", "posts", total=len(indexes.posts), verbose=verbose).repeat()


def _symbol_pairs_of(folder: Path, tick: Callable[[], None]) -> Overheard:
    with overheard() as heard:
        _index_symbol_pairs(Indexes.of(folder), False, tick)
    return heard


def _index_symbol_pairs(indexes: Indexes, verbose: bool, tick: Callable[[], None] = lambda: None) -> None:
    """Index the symbol pairs of all posts, if one of them has a formula."""
    posts = _Records(indexes.posts, list(indexes.posts.snapshot()))
    if any(document_post(post).formulas for post in posts):
        posts.tick = tick
        indexes.tangent.indexer("create", resume=True, verbose=verbose).index(posts)


def _build_formulas(indexes: Indexes, mode: Mode, verbose: bool) -> None:
    """Index formulas by their vectors, which the index of vectors holds already; added ones by symbol pairs, too."""
    pending = _unindexed_formulas(indexes)
    if not pending:
        return
    if mode == "append":
        tangent_mode: Mode = "append" if indexes.tangent.built() else "create"
        indexes.tangent.indexer(tangent_mode, resume=True, verbose=verbose).index(_Records(indexes.posts, pending))
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


def remove_strays(indexes: Indexes) -> None:
    """Remove from every index what is no longer among the posts; the vectors, which say what that is, come last."""
    strays = _absent(indexes.vectors, indexes.posts) if indexes.vectors.built() else []
    if strays:
        gone = set(strays)
        entries = (entry for entry in indexes.vectors.get_corpus_iter() if entry["docno"] in gone)
        formula_ids = [name for entry in entries for name in entry.get("formula_ids") or []]
        for index, ids in ((indexes.formulas, formula_ids), (indexes.tangent, formula_ids), (indexes.graphs, strays)):
            _delete_known(index, ids)
    if indexes.bm25.built():
        _delete_known(indexes.bm25, _absent(indexes.bm25, indexes.posts))
    _delete_known(indexes.vectors, strays)


def _delete_known(index: StoredArtifact, ids: Sequence[str]) -> None:
    """Delete those of the ids that an index has."""
    if ids and index.built():
        rows = index.snapshot().look_up(list(ids)).tolist()
        index.delete([name for name, row in zip(ids, rows, strict=True) if row >= 0])
