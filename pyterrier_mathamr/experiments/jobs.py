"""The long jobs behind the command line; each goes on where it was stopped, and replaces nothing before it is done."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.amr import AmrParser, WorkerParser, get_parser
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, MathAMRGraph, build_store
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder, Trainer, vectors_by
from pyterrier_mathamr.store import META, Mode, file_fingerprint

from .sources import TrainingPairs, read_documents, source_fingerprints

Index = TypeVar("Index", MathAMRIndex, MathAMRFormulaIndex)


class Graphs(Protocol):
    """Graphs by id: a ``GraphStore``, or several as one."""

    def __getitem__(self, key: str, /) -> MathAMRGraph: ...

    def __contains__(self, key: object, /) -> bool: ...


def build_graphs(
    sources: Sequence[Path],
    output: Path,
    *,
    parser: str | AmrParser = "dependency",
    formulas: FormulaMode = "both",
    workers: int | None = 1,
    fresh: bool = False,
    verbose: bool = False,
) -> GraphStore:
    """Build the graphs of all posts of several sources.

    Args:
        sources: ARQMath folders, whose official formula trees are used where they have them, and pair files.
        output: the new store; the trees of the formulas lie beside it as ``<output>.formulas``.
        parser: the AMR parser, or its name; one with workers of its own gets as many posts at once as keep them busy.
        formulas: the trees that are attached.
        workers: number of processes, see :func:`complete_store`; the store is the same for any number.
        fresh: discard what a job that stopped half way has done.
        verbose: show progress.

    Returns:
        The store.

    Raises:
        UnfinishedJobError: a job that stopped half way had other sources or options.
    """
    collections = [ARQMathCollection(source) for source in sources if source.is_dir()]
    slt = tuple(table for collection in collections for table in collection.slt_tables)
    opt = tuple(table for collection in collections for table in collection.opt_tables)
    trees = None
    if slt or opt:
        path = output.with_name(f"{output.name}.formulas")
        if fresh:
            FormulaStore(path).discard()
        trees = FormulaStore.build(path, slt, opt, verbose=verbose, reuse=True)
    made = get_parser(parser)
    batch_size = made.batch_posts if isinstance(made, WorkerParser) else 64
    builder = GraphBuilder(parser, formulas, trees, batch_size=batch_size)
    return complete_store(sources, builder, GraphStore(output), workers=workers, fresh=fresh, verbose=verbose)


def complete_store(
    sources: Sequence[Path],
    builder: GraphBuilder,
    store: GraphStore,
    *,
    workers: int | None = 1,
    fresh: bool = False,
    verbose: bool = False,
) -> GraphStore:
    """Build the graphs of the posts of sources into a store; one that a stopped job left half way is completed.

    Args:
        sources: ARQMath folders and pair files, each post in one of them.
        builder: makes the graphs, with trees of the same sources.
        store: where they are kept; a finished one is replaced once the new one is whole.
        workers: number of processes; ``None``: all usable cores with the embedded parser, one with any other.
        fresh: discard what a job that stopped half way has done.
        verbose: show progress.

    Returns:
        ``store``.

    Raises:
        UnfinishedJobError: a job that stopped half way had other sources or options.
    """
    if fresh:
        store.discard()
    return build_store(
        itertools.chain.from_iterable(map(read_documents, sources)),
        builder,
        store,
        sources=source_fingerprints(sources),
        mode="overwrite" if store.built() else "create",
        workers=workers,
        verbose=verbose,
    )


def train_on_pairs(
    sources: Sequence[TrainingPairs],
    graphs: Graphs,
    config: MathAMRConfig,
    checkpoint: Path,
    *,
    fresh: bool = False,
    first: Sequence[TrainingPairs] = (),
    negatives: Mapping[str, Sequence[str]] | None = None,
    never: Mapping[str, Iterable[str]] | None = None,
    device: str | None = None,
    text: TextEncoder | None = None,
    verbose: bool = False,
) -> MathAMR:
    """Train a model on the pairs of several sources.

    Args:
        sources: pairs of each source; those without graphs are left out. Where no source has validation pairs, a share
            of the training questions is held out (``config.validation_share``).
        graphs: of all posts.
        config: the model's and the training's options.
        checkpoint: where the state after each epoch is kept; a run that was stopped goes on from there.
        fresh: begin anew, whatever run was stopped there.
        first: sources whose training pairs are trained first, see :meth:`~pyterrier_mathamr.Trainer.fit`.
        negatives: hard negatives by question id.
        never: by question id, what is no negative.
        device: where to compute; ``None`` takes the best there is.
        text: the text encoder of a configuration that has one, such as one with a cache.
        verbose: show progress.

    Returns:
        The model of the epoch with the lowest validation loss.
    """

    def known(of: Sequence[TrainingPairs], part: Literal["train", "validation"]) -> list[tuple[str, str]]:
        pairs = (pair for source in of for pair in getattr(source, part))
        return [pair for pair in pairs if pair[0] in graphs and pair[1] in graphs]

    return Trainer(config, device=device, text=text).fit(
        known(sources, "train"),
        graphs,
        validation=known(sources, "validation") or None,
        first=known(first, "train") if first else None,
        negatives=negatives,
        never=never,
        checkpoint=checkpoint,
        fresh=fresh,
        verbose=verbose,
    )


def index_graph_store(
    graph_store: Path,
    model: str,
    output: Path,
    *,
    answers_of: Path | None = None,
    fresh: bool = False,
    verbose: bool = False,
) -> MathAMRIndex:
    """Encode the graphs of a store and index their vectors.

    Args:
        graph_store: the graphs.
        model: name or folder of a model.
        output: the new index; a finished one is replaced once the new one is whole.
        answers_of: an ARQMath folder, whose answers alone are indexed.
        fresh: discard what a job that was stopped has finished.
        verbose: show progress.

    Returns:
        The index.

    Raises:
        UnfinishedJobError: a job that was stopped had other graphs, another model or other answers.
    """
    graphs, index = GraphStore(graph_store), MathAMRIndex(output)
    if fresh:
        index.discard()
    docnos = (post.id for post in ARQMathCollection(answers_of).answers()) if answers_of else graphs.ids()
    sources = {"answers_of": str(answers_of.resolve()) if answers_of else None}
    mode: Mode = "overwrite" if index.built() else "create"
    encoder = MathAMR.from_pretrained(model)
    return index_documents(docnos, graphs, encoder, index, mode=mode, sources=sources, verbose=verbose)


def index_documents(
    docnos: Iterable[str],
    graphs: GraphStore,
    model: MathAMR,
    index: Index,
    *,
    mode: Mode = "overwrite",
    sources: Mapping[str, Any] | None = None,
    verbose: bool = False,
    **options: Any,
) -> Index:
    """Encode the graphs of some documents and index their vectors.

    Args:
        docnos: which documents.
        graphs: their graphs.
        model: the encoder.
        index: where the vectors are kept; a finished one is replaced once the new one is whole, and a job that was
            stopped goes on after the last whole part.
        mode: see the index's ``indexer``.
        sources: what the choice of documents depends on, as plain values.
        verbose: show progress.
        options: further options of the index's ``indexer``.

    Returns:
        ``index``.
    """
    sources = {**(sources or {}), "graphs": artifact_identity(graphs.path)}
    indexer = index.indexer(mode, model=vectors_by(model), resume=True, sources=sources, verbose=verbose, **options)
    pending = indexer.pending({"docno": docno} for docno in docnos)
    documents = ({"docno": record["docno"], "graph": graphs[record["docno"]]} for record in pending)
    (model.doc_encoder() >> indexer).index(documents)
    return index


def artifact_identity(path: Path) -> list[object]:
    """What identifies an artifact as it is now: size and hash of its ``pt_meta.json``, which changes with it."""
    return file_fingerprint(path / META)
