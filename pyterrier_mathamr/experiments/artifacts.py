"""The artifacts of a work folder, each made once and then found again, by Task 1, Task 2 and the studies.

::

    official.formulas                  official trees and visual ids of the collection's formulas
    graphs.mathamr                     graphs of all posts
    answers.bm25                       terms of the answers
    formulas.tangent                   symbol pairs of the formulas of all posts
    pairs/<file>.mathamr               graphs of a file of pairs
    texts.sqlite                       vectors of texts, for models with a text encoder
    topics/<name>/topics.json          topics of a year, its formula topics, or the questions of a split,
    topics/<name>/qrels.json           and their judgements
    topics/<name>/graphs.mathamr       graphs of the topics
    topics/<year>/topics.formulas      official trees of the topics' formulas
    topics/<year>/floor.csv            measures of random orders
    topics/<year>-formulas/references.csv   of random orders and of Tangent
    model, answers.mathamr, formulas.mathamr    of a task's model; those of a study's runs are in runs/<key>
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.arqmath import TASK2_MEASURES, ARQMathCollection, known_item_qrels, known_item_topics
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder
from pyterrier_mathamr.store import writer_lock
from pyterrier_mathamr.systems import STRONG_TOKENS, BM25Index, TangentIndex

from .jobs import build_graphs, complete_store, index_documents
from .measuring import Rankings, measure_by_topic, random_floor
from .search import FORMULA_DEPTH, distinct
from .sources import read_documents
from .stages import Stages, write_atomically
from .topics import Split, TopicSet, formula_topics, judged_topics, visual_judgements

FLOOR = "random order of the judged"
TANGENT = "Tangent"


class Artifacts:
    """What the runs on a collection share; each artifact is made on first use.

    Args:
        collection: a local ARQMath folder.
        workdir: where the artifacts are kept.
        pairs: files of pairs from outside the collection.
        say: receives a line for each stage, or ``None``.
        verbose: show progress bars.
    """

    def __init__(
        self,
        collection: str | Path,
        workdir: Path,
        *,
        pairs: Sequence[Path] = (),
        say: Callable[[str], None] | None = None,
        verbose: bool = False,
    ) -> None:
        self.collection, self.workdir, self.pairs = ARQMathCollection(collection), workdir, tuple(pairs)
        self.stages, self.verbose = Stages(workdir, say), verbose
        self.origin = {"collection": str(self.collection.path.resolve()), "version": __version__}

    def prepare(self, years: Sequence[str], *, task2: bool = False) -> None:
        """Make everything that runs share; one process at a time.

        Args:
            years: of the topics.
            task2: with the formula topics.

        Raises:
            ARQMathError: a file of the release is missing or damaged.
            NoRelevantTopicError: no topic of a year can be measured on this collection.
        """
        with writer_lock(self.workdir / "materials", wait=True):
            self.pair_graphs()
            self.questions("validation")
            self.questions("test")
            for year in years:
                self.floor(year)
                if task2:
                    self.references(year)

    @cached_property
    def formulas(self) -> FormulaStore:
        """The official trees and visual ids of the collection's formulas."""
        tables = self.collection.slt_tables, self.collection.opt_tables
        return self._trees(self.stages, "formulas", self.workdir / "official.formulas", *tables)

    def topic_formulas(self, year: int | str) -> FormulaStore:
        """Return the official trees of the formulas in a year's topics."""
        tables, folder = self.collection.topic_tables(year), self._topics(year)
        return self._trees(Stages(folder), "topic-formulas", folder / "topics.formulas", tables.slt, tables.opt)

    def _trees(
        self, stages: Stages, stage: str, path: Path, slt: tuple[Path, ...], opt: tuple[Path, ...]
    ) -> FormulaStore:
        settings = {**self.origin, "tables": [file.name for file in (*slt, *opt)]}
        stages.run(stage, path, settings, lambda: FormulaStore.build(path, slt, opt, verbose=self.verbose, reuse=True))
        return FormulaStore(path)

    @cached_property
    def graphs(self) -> GraphStore:
        """The graphs of all posts."""
        store, builder = GraphStore(self.workdir / "graphs.mathamr"), GraphBuilder(store=self.formulas)
        described = f"parser={builder.parser!r}, formulas={builder.formulas!r}"
        self.stages.run(
            "graphs",
            store.path,
            {**self.origin, "builder": described},
            lambda: complete_store([self.collection.path], builder, store, verbose=self.verbose),
        )
        return store

    def pair_graphs(self) -> list[GraphStore]:
        """Return the graphs of each file of pairs."""
        stores = []
        for file in self.pairs:
            name = file.name.partition(".")[0]
            path = self.workdir / "pairs" / f"{name}.mathamr"
            path.parent.mkdir(exist_ok=True)
            self.stages.run(
                f"pairs-{name}",
                path,
                {"file": str(file.resolve()), "bytes": file.stat().st_size},
                lambda file=file, path=path: build_graphs([file], path, verbose=self.verbose),  # type: ignore[misc]
            )
            stores.append(GraphStore(path))
        return stores

    @cached_property
    def bm25(self) -> BM25Index:
        """The BM25 index of the answers."""
        index = BM25Index(self.workdir / "answers.bm25")
        indexer = index.indexer("overwrite", tokens=STRONG_TOKENS, resume=True, verbose=self.verbose)
        documents = ({"docno": post.id, "html": post.body} for post in self.collection.answers())
        settings = {**self.origin, "tokens": STRONG_TOKENS.to_dict()}
        self.stages.run("bm25", index.path, settings, lambda: indexer.index(documents))
        return index

    @cached_property
    def tangent(self) -> TangentIndex:
        """The index of the symbol pairs of all formulas."""
        index = TangentIndex(self.workdir / "formulas.tangent")
        indexer = index.indexer("overwrite", store=self.formulas, resume=True, verbose=self.verbose)
        documents = read_documents(self.collection.path)
        self.stages.run("tangent", index.path, self.origin, lambda: indexer.index(documents))
        return index

    @cached_property
    def visual_ids(self) -> frozenset[str]:
        """The visual ids of the formulas that can be found."""
        return frozenset(entry["visual_id"] for entry in self.tangent.get_corpus_iter())

    def text_encoder(self, config: MathAMRConfig) -> TextEncoder | None:
        """Return the text encoder of a configuration, with vectors that all runs share; ``None`` if it has none.

        It computes in bfloat16, which is several times faster on a CPU that supports it and moves a vector by half a
        percent of its length, far less than another seed does.

        Args:
            config: of the run.
        """
        if config.text.features == "lookup":
            return None
        return TextEncoder(config.text.text_model, cache=self.workdir / "texts.sqlite", precision="bfloat16")

    def questions(self, split: Split) -> TopicSet:
        """Return the questions of a split, and their own answers as judgements.

        Args:
            split: ``validation`` to choose by, ``test`` to report.
        """

        def read() -> tuple[pd.DataFrame, pd.DataFrame]:
            topics = known_item_topics(self.collection.questions(), split)
            return topics, known_item_qrels(self.collection.pairs(), split)

        return TopicSet(*self._kept(split, read), self.graphs)

    def topics(self, year: int | str) -> TopicSet:
        """Return the topics of a year that can be measured on this collection, and their judgements.

        Args:
            year: 2020, 2021 or 2022, or another year in the file names.
        """
        kept = self._kept(str(year), lambda: judged_topics(self.collection, year, self.bm25))
        return TopicSet(*kept, self._topic_graphs(str(year), year, kept[0]))

    def formula_topics(self, year: int | str) -> TopicSet:
        """Return the formula topics of a year that can be measured on this collection, and their judgements.

        They are judged by visual id if the collection has such judgements, otherwise by formula id.

        Args:
            year: 2020, 2021 or 2022, or another year in the file names.
        """

        def read() -> tuple[pd.DataFrame, pd.DataFrame]:
            judged = visual_judgements(self.collection, year, self.formulas, self.visual_ids)
            qrels = judged.get("visual ids", next(iter(judged.values())))
            topics = formula_topics(self.collection, year)
            return topics[topics["qid"].isin(qrels["qid"])].reset_index(drop=True), qrels

        topics, qrels = self._kept(f"{year}-formulas", read)
        graphs = self._topic_graphs(f"{year}-formulas", year, topics)
        return TopicSet(topics.assign(query_formula_id=topics["formula_id"]), qrels, graphs)

    def _topic_graphs(self, name: str, year: int | str, topics: pd.DataFrame) -> GraphStore:
        store = GraphStore(self._topics(name) / "graphs.mathamr")
        if not store.built():
            store.discard()
            builder = GraphBuilder(store=self.topic_formulas(year), verbose=False)
            (builder >> store.indexer()).index(topics.to_dict("records"))
        return store

    def _kept(
        self, name: str, read: Callable[[], tuple[pd.DataFrame, pd.DataFrame]]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Read topics and judgements from the work folder; the first time, from the collection."""
        files = self._topics(name) / "topics.json", self._topics(name) / "qrels.json"
        if not files[1].is_file():
            for file, frame in zip(files, read(), strict=True):
                write_atomically(file, frame.to_json(orient="split", index=False))
        topics, qrels = (json.loads(file.read_text(encoding="utf-8")) for file in files)
        if isinstance(topics, list):  # rows as objects, of an earlier release
            return pd.DataFrame(topics), pd.DataFrame(qrels)
        return pd.DataFrame(**topics), pd.DataFrame(**qrels)

    def floor(self, year: str) -> pd.DataFrame:
        """Measure random orders of a year's judged answers: ``qid``, ``measure``, ``value``."""
        return self._table(self._topics(year) / "floor.csv", lambda: random_floor(self.topics(year).qrels))

    def references(self, year: str) -> pd.DataFrame:
        """Measure Tangent and random orders of a year's formulas: ``system``, ``qid``, ``measure``, ``value``."""

        def compute() -> pd.DataFrame:
            found = self.formula_topics(year)
            search = distinct(self.tangent.retriever(FORMULA_DEPTH, store=self.topic_formulas(year)))
            floor = random_floor(found.qrels).assign(system=FLOOR)
            return pd.concat([floor, measured_formulas({TANGENT: search(found.topics)}, found)])

        return self._table(self._topics(f"{year}-formulas") / "references.csv", compute)

    def _table(self, file: Path, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        if not file.is_file():
            write_atomically(file, compute().to_csv(index=False))
        return pd.read_csv(file, dtype={"qid": str})

    def _topics(self, name: int | str) -> Path:
        folder = self.workdir / "topics" / str(name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass(frozen=True, eq=False)
class ModelArtifacts:
    """A model and its indexes, in a folder with stages of its own.

    Attributes:
        shared: the collection's artifacts.
        stages: of the folder.
        origin: settings of all stages in addition to the model.
        verbose: show progress bars.
    """

    shared: Artifacts
    stages: Stages
    origin: Mapping[str, Any] = field(default_factory=dict)
    verbose: bool = False

    def model(
        self, settings: Mapping[str, Any], train: Callable[[Path], MathAMR], text: TextEncoder | None = None
    ) -> MathAMR:
        """Train a model, or open it if it is trained.

        Args:
            settings: what it depends on.
            train: trains it; is given the folder for its training state.
            text: its text encoder.
        """
        path, checkpoint = self.stages.workdir / "model", self.stages.workdir / "training"

        def build() -> None:
            shutil.rmtree(path, ignore_errors=True)  # of a run whose record was lost
            train(checkpoint).save(path)
            shutil.rmtree(checkpoint)

        self.stages.run("train", path, {**self.origin, **settings}, build, update=_with_todays_options)
        return MathAMR.from_pretrained(path, text=text)

    def answers(self, model: MathAMR) -> MathAMRIndex:
        """Encode and index the answers."""
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
        index, graphs = MathAMRFormulaIndex(self.stages.workdir / "formulas.mathamr"), self.shared.graphs
        visual_ids = self.shared.formulas
        self.stages.run(
            "formula-index",
            index.path,
            {**self.origin, "model": model.identity},
            lambda: index_documents(graphs.ids(), graphs, model, index, verbose=self.verbose, visual_ids=visual_ids),
        )
        return index


def _with_todays_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Convert a recorded configuration to today's options: drop removed ones, set new ones to their defaults."""
    if "config" not in settings:
        return settings
    try:
        return {**settings, "config": json.loads(MathAMRConfig.from_dict(settings["config"]).to_json())}
    except ConfigError:  # a removed option had another value than its default
        return settings


def measured_formulas(rankings: Rankings, found: TopicSet) -> pd.DataFrame:
    """Measure rankings of formulas: ``system``, ``qid``, ``measure``, ``value``."""
    table = measure_by_topic(rankings, found.topics, found.qrels, TASK2_MEASURES).rename(columns={"name": "system"})
    return table.fillna({"value": 0.0})
