"""The artifacts of a work folder, each made once and then found again, by experiments and studies.

::

    official.formulas                  official trees and visual ids of the collection's formulas
    graphs.mathamr                     graphs of all posts
    answers.bm25, tuned.bm25           terms of the answers, for a standard BM25 and for the preset math
    training-pairs.json                how many pairs may be trained on
    formulas.tangent                   symbol pairs of the formulas of all posts
    pairs/<file>.mathamr               graphs of a file of pairs
    texts.sqlite                       vectors of texts, for models with a text encoder
    topics/<name>/topics.json          topics of a year, its formula topics, or the questions of a split,
    topics/<name>/qrels.json           and their judgments
    topics/<name>/graphs.mathamr       graphs of the topics
    topics/<year>/topics.formulas      official trees of the topics' formulas
    topics/<year>/floor.csv            measures of random orders
    model, answers.mathamr, formulas.mathamr    the model of an experiment and its vectors
    answers/                           other systems of Task 1: their artifacts and rankings
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr import __version__
from pyterrier_mathamr.arqmath import (
    ARQMathCollection,
    MissingFileError,
    VisualIdDeduplication,
    complete_store,
    known_item_qrels,
    known_item_topics,
    read_documents,
    read_training_pairs,
    visual_qrels,
)
from pyterrier_mathamr.extending import ConfigError, DocNo, Split, pseudo_random
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex, index_documents
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder
from pyterrier_mathamr.posts import plain_text, post_from_html
from pyterrier_mathamr.sparse import BM25Index, PatternIndex, TangentIndex
from pyterrier_mathamr.store import StoredArtifact

from .measuring import qrels_frame, random_floor
from .stages import ExperimentError, Stages, write_atomically

RELEVANT = 2
"""The lowest grade that is relevant."""

KNOWN_ITEM = "known item"
"""The test questions, which look for their own answers, among the names of sets of topics."""
TANGENT = "Tangent"
FORMULA_DEPTH = 10_000
"""Formulas that are ranked before de-duplication; half of a collection's formulas look like another one."""
DISTINCT_FORMULAS = 1000
"""Visually distinct formulas of a ranking, as Task 2 allows."""
MOST_QUESTIONS = 1000
"""Validation or test questions to search with: rankings of the tens of thousands in a release would fill the memory."""

Index = TypeVar("Index", bound=StoredArtifact)


def distinct(system: pt.Transformer) -> pt.Transformer:
    """Rank visually distinct formulas, as the evaluation of Task 2 does."""
    return system >> VisualIdDeduplication() >> pt.RankCutoff(DISTINCT_FORMULAS)


class TopicSet(NamedTuple):
    """Topics, their judgments and their graphs."""

    topics: pd.DataFrame  # qid, query, title, body; for Task 2 formula_id and latex instead of query
    qrels: pd.DataFrame  # qid, docno, label
    graphs: GraphStore  # by qid


def require_years(collection: ARQMathCollection, years: Iterable[int | str], task: Literal[1, 2] = 1) -> None:
    """Raise an error that names the missing files of topics or judgments of some years."""
    for year in years:
        collection.topics(year, task)
        try:
            collection.qrels_file(year, task)
        except MissingFileError:
            if task == 1:
                raise
            collection.qrels_file(year, task, judged="visual")


def judged_topics(
    collection: ARQMathCollection, year: int | str, answers: Container[DocNo]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the topics of Task 1 that have a relevant answer in the collection."""
    graded = qrels_frame(row for row in collection.qrels(year) if row.doc_id in answers)
    relevant = set(graded.loc[graded["label"] >= RELEVANT, "qid"])
    topics = [
        (topic.id, plain_text(post_from_html(topic.body, topic.title)), topic.title, topic.body)
        for topic in collection.topics(year)
        if topic.id in relevant
    ]
    if not topics:
        raise _no_topic(collection, year)
    qrels = graded[graded["qid"].isin(relevant)].reset_index(drop=True)
    return pd.DataFrame(topics, columns=["qid", "query", "title", "body"], dtype=str), qrels


def formula_topics(collection: ARQMathCollection, year: int | str) -> pd.DataFrame:
    """Read the topics of Task 2: ``qid, title, body, formula_id, latex``, each formula within its question."""
    rows = [(topic.id, topic.title, topic.body, topic.formula_id, topic.latex) for topic in collection.topics(year, 2)]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "title", "body", "formula_id", "latex"], dtype=str)
    return frame


def visual_judgments(
    collection: ARQMathCollection, year: int | str, visual_ids: FormulaStore, findable: Container[str]
) -> dict[str, pd.DataFrame]:
    """Read the judgments of Task 2, of formula ids and of visual ids, both by visual id."""
    readers: dict[str, Callable[[], pd.DataFrame]] = {
        "formula ids": lambda: visual_qrels(qrels_frame(collection.qrels(year, 2)), visual_ids),
        "visual ids": lambda: qrels_frame(collection.qrels(year, 2, judged="visual")),
    }
    judged, missing = {}, []
    for kind, read in readers.items():
        try:
            judged[kind] = read()
        except MissingFileError as error:
            missing.append(error)
    if not judged:
        raise missing[0]
    kept = {}
    for kind, qrels in judged.items():
        known = qrels[[docno in findable for docno in qrels["docno"]]]
        relevant = known["qid"].isin(known.loc[known["label"] >= RELEVANT, "qid"])
        if relevant.any():
            kept[kind] = known[relevant].reset_index(drop=True)
    if not kept:
        raise _no_topic(collection, year)
    return kept


def _no_topic(collection: ARQMathCollection, year: int | str) -> ExperimentError:
    return ExperimentError(
        f"{collection.path}: no topic of {year} has an answer of grade {RELEVANT} or better among the posts of this "
        "collection. Choose another year, or a larger part of the release."
    )


class FormulaArtifacts:
    """The shared artifacts of searches for formulas of a collection; each is made on first use.

    A collection defines its documents, topics and judgments, and may have official trees and visual ids.
    """

    APPEARANCES: ClassVar[Mapping[str, str] | None] = None
    """Formula id to visual id; ``None`` uses the visual ids of ``formulas``."""

    def __init__(
        self, path: Path, workdir: Path, *, say: Callable[[str], None] | None = None, verbose: bool = False
    ) -> None:
        self.path, self.workdir, self.verbose, self.say = path, workdir, verbose, say
        self.stages = Stages(workdir, say)
        self.origin: dict[str, Any] = {"collection": str(path.resolve()), "version": __version__}

    @cached_property
    def formulas(self) -> FormulaStore | None:
        """The official trees and visual ids of the collection's formulas."""
        return None

    @cached_property
    def graphs(self) -> GraphStore:
        raise NotImplementedError

    def documents(self) -> Iterator[dict[str, Any]]:
        """Read the documents, with ``docno`` and their text."""
        raise NotImplementedError

    def count(self) -> int:
        raise NotImplementedError

    def formula_topics(self, topics: str) -> pd.DataFrame:
        """Read a set of topics, such as a year's: ``qid, latex``."""
        raise NotImplementedError

    def formula_judgments(self, topics: str) -> dict[str, pd.DataFrame]:
        """Read the judgments of a set of topics by their kind: ``qid, docno, label``; ``docno`` is a visual id."""
        raise NotImplementedError

    def topic_formulas(self, topics: str) -> FormulaStore | None:
        """Return the official trees of the formulas of a set of topics."""
        return None

    @cached_property
    def visual_ids(self) -> frozenset[str]:
        """The visual ids of the formulas that can be found."""
        return frozenset(entry["visual_id"] for entry in self.tangent.get_corpus_iter())

    @cached_property
    def tangent(self) -> TangentIndex:
        """The index of the symbol pairs of all formulas."""
        return self.of_formulas("tangent", TangentIndex(self.workdir / "formulas.tangent"))

    @cached_property
    def patterns(self) -> PatternIndex:
        """The index of the sub-expressions of all formulas."""
        return self.of_formulas("patterns", PatternIndex(self.workdir / "formulas.patterns"))

    def of_formulas(
        self, stage: str, index: Index, *, settings: Mapping[str, Any] | None = None, **options: Any
    ) -> Index:
        """Index the formulas of all posts, or find the index built."""
        make: Any = index.indexer
        options |= {"store": self.formulas, "visual_ids": self.APPEARANCES}
        indexer = make("overwrite", resume=True, verbose=self.verbose, **options)
        inputs = {**self.origin, **(settings or {})}
        self.stages.run(stage, index.path, inputs, lambda: indexer.index(self.counted(self.documents(), self.count)))
        return index

    def vectors(
        self, model: MathAMR, stages: Stages, origin: Mapping[str, Any], *, verbose: bool
    ) -> MathAMRFormulaIndex:
        """Encode all documents and index the vectors of their formulas."""
        index, graphs = MathAMRFormulaIndex(stages.workdir / "formulas.mathamr"), self.graphs
        visual_ids = self.formulas if self.APPEARANCES is None else self.APPEARANCES
        stages.run(
            "formula-index",
            index.path,
            {**origin, "model": model.identity},
            lambda: index_documents(graphs.ids(), graphs, model, index, verbose=verbose, visual_ids=visual_ids),
        )
        return index

    def counted(self, documents: Iterator[dict[str, Any]], count: Callable[[], int]) -> Iterable[dict[str, Any]]:
        """Give documents their number, for a progress bar."""
        counted: Iterable[dict[str, Any]] = pt.utils.GeneratorLen(documents, count()) if self.verbose else documents
        return counted


class Artifacts(FormulaArtifacts):
    """The artifacts shared by runs on the release, or a part of it; each is made on first use."""

    def __init__(
        self,
        collection: str | Path,
        workdir: Path,
        *,
        pairs: Sequence[Path] = (),
        say: Callable[[str], None] | None = None,
        verbose: bool = False,
    ) -> None:
        self.collection, self.pairs = ARQMathCollection(collection), tuple(pairs)
        super().__init__(self.collection.path, workdir, say=say, verbose=verbose)

    @cached_property
    def formulas(self) -> FormulaStore:
        tables = self.collection.slt_tables, self.collection.opt_tables
        return self._trees(self.stages, "formulas", self.workdir / "official.formulas", *tables)

    def topic_formulas(self, year: int | str) -> FormulaStore:
        tables, folder = self.collection.topic_tables(year), self._topics(year)
        return self._trees(Stages(folder), "topic-formulas", folder / "topics.formulas", tables.slt, tables.opt)

    def documents(self) -> Iterator[dict[str, Any]]:
        return read_documents(self.collection.path)

    def count(self) -> int:
        return self.collection.count_posts()

    def formula_topics(self, topics: str) -> pd.DataFrame:
        return formula_topics(self.collection, topics)

    def formula_judgments(self, topics: str) -> dict[str, pd.DataFrame]:
        return visual_judgments(self.collection, topics, self.formulas, self.visual_ids)

    def _trees(
        self, stages: Stages, stage: str, path: Path, slt: tuple[Path, ...], opt: tuple[Path, ...]
    ) -> FormulaStore:
        settings = {**self.origin, "tables": [file.name for file in (*slt, *opt)]}
        stages.run(stage, path, settings, lambda: FormulaStore.build(path, slt, opt, verbose=self.verbose, reuse=True))
        return FormulaStore(path)

    @cached_property
    def graphs(self) -> GraphStore:
        store, builder = GraphStore(self.workdir / "graphs.mathamr"), GraphBuilder(store=self.formulas)
        described = f"parser={builder.parser!r}, formulas={builder.formulas!r}"
        self.stages.run(
            "graphs",
            store.path,
            {**self.origin, "builder": described},
            lambda: complete_store([self.collection.path], builder, store, verbose=self.verbose),
        )
        return store

    def answer_documents(self) -> Iterator[dict[str, str]]:
        """Read the answers of the collection: ``docno``, ``html``."""
        return ({"docno": post.id, "html": post.body} for post in self.collection.answers())

    @cached_property
    def training_pairs(self) -> int:
        """How many pairs of the collection may be trained on; counted once, since that reads all posts."""
        file = self.workdir / "training-pairs.json"
        if not file.is_file():
            write_atomically(file, json.dumps({"pairs": len(read_training_pairs(self.collection.path).train)}) + "\n")
        return int(json.loads(file.read_text(encoding="utf-8"))["pairs"])

    @cached_property
    def bm25(self) -> BM25Index:
        return self._words("bm25", BM25Index(self.workdir / "answers.bm25", preset="standard"))

    @cached_property
    def tuned(self) -> BM25Index:
        return self._words("bm25-tuned", BM25Index(self.workdir / "tuned.bm25", preset="math"))

    def _words(self, stage: str, index: BM25Index) -> BM25Index:
        indexer = index.indexer("overwrite", resume=True, verbose=self.verbose)
        documents, count = self.answer_documents(), self.collection.count_answers
        settings = {**self.origin, "preset": index.preset}
        self.stages.run(stage, index.path, settings, lambda: indexer.index(self.counted(documents, count)))
        return index

    def questions(self, split: Split) -> TopicSet:
        """Return the questions of a split, at most :data:`MOST_QUESTIONS`, and their own answers as judgments."""

        def read() -> tuple[pd.DataFrame, pd.DataFrame]:
            qrels, questions = known_item_qrels(self.collection.pairs(), split), self.collection.questions()
            asked = sorted(set(qrels["qid"]), key=pseudo_random)
            if len(asked) > MOST_QUESTIONS:
                kept = set(asked[:MOST_QUESTIONS])
                qrels = qrels[qrels["qid"].isin(kept)].reset_index(drop=True)
                questions = (question for question in questions if question.id in kept)
            return known_item_topics(questions, split), qrels

        return TopicSet(*self.kept(split, read), self.graphs)

    def topics(self, year: int | str) -> TopicSet:
        """Return the topics of a year that can be measured on this collection, and their judgments."""
        kept = self.kept(str(year), lambda: judged_topics(self.collection, year, self.bm25))
        return TopicSet(*kept, self.graphs_of_topics(str(year), year, kept[0]))

    def graphs_of_topics(self, name: str, year: int | str, topics: pd.DataFrame) -> GraphStore:
        """Return the graphs of topics of a year, made once: ``topics/<name>/graphs.mathamr``."""
        store = GraphStore(self._topics(name) / "graphs.mathamr")
        if not store.built():
            store.discard()
            builder = GraphBuilder(store=self.topic_formulas(year), verbose=False)
            (builder >> store.indexer()).index(topics.to_dict("records"))
        return store

    def kept(
        self, name: str, read: Callable[[], tuple[pd.DataFrame, pd.DataFrame]]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Read topics and judgments from the work folder; the first time, from the collection."""
        files = self._topics(name) / "topics.json", self._topics(name) / "qrels.json"
        if not files[1].is_file():
            for file, frame in zip(files, read(), strict=True):
                write_atomically(file, frame.to_json(orient="split", index=False))
        topics, qrels = (json.loads(file.read_text(encoding="utf-8")) for file in files)
        return pd.DataFrame(**topics), pd.DataFrame(**qrels)

    def floor(self, year: str) -> pd.DataFrame:
        """Measure random orders of a year's judged answers: ``qid``, ``measure``, ``value``."""
        return self.table(year, "floor.csv", lambda: random_floor(self.topics(year).qrels))

    def table(self, topics: str, name: str, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Compute a table of topics once: ``topics/<topics>/<name>``."""
        file = self._topics(topics) / name
        if not file.is_file():
            write_atomically(file, compute().to_csv(index=False))
        return pd.read_csv(file, dtype={"qid": str})

    def _topics(self, name: int | str) -> Path:
        folder = self.workdir / "topics" / str(name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass(frozen=True, eq=False)
class ModelArtifacts:
    """A model and its indexes, in a folder with separate stages."""

    shared: Artifacts
    stages: Stages
    origin: Mapping[str, Any] = field(default_factory=dict)  # settings of all stages in addition to the model
    verbose: bool = False

    def model(
        self, settings: Mapping[str, Any], train: Callable[[Path], MathAMR], text: TextEncoder | None = None
    ) -> MathAMR:
        """Train a model, or open it if it is trained."""
        path, checkpoint = self.stages.workdir / "model", self.stages.workdir / "training"

        def build() -> None:
            shutil.rmtree(path, ignore_errors=True)  # of a run whose record was lost
            train(checkpoint).save(path)
            shutil.rmtree(checkpoint)

        self.stages.run("train", path, {**self.origin, **settings}, build, update=_with_todays_options)
        return MathAMR.from_pretrained(path, text=text)

    def answers(self, model: MathAMR) -> MathAMRIndex:
        index, graphs = MathAMRIndex(self.stages.workdir / "answers.mathamr"), self.shared.graphs
        docnos = self.shared.bm25.snapshot()
        self.stages.run(
            "index",
            index.path,
            {**self.origin, "model": model.identity},
            lambda: index_documents(docnos, graphs, model, index, verbose=self.verbose),
        )
        return index

    def formulas(self, model: MathAMR) -> MathAMRFormulaIndex:
        """Encode all posts and index the vectors of their formulas."""
        return self.shared.vectors(model, self.stages, self.origin, verbose=self.verbose)


def _with_todays_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Convert a recorded configuration to today's options: drop removed ones, set new ones to their defaults."""
    if "config" not in settings:
        return settings
    try:
        return {**settings, "config": json.loads(MathAMRConfig.from_dict(settings["config"]).to_json())}
    except ConfigError:  # a removed option had another value than its default
        return settings
