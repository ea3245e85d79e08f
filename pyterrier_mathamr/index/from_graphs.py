"""Graphs of stored posts to vectors on disk; an interrupted job resumes and replaces an index only when done."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyterrier_mathamr._common.parameters import COUNT, between
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr.graph import GraphError, GraphStore
from pyterrier_mathamr.store import META, Mode, file_fingerprint

from .indexes import MathAMRFormulaIndex, MathAMRIndex
from .sharded.folder import filling
from .sharded.index import ShardedIndex
from .spreading import index_on

if TYPE_CHECKING:
    from pyterrier_mathamr.model import MathAMR  # loads torch

_BATCH = 100  # documents that PyTerrier's pipelines pass on at once, unless a stage wants more

Index = TypeVar("Index", MathAMRIndex, MathAMRFormulaIndex)


def index_graph_store(
    graph_store: Path,
    model: str,
    output: Path,
    *,
    docnos: Sequence[str] | None = None,
    sources: Mapping[str, Any] | None = None,
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
        docnos: the posts to index, such as the answers of a collection; by default all.
        sources: further inputs of the index; an unfinished job with other sources is refused.
        parts: the number of parts, with neighbors in one; ``None`` for one index without a folder of parts.
        executor: where to encode graphs, by default in this process; the index is the same.
        fresh: discard the work of a job that was stopped.
        verbose: show progress.

    Returns:
        The index.

    Raises:
        GraphError: there is no graph to index. ConfigError: there are fewer than ``parts``.
        UnfinishedJobError: a job that was stopped had other graphs, another model or other answers.
    """
    graphs = GraphStore(graph_store)
    docnos = graphs.ids() if docnos is None else docnos
    if not docnos:
        raise GraphError(str(graph_store), "it holds nothing to index; `mathamr graphs` builds graphs of posts")
    from pyterrier_mathamr.model import MathAMR

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
    made_from = {**(sources or {}), "graphs": artifact_identity(graphs.path), "model": model.vectors_by}
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
    """Encode the graphs of some documents and index their vectors.

    Args:
        docnos: the documents, each with a graph in the store.
        graphs: the store of the graphs.
        model: the model that encodes them.
        index: of documents or of formulas; it is filled in one step at the end.
        mode: ``create``, ``overwrite`` or ``append``, see ``index.indexer()``.
        sources: what the vectors depend on besides graphs and model; an interrupted job with other sources is refused.
        executor: where to encode graphs, by default in this process; the index is the same.
        verbose: show a progress bar.
        options: of ``index.indexer()``, such as ``visual_ids`` and ``dtype``.
    """
    sources = {**(sources or {}), "graphs": artifact_identity(graphs.path)}
    options |= {"verbose": verbose, "total": len(docnos) if isinstance(docnos, Sized) else None}
    indexer = index.indexer(mode, model=model.vectors_by, resume=True, sources=sources, **options)
    index_on(executor or Processes(1), indexer, list(docnos), graphs, model)
    return index


def artifact_identity(path: Path) -> list[object]:
    """Identify the state of an artifact by the size and hash of its ``pt_meta.json``, which changes with it."""
    return file_fingerprint(path / META)
