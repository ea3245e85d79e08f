"""An experiment on a folder in BEIR's layout: settings are chosen on another split, or in folds of the queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from ir_measures import AP, RR, R, nDCG

from pyterrier_mathamr import __version__
from pyterrier_mathamr.arqmath import BeirDataset
from pyterrier_mathamr.extending import pseudo_random
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, build_store
from pyterrier_mathamr.index import MathAMRIndex, index_documents
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR
from pyterrier_mathamr.sparse import BM25Index
from pyterrier_mathamr.store import file_fingerprint

from .choosing import (
    CROSSED_BM25,
    ChosenSystem,
    Fold,
    ModelSystems,
    Nested,
    Questions,
    chosen_systems,
    chosen_table,
    fused,
    pooled_folds,
    tests_of,
)
from .measuring import means_table, measure_by_topic, stars
from .report import Report
from .stages import Stages, to_stderr
from .systems import COLBERT, TUNED
from .workdir import TopicSet

ASKED = "queries"
EQUAL = fused((TUNED, COLBERT), weights=(0.5, 0.5))
"""With nothing to choose."""


@dataclass(frozen=True, eq=False)
class TextCollection:
    """Documents, queries and judgments."""

    name: str
    documents: Callable[[], Iterable[dict[str, str]]]  # reads them: docno, text, and title where there is one
    topics: pd.DataFrame  # qid and query
    qrels: pd.DataFrame  # qid, docno, label
    origin: Mapping[str, object]  # the inputs of its content, as plain values

    @property
    def questions(self) -> Questions:
        return Questions(ASKED, self.topics)


@dataclass(frozen=True, eq=False)
class TextArtifacts:
    """The indexes of a collection, each made on first use."""

    collection: TextCollection
    model: MathAMR
    stages: Stages  # of the work folder, which belongs to this collection
    verbose: bool = False
    suffix: str = ""  # of names that depend on the model, if several models share the work folder

    @cached_property
    def bm25(self) -> BM25Index:
        return self._words("bm25", BM25Index(self.stages.workdir / "documents.bm25", preset="standard"))

    @cached_property
    def tuned(self) -> BM25Index:
        return self._words("bm25-tuned", BM25Index(self.stages.workdir / "tuned.bm25", preset="math"))

    @cached_property
    def structured(self) -> BM25Index:
        return self._words("bm25-structures", BM25Index(self.stages.workdir / "structures.bm25", preset="structures"))

    def _words(self, stage: str, index: BM25Index) -> BM25Index:
        indexer = index.indexer("overwrite", resume=True, verbose=self.verbose)
        settings = {**self._origin, "preset": index.preset}
        self.stages.run(stage, index.path, settings, lambda: indexer.index(self.collection.documents()))
        return index

    @cached_property
    def graphs(self) -> GraphStore:
        store = GraphStore(self.stages.workdir / "graphs.mathamr")
        self.stages.run("graphs", store.path, self._origin, lambda: self._build(store))
        return store

    @cached_property
    def topics(self) -> TopicSet:
        """The queries with their graphs."""
        store, topics = GraphStore(self.stages.workdir / "topics.mathamr"), self.collection.topics

        def build() -> None:
            store.discard()
            (GraphBuilder(verbose=False) >> store.indexer()).index(topics.to_dict("records"))

        self.stages.run("topics", store.path, {**self._origin, "topics": len(topics)}, build)
        return TopicSet(topics, self.collection.qrels, store)

    @cached_property
    def index(self) -> MathAMRIndex:
        index, graphs = MathAMRIndex(self.stages.workdir / f"documents{self.suffix}.mathamr"), self.graphs
        docnos, settings = self.bm25.snapshot(), {**self._origin, "model": self.model.identity}
        self.stages.run(
            f"index{self.suffix}",
            index.path,
            settings,
            lambda: index_documents(docnos, graphs, self.model, index, verbose=self.verbose),
        )
        return index

    def systems(self, chosen: Mapping[str, tuple[str, ...]]) -> list[ChosenSystem]:
        qrels = self.collection.qrels
        of_model = ModelSystems(
            lambda: (self.model, self.index),
            lambda: self.bm25,
            lambda: self.tuned,
            lambda _: self.topics,
            lambda find, of: others(find(of), qrels),
        )
        made: list[ChosenSystem] = [fused(parts) if parts else of_model.system(name) for name, parts in chosen.items()]
        return [*made, EQUAL] if {TUNED, COLBERT} <= chosen.keys() else made

    def _build(self, store: GraphStore) -> GraphStore:
        sources = dict(self._origin)
        return build_store(
            self.collection.documents(), GraphBuilder(), store, sources=sources, mode="overwrite", verbose=self.verbose
        )

    @property
    def _origin(self) -> dict[str, object]:
        return {**self.collection.origin, "version": __version__}


def others(ranking: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Drop the document with a query's own id, unless it is judged for this query."""
    judged = set(qrels.loc[qrels["qid"] == qrels["docno"], "qid"])
    kept: pd.DataFrame = ranking[(ranking["qid"] != ranking["docno"]) | ranking["qid"].isin(judged)]
    return kept


MEASURES = [nDCG @ 10, RR @ 10, AP, R @ 100]
CHOSEN_ON = ("dev", "validation", "train")
"""The splits that everything is chosen on, if there are any; the first of them is taken."""
MOST = 500
"""Queries of such a split."""
MEASURED, TESTS, CHOSEN = "Measured", "Tests", "What was chosen"
NOTES = (
    "Everything is chosen by the mean nDCG@10: k1 and b of cross-validated BM25, the candidates that a first stage "
    "hands on, the weight of a fusion. Each query is measured by a system that was chosen without it. In the other "
    "two rows of BM25 nothing is chosen.",
    "± is the standard error of the mean over the queries. Rankings have at most 1000 documents; a query does not find "
    "a document with its own id, as in BEIR, unless that document is judged for it.",
)


def run_beir(
    path: str | Path,
    workdir: str | Path,
    *,
    split: str | None = None,
    systems: Sequence[str] | None = None,
    model: str = DEFAULT_MODEL,
    verbose: bool = True,
) -> Report:
    """Search a collection in BEIR's layout by words, by a model, and by both.

    Args:
        path: the folder, with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/*.tsv``.
        workdir: where indexes, tables and ``report.md`` are kept; finished stages are not repeated.
        split: the judgments to measure by; by default ``test``, or the only ones. If there is also ``dev``,
            ``validation`` or ``train``, settings are tuned on it, otherwise in ten folds of the queries.
        systems: names of the ways to search with MathAMR+, or several joined by ``+``; by default all.
        model: name or folder of a trained model.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir``.

    Raises:
        DocumentError: a file is missing, or a line of judgments cannot be read.
        ConfigError: there is no such split or system.
        ExperimentError: ``workdir`` belongs to another collection or model.
    """
    chosen = chosen_systems(systems)
    dataset, encoder = BeirDataset(path), MathAMR.from_pretrained(model)
    collection, folds = read_collection(dataset, split)
    stages = Stages(Path(workdir), to_stderr if verbose else None)
    artifacts = TextArtifacts(collection, encoder, stages, verbose)
    with stages.timed("search"):
        made = artifacts.systems(chosen)
        rankings, settings = Nested(made, collection.questions, collection.qrels, MEASURES[0]).run(folds)
    measured = frozenset[str]().union(*(fold.test for fold in folds))
    asked = collection.questions.only(measured)
    values = measure_by_topic(rankings, asked.topics, asked.kept(collection.qrels), MEASURES).fillna({"value": 0.0})
    names = [system.name for system in made]
    tests = tests_of(values, made, str(MEASURES[0]), CROSSED_BM25)
    table = means_table(values, names, list(map(str, MEASURES)))
    differ = tests[(tests["against"] == CROSSED_BM25) & tests["significant"].astype(bool)]["system"]
    return Report(
        title=f"Experiment on {collection.name}, a folder in BEIR's layout",
        settings={"collection": collection.name, "queries": len(measured), "model": model},
        stages=stages.records,
        tables={
            MEASURED: table.assign(**{f"{MEASURES[0]} reject": table["name"].isin(differ)}),
            TESTS: tests,
            CHOSEN: chosen_table([settings]),
        },
        about={
            MEASURED: f"{len(measured)} queries, {len(artifacts.bm25):,} documents; model {model}, nothing was trained "
            f"here. Chosen on: {folds[0].name if len(folds) == 1 else f'{len(folds)} folds of the queries'}. "
            + stars(CROSSED_BM25, "the tests")
        },
        notes=NOTES,
        values={"by-query": values},
    ).write(stages.workdir)


def read_collection(dataset: BeirDataset, split: str | None) -> tuple[TextCollection, list[Fold]]:
    """Read queries and judgments of the split to measure on, and of the split to choose settings on."""
    folder = dataset.folder
    measured = folder.split(split)
    topics, qrels = dataset.get_topicsqrels(measured)
    others = [name for name in CHOSEN_ON if name in folder.splits and name != measured]
    if others:
        test = frozenset(topics["qid"])
        more = _some(dataset.get_topics(others[0]), test)
        others_qrels = dataset.get_qrels(others[0])
        topics = pd.concat([topics, more], ignore_index=True)
        qrels = pd.concat([qrels, others_qrels[others_qrels["qid"].isin(more["qid"])]], ignore_index=True)
        folds = [Fold(f"{others[0]} → {measured}", frozenset(topics["qid"]) - test, test)]
    else:
        folds = pooled_folds(topics["qid"].tolist())
    origin = {file.name: file_fingerprint(file) for file in folder.files()}
    return TextCollection(folder.path.name, folder.documents, topics, qrels, origin), folds


def _some(topics: pd.DataFrame, measured: frozenset[str]) -> pd.DataFrame:
    """Keep at most :data:`MOST` queries that are not measured, by a hash of their ids."""
    free = [qid for qid in topics["qid"] if qid not in measured]
    first = sorted(free, key=pseudo_random)[:MOST]
    kept: pd.DataFrame = topics[topics["qid"].isin(first)]
    return kept
