"""Task 2 of a study: what the vectors of single formulas find, for studies that are about them.

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

from functools import cached_property

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import TASK2_MEASURES, VisualIdDeduplication
from pyterrier_mathamr.experiments.compare import measure_by_topic
from pyterrier_mathamr.experiments.jobs import index_documents
from pyterrier_mathamr.experiments.stages import Stages, write_whole
from pyterrier_mathamr.experiments.task2_topics import DEPTH, LENGTH, formula_topics, visual_judgements
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.systems import TangentIndex

from .floor import random_floor
from .job import Job
from .materials import Materials, TopicSet
from .strategies import FLOOR, FORMULAS, TANGENT


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
