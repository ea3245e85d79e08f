"""What a trained model finds: each measure of each topic by each strategy, and the time of single queries.

Task 2 of a study: what the vectors of single formulas find, for studies that are about them.

The folder of the work, beside what :mod:`materials` lists::

    formulas.tangent                                 symbol pairs of all formulas, the reference
    topics/<year>-formulas/topics.json, qrels.json   formula topics of a year, judgements by visual id
    topics/<year>-formulas/graphs.mathamr            graphs of their questions
    topics/<year>-formulas/references.csv            what chance and Tangent find
    runs/<key>/formulas.mathamr                      vectors of the formulas of all posts, by one run's model
    runs/<key>/formulas-<key>.csv                    each measure of each topic

Runs that were made before are gone on with: only these files are new.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import TASK1_MEASURES, TASK2_MEASURES, VisualIdDeduplication
from pyterrier_mathamr.experiments.jobs import index_documents
from pyterrier_mathamr.experiments.measuring import (
    KNOWN_ITEM_MEASURES,
    fitted_weight,
    measure_by_topic,
    random_floor,
    run_systems,
)
from pyterrier_mathamr.experiments.search import BM25, COLBERT, FLOOR, FORMULAS, FUSION, STRATEGIES, TANGENT
from pyterrier_mathamr.experiments.stages import Stages, write_whole
from pyterrier_mathamr.experiments.topics import DEPTH, LENGTH, formula_topics, visual_judgements
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.systems import TangentIndex, ZScoreFusion, fuse_rankings

from .job import Job
from .materials import KNOWN_ITEM, Materials, TopicSet

TIMED_QUERIES = 50


def measure_job(job: Job, materials: Materials, model: MathAMR, index: MathAMRIndex) -> None:
    """Search with each strategy and write the values by topic, and the times of single queries.

    Args:
        job: says with what, and where the files go.
        materials: topics and judgements.
        model: encodes the queries.
        index: the answers' vectors.
    """
    bm25 = materials.bm25
    systems = {
        name: STRATEGIES[name].system(index, bm25, job.depth)
        for name in job.measured_strategies
        if STRATEGIES[name].way != "fusion"
    }
    weights = _fusion_weights(job, systems, materials.questions("validation"), model)
    parts, encoded = [], []
    for name in (KNOWN_ITEM, *job.years):
        found = materials.questions("test") if name == KNOWN_ITEM else materials.topics(name)
        topics = _encoded(found, model, job.device)
        rankings = _rankings(systems, weights, topics, job)
        measures = KNOWN_ITEM_MEASURES if name == KNOWN_ITEM else TASK1_MEASURES
        parts.append(measure_by_topic(rankings, topics, found.qrels, measures).assign(topics=name))
        encoded.append(topics)
    fused = {
        name: ZScoreFusion(systems[BM25], systems[COLBERT], weight=weight, num_results=job.depth.results)
        for name, weight in weights.items()
    }
    write_whole(job.speed, _speed({**systems, **fused}, pd.concat(encoded[1:], ignore_index=True)).to_csv(index=False))
    table = pd.concat(parts, ignore_index=True).rename(columns={"name": "system"}).fillna({"value": 0.0})
    write_whole(job.measured, table[["topics", "system", "qid", "measure", "value"]].to_csv(index=False))


def _encoded(found: TopicSet, model: MathAMR, device: str | None) -> pd.DataFrame:
    """Encode topics from their stored graphs."""
    frame: pd.DataFrame = (found.graphs.loader(side="query") >> model.query_encoder(device=device))(found.topics)
    encoded: pd.DataFrame = frame.drop(columns="query_graph")
    return encoded


def _fusion_weights(
    job: Job, systems: Mapping[str, pt.Transformer], questions: TopicSet, model: MathAMR
) -> dict[str, float]:
    """Say what MaxSim counts in each fusion: half, or what fits the validation questions."""
    weights = {name: 0.5 for name in job.measured_strategies if STRATEGIES[name].way == "fusion"}
    if FUSION in weights:
        topics = _encoded(questions, model, job.device)
        found, _ = run_systems({name: systems[name] for name in (BM25, COLBERT)}, topics)
        weights[FUSION] = fitted_weight(found[BM25], found[COLBERT], questions.qrels)
    return weights


def _rankings(
    systems: Mapping[str, pt.Transformer], weights: Mapping[str, float], topics: pd.DataFrame, job: Job
) -> dict[str, pd.DataFrame]:
    """Search with each system once and fuse what was found."""
    found, _ = run_systems(systems, topics)
    for name, weight in weights.items():
        found[name] = fuse_rankings(found[BM25], found[COLBERT], weight, job.depth.results)
    return found


def _speed(systems: Mapping[str, pt.Transformer], topics: pd.DataFrame) -> pd.DataFrame:
    """Search with single encoded queries: queries per second, and the time that half and 95 % of them stay under.

    Args:
        systems: from queries with ``query_embs`` to a ranking.
        topics: at most the first :data:`TIMED_QUERIES` are used.

    Returns:
        ``system``, ``queries``, ``queries per second``, ``p50 ms``, ``p95 ms``.
    """
    queries = [topics.iloc[[row]] for row in range(min(TIMED_QUERIES, len(topics)))]
    rows = []
    for name, system in systems.items():
        system(queries[0])  # opens files and builds what is built on first use
        times = []
        for query in queries:
            start = time.perf_counter()
            system(query)
            times.append(1000 * (time.perf_counter() - start))
        half, most = np.percentile(times, (50, 95))
        rows.append((name, len(times), 1000 * len(times) / sum(times), half, most))
    table: pd.DataFrame = pd.DataFrame(rows, columns=["system", "queries", "queries per second", "p50 ms", "p95 ms"])
    return table


def formula_label(year: str) -> str:
    """Name the formula topics of a year among the topics of all results."""
    return f"{year}, formulas"


class FormulaMaterials:
    """Makes or finds what Task 2 of all runs shares.

    Args:
        materials: of the same study.
    """

    def __init__(self, materials: Materials) -> None:
        self._materials = materials

    @cached_property
    def store(self) -> FormulaStore:
        """Official trees and visual ids of the collection's formulas."""
        return self._materials.arqmath().formulas()

    @cached_property
    def tangent(self) -> TangentIndex:
        """The symbol pairs of the collection's formulas."""
        return self._materials.arqmath().tangent(self.store)

    def prepare(self, years: tuple[str, ...]) -> None:
        """Make all of it.

        Args:
            years: whose topics are searched with.

        Raises:
            ARQMathError: a file of the release is missing or damaged.
            NoRelevantTopicError: no formula topic of a year can be measured on this collection.
        """
        for year in years:
            self.references(year)

    def topics(self, year: str) -> TopicSet:
        """Give the formula topics of a year that can be measured here, each with its question, and their judgements.

        Args:
            year: 2020, 2021 or 2022, or another by which the files are named.
        """
        name = f"{year}-formulas"
        topics, qrels = self._materials.kept(name, lambda: self._read(year))
        store = GraphStore(self._materials.workdir / "topics" / name / "graphs.mathamr")
        if not store.built():
            store.discard()
            (GraphBuilder(store=self._trees(year), verbose=False) >> store.indexer()).index(topics.to_dict("records"))
        return TopicSet(topics.assign(query_formula_id=topics["formula_id"]), qrels, store)

    def references(self, year: str) -> pd.DataFrame:
        """Give what a random order of the judged and Tangent reach: ``system``, ``qid``, ``measure``, ``value``."""
        file = self._materials.workdir / "topics" / f"{year}-formulas" / "references.csv"
        if not file.is_file():
            found = self.topics(year)
            search = distinct(self.tangent.retriever(DEPTH, store=self._trees(year)))
            rows = measured_formulas({TANGENT: search(found.topics)}, found)
            write_whole(file, pd.concat([random_floor(found.qrels).assign(system=FLOOR), rows]).to_csv(index=False))
        return pd.read_csv(file, dtype={"qid": str})

    def _read(self, year: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        collection = self._materials.collection
        here = frozenset(entry["visual_id"] for entry in self.tangent.get_corpus_iter())
        judged = visual_judgements(collection, year, self.store, here)
        qrels = judged.get("visual ids", next(iter(judged.values())))
        topics = formula_topics(collection, year)
        return topics[topics["qid"].isin(qrels["qid"])].reset_index(drop=True), qrels

    def _trees(self, year: str) -> FormulaStore:
        folder = self._materials.workdir / "topics" / f"{year}-formulas"
        folder.mkdir(parents=True, exist_ok=True)
        return self._materials.arqmath(Stages(folder), folder, year).topic_formulas()


def distinct(system: pt.Transformer) -> pt.Transformer:
    """Rank visually distinct formulas in place of formulas, as the evaluation of Task 2 does.

    Args:
        system: to a ranking of formulas with ``visual_id``.
    """
    return system >> VisualIdDeduplication() >> pt.RankCutoff(LENGTH)


def measured_formulas(rankings: dict[str, pd.DataFrame], found: TopicSet) -> pd.DataFrame:
    """Measure rankings of formulas: ``system``, ``qid``, ``measure``, ``value``."""
    table = measure_by_topic(rankings, found.topics, found.qrels, TASK2_MEASURES).rename(columns={"name": "system"})
    rows: pd.DataFrame = table[["system", "qid", "measure", "value"]].fillna({"value": 0.0})
    return rows


def measure_formulas(job: Job, materials: Materials, model: MathAMR, stages: Stages) -> None:
    """Index the vectors of all formulas, search for those of the topics, and write the values by topic.

    Args:
        job: says which years, and where the files go.
        materials: graphs and topics.
        model: encodes posts and questions.
        stages: of the job.
    """
    formulas = FormulaMaterials(materials)
    index = MathAMRFormulaIndex(job.folder / "formulas.mathamr")
    stages.run(
        "formula-index",
        index.path,
        {"model": model.identity},
        lambda: index_documents(materials.graphs.ids(), materials.graphs, model, index, visual_ids=formulas.store),
    )
    parts = []
    for year in job.years:
        found = formulas.topics(year)
        encode = found.graphs.loader(side="query") >> model.query_encoder(device=job.device)
        ranking = distinct(encode >> index.retriever(num_results=DEPTH))(found.topics)
        parts.append(measured_formulas({FORMULAS: ranking}, found).assign(topics=formula_label(year)))
    write_whole(job.formulas, pd.concat(parts, ignore_index=True).to_csv(index=False))
