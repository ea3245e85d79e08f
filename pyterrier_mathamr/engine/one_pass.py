"""The indexes of a new engine, made in one pass over its posts.

::

    posts ──batches──▶ workers: each post is read once, each formula once     ┐
                       graphs · tokens · symbol pairs                         │
                          └──in order──▶ this process ──▶ graphs ──▶ vectors  ├─▶ published at the end
                                                      ──▶ bm25                │
                                                      ──▶ tangent             ┘
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback.progress import counted_progress
from pyterrier_mathamr._common.running.executors import Executor
from pyterrier_mathamr.amr import AmrParser
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.graph.building.parallel import Built, begun_store
from pyterrier_mathamr.graph.store.records import graph_of, unpack
from pyterrier_mathamr.model import MathAMR, vectors_by
from pyterrier_mathamr.sparse.expressions.reading import Read as ReadFormulas

from .generations import Indexes
from .posts import Records
from .worker import Read, ReadBatch


def untouched(indexes: Indexes) -> bool:
    """Tell whether nothing of what is made of the posts was begun."""
    made = (indexes.graphs, indexes.bm25, indexes.tangent, indexes.vectors)
    return not any(index.built() or index.unfinished() for index in made)


def build_in_one_pass(
    indexes: Indexes,
    model: MathAMR,
    parser: str | AmrParser,
    sources: dict[str, Any],
    executor: Executor,
    verbose: bool,
) -> None:
    """Make the indexes of all posts; a build that is stopped is completed by one index after the other."""
    posts = Records(indexes.posts, list(indexes.posts.snapshot()))
    indexer = indexes.vectors.indexer("create", model=vectors_by(model), resume=True, sources=sources)
    pending = indexer.pending({"docno": docno} for docno in posts.docnos)
    with (
        closing(_graphs(indexes, posts, parser, sources, executor)) as graphs,
        counted_progress("indexing", "posts", len(posts), verbose=verbose) as done,
    ):

        def counted(encoded: pd.DataFrame) -> pd.DataFrame:
            done(len(encoded))  # here and not as posts are read: their vectors take longest
            return encoded

        rows = ({**row, "graph": graph} for row, graph in zip(pending, graphs, strict=True))
        (model.doc_encoder() >> pt.apply.generic(counted) >> indexer).index(rows)


def _graphs(
    indexes: Indexes,
    posts: Records,
    parser: str | AmrParser,
    sources: dict[str, Any],
    executor: Executor,
) -> Generator[MathAMRGraph, None, None]:
    """Read posts, make their indexes, and yield the graph of each; with the last one the indexes are published."""
    bm25, tangent = (index.indexer("create", resume=True) for index in (indexes.bm25, indexes.tangent))
    with ExitStack() as stack:
        begun = stack.enter_context(begun_store(GraphBuilder(parser), indexes.graphs, sources, executor=executor))
        add_tokens = stack.enter_context(bm25.adding())
        add_formulas: Callable[[ReadFormulas], None] | None = None

        def counted(read: Iterator[Read]) -> Iterator[Built]:
            nonlocal add_formulas
            for batch in read:
                batch.heard.repeat()
                add_tokens(batch.tokens)
                if add_formulas is None and batch.formulas.found:  # posts without formulas have no such index
                    add_formulas = stack.enter_context(tangent.adding())
                if add_formulas is not None:
                    add_formulas(batch.formulas)
                yield batch.graphs

        work = ReadBatch(begun.build, bm25.reading(), tangent.reading())
        read = stack.enter_context(closing(begun.executor.map(work, begun.batches(posts))))
        records = begun.indexer.written(begun.job, begun.records(counted(read)))
        for record in records:
            yield graph_of(unpack(record.data))
