"""Graphs of the posts of several sources, and training on their pairs: ``mathamr graphs`` and ``mathamr train``.

Hard negatives are answers that BM25, a model or the tags rank high and that are not known to be right. They are mined
among the answers of a source's training pairs only, so that no answer of the validation or test part is used in
training, not even as a negative. Documents that :func:`known_answers` returns are never mined.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.amr import AmrParser, WorkerParser, get_parser
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, JoinedGraphs, build_store
from pyterrier_mathamr.index import MathAMRIndex, index_documents
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder, Trainer
from pyterrier_mathamr.model.loop import train_and_save
from pyterrier_mathamr.sparse import BM25Index

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
        trees = FormulaStore.build(path, slt, opt, executor=executor or Processes(workers), verbose=verbose, reuse=True)
    used_parser = get_parser(parser)
    batch_size = used_parser.batch_posts if isinstance(used_parser, WorkerParser) else 64
    return complete_store(
        sources,
        GraphBuilder(parser, formulas, trees, batch_size=batch_size),
        GraphStore(output),
        workers=workers,
        executor=executor,
        fresh=fresh,
        verbose=verbose,
    )


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
    train = _with_graphs((pair for source in sources for pair in source.train), graphs)
    validation = _with_graphs((pair for source in sources for pair in source.validation), graphs)
    return Trainer(config, device=device, text=text).fit(
        train,
        graphs,
        validation=validation or None,
        first=_with_graphs((pair for source in first for pair in source.train), graphs) if first else None,
        negatives=negatives,
        never=never,
        checkpoint=checkpoint,
        fresh=fresh,
        verbose=verbose,
    )


def _with_graphs(pairs: Iterable[tuple[str, str]], graphs: GraphStore | JoinedGraphs) -> list[tuple[str, str]]:
    return [pair for pair in pairs if pair[0] in graphs and pair[1] in graphs]


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
            pairs = _with_graphs(train, graphs)
            for question, answers in known_answers(source, (question for question, _ in (*pairs, *validation))).items():
                never[question] |= answers
            if mine is not None:
                negatives.update(mine(source, pairs, never))
        used = {"hard_negatives": mine is not None, "first_epochs": bool(first)}
        at_least_one = {name: 1 for name in used if used[name] and getattr(config.training, name) == 0}
        return train_on_pairs(
            [
                read[source]._replace(train=[*read[source].train, *linked_pairs(source, linked_questions)])
                for source in sources
            ],
            graphs,
            config.replace(**at_least_one),
            checkpoint,
            fresh=fresh,
            first=[read[source] for source in first],
            negatives=None if mine is None else negatives,
            never=dict(never),
            verbose=verbose,
        )

    return train_and_save(output, train)


Miner = Literal["bm25", "model", "tags"]


def mine_negatives(
    miner: Miner,
    source: str | Path,
    pairs: Sequence[tuple[str, str]],
    known: Mapping[str, Iterable[str]],
    *,
    graphs: GraphStore | None = None,
    model: MathAMR | None = None,
    depth: int = 30,
    verbose: bool = False,
) -> dict[str, tuple[str, ...]]:
    """Find hard negatives for the questions of a source.

    Args:
        miner: ``bm25``, ``model`` (needs ``graphs`` and ``model``) or ``tags`` (needs an ARQMath folder).
        source: an ARQMath folder or a pair file.
        pairs: its training pairs.
        known: documents that are or may be right, by question id, in addition to the answers in ``pairs``.
        graphs: the graphs of its posts.
        model: the model to search with.
        depth: documents kept for each question.
        verbose: show progress.

    Returns:
        Question id to docnos, the hardest first; the result is deterministic.

    Raises:
        ConfigError: there is no such miner, it lacks graphs or a model, or the source has no tags.
    """
    answers: defaultdict[str, set[str]] = defaultdict(set)
    for question, answer in pairs:
        answers[question].add(answer)
    forbidden = {question: answers[question].union(known.get(question, ()), {question}) for question in answers}
    candidates = {answer for _, answer in pairs}
    # enough results to remain after the forbidden ones are removed
    room = depth + max(map(len, forbidden.values()), default=0)
    if miner == "bm25":
        ranking = _search_bm25(source, forbidden, candidates, room, verbose)
    elif miner == "model":
        if graphs is None or model is None:
            raise ConfigError("model", model, "a model, with graphs=, to mine with it")
        ranking = _search_model(graphs, model, forbidden, candidates, room, verbose)
    elif miner == "tags":
        ranking = _search_tags(source, pairs, forbidden, room)
    else:
        raise ConfigError("miner", miner, f"one of {', '.join(map(repr, get_args(Miner)))}")
    negatives: defaultdict[str, list[str]] = defaultdict(list)
    for question, docno in ranking:
        if docno not in forbidden[question] and len(negatives[question]) < depth:
            negatives[question].append(docno)
    return {question: tuple(negatives[question]) for question in forbidden}


def _search_bm25(
    source: str | Path, questions: Iterable[str], candidates: set[str], room: int, verbose: bool
) -> Iterator[tuple[str, str]]:
    wanted = set(questions)
    topics: dict[str, dict[str, Any]] = {}

    def documents() -> Iterator[dict[str, Any]]:
        for document in read_documents(source):
            if document["docno"] in wanted:  # the whole post is the query
                text = {"query": document.get("text")}
                if "html" in document:
                    text = {"title": document["title"], "body": document["html"]}
                topics[document["docno"]] = {"qid": document["docno"], **text}
            if document["docno"] in candidates:
                yield document

    with tempfile.TemporaryDirectory(prefix="mathamr-") as folder:
        indexer = BM25Index(Path(folder) / "answers.bm25", preset="math").indexer(verbose=verbose)
        index = indexer.index(pt.utils.GeneratorLen(documents(), len(candidates)))
        frame = pd.DataFrame([topics[name] for name in questions if name in topics])
        yield from _rows(index.retriever(room, verbose=verbose)(frame))


def _search_model(
    graphs: GraphStore, model: MathAMR, questions: Iterable[str], candidates: set[str], room: int, verbose: bool
) -> Iterator[tuple[str, str]]:
    names = [name for name in questions if name in graphs]
    answers = [name for name in graphs.ids() if name in candidates]
    with tempfile.TemporaryDirectory(prefix="mathamr-") as folder:
        index = index_documents(answers, graphs, model, MathAMRIndex(Path(folder) / "answers"), verbose=verbose)
        search = graphs.loader() >> model.query_encoder() >> index.doc_vn(candidates=10 * room, num_results=room)
        for start in progress(range(0, len(names), 256), "mining", "batches", verbose=verbose):
            yield from _rows(search(pd.DataFrame({"qid": names[start : start + 256]})))


def _search_tags(
    source: str | Path, pairs: Sequence[tuple[str, str]], questions: Iterable[str], room: int
) -> Iterator[tuple[str, str]]:
    """List answers of questions with the same tags, rarest tag first; each question starts at its own place."""
    if not Path(source).is_dir():
        raise ConfigError("miner", "tags", f"'bm25' or 'model' for {source}, a file of pairs, which has no tags")
    wanted = set(questions)
    tags = {post.id: post.tags for post in ARQMathCollection(source).questions() if post.id in wanted}
    answers_of: defaultdict[str, list[str]] = defaultdict(list)  # by tag
    for question, answer in pairs:
        for tag in tags.get(question, ()):
            answers_of[tag].append(answer)
    for answers in answers_of.values():
        answers.sort(key=pseudo_random)
    for question in questions:
        listed: dict[str, None] = {}
        for tag in sorted(tags.get(question, ()), key=lambda tag: (len(answers_of[tag]), tag)):
            answers = answers_of[tag]
            start = pseudo_random(question) % len(answers)
            listed.update(dict.fromkeys([*answers[start : start + room], *answers[: min(start, room)]][:room]))
            if len(listed) >= room:
                break
        yield from ((question, docno) for docno in listed)


def _rows(ranking: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield query and document of each row, best first within a query."""
    ordered = ranking.sort_values(["qid", "rank"], kind="stable")
    yield from zip(ordered["qid"], ordered["docno"], strict=True)
