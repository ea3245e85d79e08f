"""Building the indexes of an engine, and bringing a copy of them up to date with its posts.

::

    posts ──batches──▶ workers: each post is read once, each formula once     ┐
                       graphs · tokens · symbol pairs · patterns              │
                          └──in order──▶ this process ──▶ graphs ──▶ vectors  ├─▶ published at the end
                                                      ──▶ bm25                │
                                                      ──▶ tangent, patterns   ┘
                                            vectors ──▶ formulas

A new engine reads its posts once for all indexes. Each index is a separate artifact and resumes where it was
stopped: the same call continues a build that was killed, then one index after the other. Nothing is visible before
the generation is published (``generations``). The worker processes need a second to start, while the
posts are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import counted_progress, work_counted
from pyterrier_mathamr._common.running.processes import Executor, StartedProcesses
from pyterrier_mathamr.amr import AmrParser, DependencyAmrParser, get_parser
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, MathAMRGraph, build_store
from pyterrier_mathamr.graph.parallel import Built, begun_store, processes_for
from pyterrier_mathamr.graph.store import graph_of, unpack
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.index.indexing import DocumentIndexer
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import TITLE_FORMULA, Document, document_post
from pyterrier_mathamr.sparse.expressions.indexer import Read as ReadFormulas
from pyterrier_mathamr.store import Mode, StoredArtifact

from .generations import Indexes
from .posts import AT_ONCE, PostStore, Records
from .worker import BatchRead, ReadBatch, prepare

_IDS_AT_ONCE = 10_000


def build_indexes(
    indexes: Indexes, model: MathAMR, parser: str | AmrParser, *, mode: Mode, executor: Executor, verbose: bool
) -> None:
    """Build every index from the posts, or add the missing posts to it."""
    sources, builder = {"posts": len(indexes.posts)}, GraphBuilder(parser, reads=model.reads)
    if mode == "create" and untouched(indexes):
        build_in_one_pass(indexes, model, builder, sources, executor, verbose)
    else:
        _complete(indexes, model, builder, sources, mode, executor, verbose)
    _build_formulas(indexes, mode, verbose)


def _complete(
    indexes: Indexes,
    model: MathAMR,
    builder: GraphBuilder,
    sources: dict[str, Any],
    mode: Mode,
    executor: Executor,
    verbose: bool,
) -> None:
    """Bring one index after the other into line with the posts."""
    if posts := _missing(indexes.graphs, indexes.posts):
        build_store(
            posts,
            builder,
            indexes.graphs,
            sources=sources,
            mode=mode,
            executor=executor,
            verbose=verbose,
            total=len(posts),
        )
    if posts := _missing(indexes.bm25, indexes.posts):
        indexes.bm25.indexer(mode, resume=True, verbose=verbose).index(posts)
    if mode == "create":
        _index_all_formulas(indexes, executor, verbose)
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


def _encode(
    indexes: Indexes, model: MathAMR, posts: Records, sources: dict[str, Any], mode: Mode, verbose: bool
) -> None:
    """Encode the graphs of posts and index their vectors."""
    indexer = indexes.vectors.indexer(mode, model=model.vectors_by, resume=True, sources=sources)
    pending = indexer.pending({"docno": docno} for docno in posts.docnos)
    rows = _graphs_of(indexes.graphs, (record["docno"] for record in pending))
    _index_rows(model, indexer, rows, len(posts), verbose)


def _index_rows(
    model: MathAMR, indexer: DocumentIndexer, rows: Iterator[dict[str, Any]], total: int, verbose: bool
) -> None:
    """Encode posts and index their vectors; one that is read counts half, since either may take longer."""
    halves = ahead = 0
    with counted_progress("indexing", "posts", total, verbose=verbose) as done:

        def add(count: int) -> None:
            nonlocal halves
            before, halves = halves, halves + count
            done(halves // 2 - before // 2)

        def read() -> Iterator[dict[str, Any]]:
            for row in rows:
                add(1)
                yield row

        def encoding(count: int) -> None:
            nonlocal ahead
            ahead += count
            add(count)

        def encoded(batch: pd.DataFrame) -> pd.DataFrame:
            nonlocal ahead
            add(len(batch) - ahead)
            ahead = 0
            return batch

        with work_counted(encoding):
            (model.doc_encoder() >> pt.apply.generic(encoded) >> indexer).index(read())


def _graphs_of(store: GraphStore, docnos: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Read the graphs of posts, many at a time."""
    while batch := list(islice(docnos, AT_ONCE)):
        for docno, graph in zip(batch, store.get_many(batch), strict=True):
            yield {"docno": docno, "graph": graph}


def _index_all_formulas(indexes: Indexes, executor: Executor, verbose: bool) -> None:
    """Index the symbol pairs and sub-expressions of all posts, if one of them has a formula."""
    missing = [index for index in (indexes.tangent, indexes.patterns) if not index.built()]
    posts = Records(indexes.posts, list(indexes.posts.snapshot()))
    if missing and any(document_post(post).formulas for post in posts):
        options: dict[str, Any] = {"resume": True, "executor": executor, "verbose": verbose}
        for index in missing:
            index.indexer("create", **options).index(posts)


def _build_formulas(indexes: Indexes, mode: Mode, verbose: bool) -> None:
    """Index formulas by their vectors, which the index of vectors holds already; added ones by symbol pairs, too."""
    pending = _unindexed_formulas(indexes)
    if not pending:
        return
    for index in (indexes.tangent, indexes.patterns) if mode == "append" else ():
        own_mode: Mode = "append" if index.built() else "create"
        index.indexer(own_mode, resume=True, verbose=verbose).index(Records(indexes.posts, pending))
    vector_mode: Mode = "append" if indexes.formulas.built() else mode
    options: dict[str, Any] = {"verbose": verbose, "total": len(pending)}
    indexes.formulas.indexer(vector_mode, model=indexes.vectors.model, resume=True, **options).index(
        _formula_vectors(indexes.vectors, pending)
    )


def _unindexed_formulas(indexes: Indexes) -> list[str]:
    """List the posts with formulas that are missing from the index of formula vectors, the last to be built."""
    known = indexes.formulas.snapshot() if indexes.formulas.built() else None
    return [
        docno
        for docno, ids in _formula_ids(indexes.vectors, list(indexes.posts.snapshot()))
        if ids and ids != [TITLE_FORMULA] and (known is None or known.look_up(ids[:1])[0] < 0)
    ]


def _formula_ids(vectors: MathAMRIndex, docnos: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the posts that the index has, with the ids of their formulas."""
    load = vectors.text_loader("formula_ids")
    for start in range(0, len(docnos), _IDS_AT_ONCE):
        some = docnos[start : start + _IDS_AT_ONCE]
        rows = vectors.snapshot().look_up(some).tolist()
        found = load(pd.DataFrame({"docno": [docno for docno, row in zip(some, rows, strict=True) if row >= 0]}))
        yield from ((docno, ids or []) for docno, ids in zip(found["docno"], found["formula_ids"], strict=True))


def _formula_vectors(vectors: MathAMRIndex, docnos: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield posts with their vectors and the ids of their formulas."""
    load = vectors.text_loader("formula_ids") >> vectors.vec_loader()
    for start in range(0, len(docnos), AT_ONCE):
        yield from load(pd.DataFrame({"docno": docnos[start : start + AT_ONCE]})).to_dict("records")


def remove_posts(indexes: Indexes, docnos: Sequence[str]) -> None:
    """Remove posts from every index; the vectors, which know the formulas of each, come last."""
    formula_ids = [name for _, ids in _formula_ids(indexes.vectors, docnos) for name in ids]
    for index in (indexes.formulas, indexes.tangent, indexes.patterns):
        remove_known(index, formula_ids)
    for index in (indexes.graphs, indexes.bm25, indexes.posts, indexes.vectors):
        remove_known(index, docnos)


def remove_known(index: StoredArtifact, ids: Sequence[str]) -> None:
    """Delete the given ids that an index has."""
    if ids and index.built():
        rows = index.snapshot().look_up(list(ids)).tolist()
        index.delete([name for name, row in zip(ids, rows, strict=True) if row >= 0])


def untouched(indexes: Indexes) -> bool:
    """Return whether no index was begun."""
    made = (indexes.graphs, indexes.bm25, indexes.tangent, indexes.patterns, indexes.vectors)
    return not any(index.built() or index.unfinished() for index in made)


def build_in_one_pass(
    indexes: Indexes,
    model: MathAMR,
    builder: GraphBuilder,
    sources: dict[str, Any],
    executor: Executor,
    verbose: bool,
) -> None:
    """Make the indexes of all posts; a build that is stopped is completed by one index after the other."""
    posts = Records(indexes.posts, list(indexes.posts.snapshot()))
    indexer = indexes.vectors.indexer("create", model=model.vectors_by, resume=True, sources=sources)
    pending = indexer.pending({"docno": docno} for docno in posts.docnos)
    with closing(_graphs(indexes, posts, builder, sources, executor)) as graphs:
        rows = ({**row, "graph": graph} for row, graph in zip(pending, graphs, strict=True))
        _index_rows(model, indexer, rows, len(posts), verbose)


def _graphs(
    indexes: Indexes,
    posts: Records,
    builder: GraphBuilder,
    sources: dict[str, Any],
    executor: Executor,
) -> Generator[MathAMRGraph, None, None]:
    """Read posts, make their indexes, and yield the graph of each; with the last one the indexes are published."""
    bm25 = indexes.bm25.indexer("create", resume=True)
    tangent, patterns = (index.indexer("create", resume=True) for index in (indexes.tangent, indexes.patterns))
    with ExitStack() as stack:
        begun = stack.enter_context(begun_store(builder, indexes.graphs, sources, executor=executor))
        add_tokens = stack.enter_context(bm25.adding())
        add_formulas: list[Callable[[ReadFormulas], None]] = []

        def counted(read: Iterator[BatchRead]) -> Iterator[Built]:
            for batch in read:
                batch.heard.repeat()
                add_tokens(batch.tokens)
                if not add_formulas and batch.formulas.found:  # posts without formulas have no such index
                    add_formulas.extend(stack.enter_context(index.adding()) for index in (tangent, patterns))
                for add, found in zip(add_formulas, (batch.formulas, batch.patterns), strict=False):
                    add(found)
                yield batch.graphs

        work = ReadBatch(begun.build, bm25.reading(), tangent.reading(), patterns.reading())
        read = stack.enter_context(closing(begun.executor.map(work, begun.batches(posts))))
        records = begun.indexer.written(begun.job, begun.records(counted(read)))
        for record in records:
            yield graph_of(unpack(record.data))


_MANY = 8 * AT_ONCE  # posts; fewer are read before a process has started


@contextmanager
def readers(
    documents: Iterator[Document], parser: str, workers: int | None
) -> Iterator[tuple[Iterator[Document], Executor]]:
    """Yield posts and the executor that reads them; its processes start once there are many posts."""
    executor = processes_for(get_parser(parser), workers)
    if executor.slots == 1 or parser != DependencyAmrParser.name:
        yield documents, executor
        return
    with StartedProcesses(executor, prepare) as started:
        yield _telling(documents, started.start), started


def _telling(documents: Iterator[Document], act: Callable[[], None]) -> Iterator[Document]:
    """Pass on documents, and do something once there are many."""
    for number, document in enumerate(documents, 1):
        if number == _MANY:
            act()
        yield document
