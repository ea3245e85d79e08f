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
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph, build_store
from pyterrier_mathamr.graph.parallel import Built, begun_store, processes_for
from pyterrier_mathamr.graph.store import graph_of, unpack
from pyterrier_mathamr.index.indexing import DocumentIndexer
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import TITLE_FORMULA, Document, document_post
from pyterrier_mathamr.sparse.expressions import Read as ReadFormulas
from pyterrier_mathamr.store import Mode, StoredArtifact

from .generations import Indexes
from .posts import AT_ONCE, Records, having
from .worker import BatchRead, ReadBatch, prepare

_IDS_AT_ONCE = 10_000
_MANY = 8 * AT_ONCE  # posts; fewer are read before a process has started


def build_indexes(
    indexes: Indexes, model: MathAMR, parser: str | AmrParser, *, mode: Mode, executor: Executor, verbose: bool
) -> None:
    """Build every index from the posts, or add the missing posts to it."""
    sources, builder = {"posts": len(indexes.posts)}, GraphBuilder(parser, reads=model.reads)
    made = (indexes.graphs, indexes.bm25, indexes.tangent, indexes.patterns, indexes.vectors)
    everything = Records(indexes.posts, list(indexes.posts.snapshot()))
    options: dict[str, Any] = {"resume": True, "verbose": verbose}

    def missing(index: StoredArtifact) -> Records:
        """Return the posts that an index does not have, in order."""
        known = set(having(index, everything.docnos)) if index.built() else ()
        return Records(indexes.posts, [docno for docno in everything.docnos if docno not in known])

    vectors = indexes.vectors.indexer(mode, model=model.vectors_by, resume=True, sources=sources)
    if mode == "create" and not any(index.built() or index.unfinished() for index in made):
        pending = vectors.pending({"docno": docno} for docno in everything.docnos)
        with closing(_graphs_in_one_pass(indexes, everything, builder, sources, executor)) as graphs:
            built = ({**row, "graph": graph} for row, graph in zip(pending, graphs, strict=True))
            _index_vectors(model, vectors, built, len(everything), verbose)
    else:
        if posts := missing(indexes.graphs):
            stored: dict[str, Any] = {"sources": sources, "mode": mode, "executor": executor, "total": len(posts)}
            build_store(posts, builder, indexes.graphs, verbose=verbose, **stored)
        if posts := missing(indexes.bm25):
            indexes.bm25.indexer(mode, **options).index(posts)
        unbuilt = [index for index in (indexes.tangent, indexes.patterns) if mode == "create" and not index.built()]
        if unbuilt and any(document_post(post).formulas for post in everything):
            for index in unbuilt:
                index.indexer("create", executor=executor, **options).index(everything)
        if posts := missing(indexes.vectors):
            pending = vectors.pending({"docno": docno} for docno in posts.docnos)
            stored_graphs = _graphs_of(indexes, (record["docno"] for record in pending))
            _index_vectors(model, vectors, stored_graphs, len(posts), verbose)
    _index_formulas(indexes, mode, verbose)


def _graphs_in_one_pass(
    indexes: Indexes, posts: Records, builder: GraphBuilder, sources: dict[str, Any], executor: Executor
) -> Generator[MathAMRGraph, None, None]:
    """Read posts, make their indexes, and yield the graph of each; with the last one the indexes are published.

    A build that is stopped is completed by one index after the other.
    """
    bm25 = indexes.bm25.indexer("create", resume=True)
    tangent, patterns = (index.indexer("create", resume=True) for index in (indexes.tangent, indexes.patterns))
    with ExitStack() as stack:
        begun = stack.enter_context(begun_store(builder, indexes.graphs, sources, executor=executor))
        add_tokens = stack.enter_context(bm25.adding())
        add_formulas: list[Callable[[ReadFormulas], None]] = []

        def indexed(batches: Iterator[BatchRead]) -> Iterator[Built]:
            """Add what the workers have read to the indexes, and yield the graphs."""
            for batch in batches:
                batch.heard.repeat()
                add_tokens(batch.tokens)
                if not add_formulas and batch.formulas.found:  # posts without formulas have no such index
                    add_formulas.extend(stack.enter_context(index.adding()) for index in (tangent, patterns))
                for add, formulas in zip(add_formulas, (batch.formulas, batch.patterns), strict=False):
                    add(formulas)
                yield batch.graphs

        work = ReadBatch(begun.build, bm25.reading(), tangent.reading(), patterns.reading())
        batches = stack.enter_context(closing(begun.executor.map(work, begun.batches(posts))))
        for record in begun.indexer.written(begun.job, begun.records(indexed(batches))):
            yield graph_of(unpack(record.data))


def _graphs_of(indexes: Indexes, docnos: Iterator[str]) -> Iterator[dict[str, Any]]:
    while some := list(islice(docnos, AT_ONCE)):
        for docno, graph in zip(some, indexes.graphs.get_many(some), strict=True):
            yield {"docno": docno, "graph": graph}


def _index_vectors(
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


def _index_formulas(indexes: Indexes, mode: Mode, verbose: bool) -> None:
    """Index formulas by their vectors, which the index of vectors holds already; added ones by symbol pairs, too."""
    known = indexes.formulas.snapshot() if indexes.formulas.built() else None  # the last index to be built
    pending = [
        docno
        for docno, ids in _formula_ids(indexes, list(indexes.posts.snapshot()))
        if ids and ids != [TITLE_FORMULA] and (known is None or known.look_up(ids[:1])[0] < 0)
    ]
    if not pending:
        return
    for index in (indexes.tangent, indexes.patterns) if mode == "append" else ():
        own_mode: Mode = "append" if index.built() else "create"
        index.indexer(own_mode, resume=True, verbose=verbose).index(Records(indexes.posts, pending))
    load = indexes.vectors.text_loader("formula_ids") >> indexes.vectors.vec_loader()
    batches = (pending[start : start + AT_ONCE] for start in range(0, len(pending), AT_ONCE))
    rows = (row for docnos in batches for row in load(pd.DataFrame({"docno": docnos})).to_dict("records"))
    options: dict[str, Any] = {"resume": True, "verbose": verbose, "total": len(pending)}
    vector_mode: Mode = mode if known is None else "append"
    indexes.formulas.indexer(vector_mode, model=indexes.vectors.model, **options).index(rows)


def _formula_ids(indexes: Indexes, docnos: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the posts that the index of vectors has, with the ids of their formulas."""
    load = indexes.vectors.text_loader("formula_ids")
    for start in range(0, len(docnos), _IDS_AT_ONCE):
        known = having(indexes.vectors, docnos[start : start + _IDS_AT_ONCE])
        loaded = load(pd.DataFrame({"docno": known}))
        yield from ((docno, ids or []) for docno, ids in zip(loaded["docno"], loaded["formula_ids"], strict=True))


def remove_posts(indexes: Indexes, docnos: Sequence[str]) -> None:
    """Remove posts from every index; the vectors, which know the formulas of each, come last."""
    formula_ids = [name for _, ids in _formula_ids(indexes, docnos) for name in ids]
    for index in (indexes.formulas, indexes.tangent, indexes.patterns):
        remove_known(index, formula_ids)
    for index in (indexes.graphs, indexes.bm25, indexes.posts, indexes.vectors):
        remove_known(index, docnos)


def remove_known(index: StoredArtifact, ids: Sequence[str]) -> None:
    if ids and index.built():
        index.delete(having(index, ids))


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

        def starting() -> Iterator[Document]:
            for number, document in enumerate(documents, 1):
                if number == _MANY:
                    started.start()
                yield document

        yield starting(), started
