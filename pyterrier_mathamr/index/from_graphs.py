"""Build graphs and indexes; a job that was stopped continues, and replaces earlier artifacts only when it is done."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, TypeVar

from pyterrier_mathamr._common.parameters import COUNT, between
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.amr import AmrParser, WorkerParser, get_parser
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.arqmath.sources import count_documents, read_documents, source_fingerprints
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphError, GraphStore, build_store
from . import MathAMRFormulaIndex, MathAMRIndex, ShardedIndex, index_on
from .sharded import filling
from pyterrier_mathamr.model import MathAMR, vectors_by
from pyterrier_mathamr.store import META, Mode, file_fingerprint

_BATCH = 100  # documents that PyTerrier's pipelines pass on at once, unless a stage wants more

Index = TypeVar("Index", MathAMRIndex, MathAMRFormulaIndex)


def build_graphs(
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
        workers: number of processes, see :func:`complete_store`; the store is the same for any number.
        executor: where formulas are read and graphs are built instead; the stores are the same for all.
        fresh: discard the work of a job that was stopped.
        verbose: show progress.

    Returns:
        The store.

    Raises:
        SourceError: there is no such source. DocumentError: nothing of one can be read.
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


def index_graph_store(
    graph_store: Path,
    model: str,
    output: Path,
    *,
    answers_of: Path | None = None,
    parts: int | None = None,
    executor: Executor | None = None,
    fresh: bool = False,
    verbose: bool = False,
) -> MathAMRIndex | ShardedIndex:
    """Encode the graphs of a store and index their vectors.

    Args:
        graph_store: the graphs.
        model: name or folder of a model.
        output: the new index; a finished index is replaced once the new one is complete.
        answers_of: an ARQMath folder; only its answers are indexed.
        parts: in how many parts, neighbours in one; ``None`` for one index that is no folder of parts.
        executor: where graphs are encoded, by default in this process; the index is the same for all.
        fresh: discard the work of a job that was stopped.
        verbose: show progress.

    Returns:
        The index.

    Raises:
        GraphError: there is no graph to index. ConfigError: there are fewer than ``parts``.
        UnfinishedJobError: a job that was stopped had other graphs, another model or other answers.
    """
    graphs = GraphStore(graph_store)
    docnos = [post.id for post in ARQMathCollection(answers_of).answers()] if answers_of else graphs.ids()
    if not docnos:
        where = answers_of or graph_store
        raise GraphError(str(where), "it holds nothing to index; `mathamr graphs` builds graphs of posts")
    sources = {"answers_of": str(answers_of.resolve()) if answers_of else None}
    encoder = MathAMR.from_pretrained(model)
    options: dict[str, Any] = {"sources": sources, "executor": executor, "verbose": verbose}
    if parts is not None:
        return index_in_parts(docnos, graphs, encoder, output, parts, fresh=fresh, **options)
    index = MathAMRIndex(output)
    if fresh:
        index.discard()
    mode: Mode = "overwrite" if index.built() else "create"
    return index_documents(docnos, graphs, encoder, index, mode=mode, **options)


def index_in_parts(
    docnos: Sequence[str],
    graphs: GraphStore,
    model: MathAMR,
    path: Path,
    parts: int,
    *,
    sources: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    fresh: bool = False,
    verbose: bool = False,
) -> ShardedIndex:
    """Encode the graphs of some documents and index their vectors in parts, one after the other."""
    COUNT.check("parts", parts)
    between(1, len(docnos)).check("parts", parts)
    made_from = {**(sources or {}), "graphs": artifact_identity(graphs.path), "model": vectors_by(model)}
    batch = max(_BATCH, model.doc_encoder().batch_size)
    step = batch if len(docnos) >= batch * parts else 1
    cuts = [round(len(docnos) * part / parts / step) * step for part in range(parts)] + [len(docnos)]
    with filling(path, parts, made_from, fresh=fresh) as indexes:
        for index, (first, last) in zip(indexes, itertools.pairwise(cuts), strict=True):
            if not index.built():
                some = docnos[first:last]
                options: dict[str, Any] = {"sources": sources, "executor": executor, "verbose": verbose}
                index_documents(some, graphs, model, index, mode="create", **options)
    return ShardedIndex(path)


def index_documents(
    docnos: Iterable[str],
    graphs: GraphStore,
    model: MathAMR,
    index: Index,
    *,
    mode: Mode = "overwrite",
    sources: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    verbose: bool = False,
    **options: Any,
) -> Index:
    """Encode the graphs of some documents and index their vectors."""
    sources = {**(sources or {}), "graphs": artifact_identity(graphs.path)}
    options |= {"verbose": verbose, "total": len(docnos) if isinstance(docnos, Sized) else None}
    indexer = index.indexer(mode, model=vectors_by(model), resume=True, sources=sources, **options)
    index_on(executor or Processes(1), indexer, list(docnos), graphs, model)
    return index


def artifact_identity(path: Path) -> list[object]:
    """Identify the state of an artifact by the size and hash of its ``pt_meta.json``, which changes with it."""
    return file_fingerprint(path / META)
