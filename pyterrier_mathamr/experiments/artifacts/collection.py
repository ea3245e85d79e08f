"""What all runs on a collection share: graphs, the index of the answers, topics and their judgments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd

from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_qrels, known_item_topics, read_training_pairs
from pyterrier_mathamr.experiments.measuring import FLOOR, measured_formulas, random_floor
from pyterrier_mathamr.experiments.measuring.topics import (
    Split,
    TopicSet,
    formula_topics,
    judged_topics,
    require_years,
    visual_judgments,
)
from pyterrier_mathamr.experiments.search import FORMULA_DEPTH, distinct
from pyterrier_mathamr.experiments.stages import Stages, write_atomically
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, complete_store, graphs_from_sources
from pyterrier_mathamr.model import MathAMRConfig, TextEncoder
from pyterrier_mathamr.sparse import STRONG_TOKENS, BM25Index
from pyterrier_mathamr.store import writer_lock

from .formula_indexes import TANGENT, FormulaIndexes


class Artifacts(FormulaIndexes):
    """What the runs on a collection share; each artifact is made on first use."""

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
        self.stages, self.say, self.verbose = Stages(workdir, say), say, verbose
        self.origin = {"collection": str(self.collection.path.resolve()), "version": __version__}

    def prepare(self, years: Sequence[str], *, task2: bool = False) -> None:
        """Make everything that runs share; one process at a time."""
        require_years(self.collection, years)
        if task2:
            require_years(self.collection, years, 2)
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

    def answer_documents(self) -> Iterator[dict[str, str]]:
        """Read the answers of the collection: ``docno``, ``html``."""
        return ({"docno": post.id, "html": post.body} for post in self.collection.answers())

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
                lambda file=file, path=path: graphs_from_sources([file], path, verbose=self.verbose),  # type: ignore[misc]
            )
            stores.append(GraphStore(path))
        return stores

    @cached_property
    def training_pairs(self) -> int:
        """How many pairs of the collection may be trained on; counted once, since that reads all posts."""
        file = self.workdir / "training-pairs.json"
        if not file.is_file():
            write_atomically(file, json.dumps({"pairs": len(read_training_pairs(self.collection.path).train)}) + "\n")
        return int(json.loads(file.read_text(encoding="utf-8"))["pairs"])

    @cached_property
    def bm25(self) -> BM25Index:
        """The BM25 index of the answers."""
        index = BM25Index(self.workdir / "answers.bm25")
        indexer = index.indexer("overwrite", tokens=STRONG_TOKENS, resume=True, verbose=self.verbose)
        documents = self.answer_documents()
        settings = {**self.origin, "tokens": STRONG_TOKENS.to_dict()}
        count = self.collection.count_answers
        self.stages.run("bm25", index.path, settings, lambda: indexer.index(self.counted(documents, count)))
        return index

    @cached_property
    def visual_ids(self) -> frozenset[str]:
        """The visual ids of the formulas that can be found."""
        return frozenset(entry["visual_id"] for entry in self.tangent.get_corpus_iter())

    def text_encoder(self, config: MathAMRConfig, *, cached: bool = True) -> TextEncoder | None:
        """Return the text encoder of a configuration, with vectors that all runs share; ``None`` if it has none."""
        if config.text.features == "lookup":
            return None
        cache = self.workdir / "texts.sqlite" if cached else None
        shown = self.verbose and cached  # no bar where single queries are timed
        return TextEncoder(config.text.text_model, cache=cache, precision="bfloat16", verbose=shown)

    def questions(self, split: Split) -> TopicSet:
        """Return the questions of a split, and their own answers as judgments."""

        def read() -> tuple[pd.DataFrame, pd.DataFrame]:
            topics = known_item_topics(self.collection.questions(), split)
            return topics, known_item_qrels(self.collection.pairs(), split)

        return TopicSet(*self._kept(split, read), self.graphs)

    def topics(self, year: int | str) -> TopicSet:
        """Return the topics of a year that can be measured on this collection, and their judgments."""
        kept = self._kept(str(year), lambda: judged_topics(self.collection, year, self.bm25))
        return TopicSet(*kept, self._topic_graphs(str(year), year, kept[0]))

    def formula_topics(self, year: int | str) -> TopicSet:
        """Return the formula topics of a year that can be measured on this collection, and their judgments."""

        def read() -> tuple[pd.DataFrame, pd.DataFrame]:
            judged = visual_judgments(self.collection, year, self.formulas, self.visual_ids)
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
        """Read topics and judgments from the work folder; the first time, from the collection."""
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
