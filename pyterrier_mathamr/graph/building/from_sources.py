"""Posts of sources to a graph store: what ``mathamr graphs`` does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.amr import AmrParser, WorkerParser, get_parser
from pyterrier_mathamr.arqmath import ARQMathCollection, count_documents, read_documents, source_fingerprints
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph.store.graph_store import GraphStore

from .parallel import build_store
from .transformer import GraphBuilder


def graphs_from_sources(
    sources: Sequence[Path],
    output: Path,
    *,
    parser: str | AmrParser = "dependency",
    formulas: FormulaMode = "both",
    workers: int | None = 1,
    executor: Executor | None = None,
    fresh: bool = False,
    verbose: bool = False,
) -> GraphStore:
    """Build the graphs of all posts of several sources.

    Args:
        sources: ARQMath folders, whose official formula trees are used if they have any, pair files, and files or
            folders of posts.
        output: the new store; the formula trees are kept beside it in ``<output>.formulas``.
        parser: the AMR parser, or its name; one with workers of its own gets enough posts at once to keep them busy.
        formulas: the trees that are attached.
        workers: number of processes, see :func:`build_store`; the store is the same for any number.
        executor: where formulas are read and graphs are built instead; the stores are the same for all.
        fresh: discard the work of a job that was stopped.
        verbose: show progress.

    Returns:
        The store.

    Raises:
        ARQMathError: there is no such source. DocumentError: nothing of one can be read.
        UnfinishedJobError: a job that was stopped had other sources or options.
    """
    collections = [ARQMathCollection(source) for source in sources if source.is_dir()]
    slt = tuple(table for collection in collections for table in collection.slt_tables)
    opt = tuple(table for collection in collections for table in collection.opt_tables)
    trees = None
    if slt or opt:
        path = output.with_name(f"{output.name}.formulas")
        if fresh:
            FormulaStore(path).discard()
        where = executor or Processes(workers)
        trees = FormulaStore.build(path, slt, opt, executor=where, verbose=verbose, reuse=True)
    made = get_parser(parser)
    batch_size = made.batch_posts if isinstance(made, WorkerParser) else 64
    builder = GraphBuilder(parser, formulas, trees, batch_size=batch_size)
    options: dict[str, Any] = {"workers": workers, "executor": executor, "fresh": fresh, "verbose": verbose}
    return complete_store(sources, builder, GraphStore(output), **options)


def complete_store(
    sources: Sequence[Path],
    builder: GraphBuilder,
    store: GraphStore,
    *,
    workers: int | None = 1,
    executor: Executor | None = None,
    fresh: bool = False,
    verbose: bool = False,
) -> GraphStore:
    """Build the graphs of the posts of sources into a store, or complete the store of a job that was stopped."""
    if fresh:
        store.discard()
    counts = [count_documents(source) for source in sources] if verbose else [None]
    return build_store(
        itertools.chain.from_iterable(map(read_documents, sources)),
        builder,
        store,
        sources=source_fingerprints(sources),
        mode="overwrite" if store.built() else "create",
        workers=workers,
        executor=executor,
        verbose=verbose,
        total=None if None in counts else sum(filter(None, counts)),
    )
