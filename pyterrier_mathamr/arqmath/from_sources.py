"""Graphs of the posts of several sources, and training on their pairs: ``mathamr graphs`` and ``mathamr train``."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.amr import AmrParser, WorkerParser, get_parser
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, JoinedGraphs, build_store
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder, Trainer
from pyterrier_mathamr.model.loop import train_and_save

from .collection import ARQMathCollection
from .sources import (
    LinkedQuestions,
    TrainingPairs,
    count_documents,
    known_answers,
    linked_pairs,
    read_documents,
    read_training_pairs,
    source_fingerprints,
)


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
        output: the new store; the formula trees are kept next to it in ``<output>.formulas``.
        parser: the AMR parser, or its name; a parser with its own workers gets enough posts at once to keep them busy.
        formulas: the trees to attach.
        workers: number of processes, see :func:`build_store`; the store is the same for any number.
        executor: where to read formulas and build graphs instead; the stores are the same.
        fresh: discard the work of a job that was stopped.
        verbose: show progress.

    Returns:
        The store.

    Raises:
        ARQMathError: there is no such source. DocumentError: a source has nothing readable.
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
    """Build the graphs of the posts of sources into a store, or complete the store of a job that was stopped.

    Args:
        sources: ARQMath folders and files of posts.
        builder: builds the graphs.
        store: the store to fill; a finished one is replaced once the new one is complete.
        workers: processes that build, as of :func:`build_store`.
        executor: where to build instead, such as a cluster.
        fresh: discard the work of a job that was stopped.
        verbose: show progress.
    """
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


Mining = Callable[[Path, Sequence[tuple[str, str]], Mapping[str, Iterable[str]]], Mapping[str, Sequence[str]]]
"""Maps a source, its training pairs and texts that are never negatives to the hard negatives of each question."""


def train_on_pairs(
    sources: Sequence[TrainingPairs],
    graphs: GraphStore | JoinedGraphs,
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
        sources: the training and validation pairs of each source; pairs without graphs are left out.
        graphs: the graphs of their posts.
        config: options of the model and the training.
        checkpoint: the folder of the training state, from which a run that was stopped continues.
        fresh: discard that state.
        first: pairs trained on in the first ``first_epochs`` epochs.
        negatives: hard negatives of each question.
        never: posts that are never negatives of a question.
        device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
        text: the encoder of texts, for a model that reads them; by default the one that ``config`` names.
        verbose: show progress.
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


def train_from_sources(
    sources: Sequence[Path],
    graph_store: Path,
    output: Path,
    config: MathAMRConfig,
    *,
    linked_questions: LinkedQuestions = "none",
    first: Sequence[Path] = (),
    mine: Mining | None = None,
    fresh: bool = False,
    verbose: bool = False,
) -> MathAMR:
    """Train a model on the pairs of several sources and save it.

    Answers of linked questions are never negatives of each other's questions.

    Args:
        sources: ARQMath folders and pair files.
        graph_store: the graphs of their posts.
        output: the new model. ``<output>.training`` keeps the training state until the model is saved;
            ``<output>.history.csv`` and, with the extra ``plots``, ``<output>.losses.png`` remain. Of several
            processes only the first writes.
        config: options of the model and the training.
        linked_questions: which links of an ARQMath folder become pairs of questions.
        first: sources whose pairs are trained on in the first ``first_epochs`` epochs of the configuration (at least
            1).
        mine: finds hard negatives, such as ``functools.partial(mine_negatives, "bm25")``; ``hard_negatives`` of the
            configuration (at least 1) are drawn for each pair. Called once for each source.
        fresh: discard the state of a run that was stopped.
        verbose: show progress.

    Returns:
        The model.

    Raises:
        ConfigError: ``output`` exists. WriteError: nothing can be written there.
    """

    def train(checkpoint: Path) -> MathAMR:
        graphs = GraphStore(graph_store)
        read = {source: read_training_pairs(source) for source in (*sources, *first)}
        never: defaultdict[str, set[str]] = defaultdict(set)
        negatives: dict[str, Sequence[str]] = {}
        for source, (train, validation) in read.items():
            known = [pair for pair in train if pair[0] in graphs and pair[1] in graphs]
            for question, answers in known_answers(source, (question for question, _ in (*known, *validation))).items():
                never[question] |= answers
            if mine is not None:
                negatives.update(mine(source, known, never))
        wanted = {"hard_negatives": mine is not None, "first_epochs": bool(first)}
        changed = config.replace(
            **{name: 1 for name, used in wanted.items() if used and getattr(config.training, name) == 0}
        )
        pairs = [
            read[source]._replace(train=[*read[source].train, *linked_pairs(source, linked_questions)])
            for source in sources
        ]
        return train_on_pairs(
            pairs,
            graphs,
            changed,
            checkpoint,
            fresh=fresh,
            first=[read[source] for source in first],
            negatives=None if mine is None else negatives,
            never=dict(never),
            verbose=verbose,
        )

    return train_and_save(output, train)
