"""The results of a study's runs, and the one way to make tables of them: means, tests, remarks on random orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems.experiments.measuring import (
    FLOOR,
    KNOWN_ITEM_MEASURES,
    TEST_COLUMNS,
    Rankings,
    best_of,
    means_table,
    measure_by_topic,
    near_random,
    paired_tests,
    random_floor,
)
from mathamr_systems.experiments.systems import BASELINES
from mathamr_systems.experiments.workdir import FORMULA_DEPTH, TANGENT, Artifacts, TopicSet, distinct
from pyterrier_mathamr.arqmath import TASK1_MEASURES, TASK2_MEASURES

from .artifacts import judged_formulas

Key = tuple[str, str]
"""Condition and system."""
REFERENCE = "–"
"""The condition of systems that depend on none: BM25, random orders, and all systems of answer studies."""
JUDGED = tuple(map(str, TASK1_MEASURES))
"""The measures of Task 1 and Task 2."""
KNOWN = tuple(map(str, KNOWN_ITEM_MEASURES))
MAIN = JUDGED[0]
TIMES = ["queries per second", "encoding ms", "search ms", "p50 ms", "p95 ms"]
"""Columns of the times of single queries."""
VALUES = ["condition", "seed", "system", "topics", "qid", "measure", "value"]


@dataclass(frozen=True, eq=False)
class Results:
    """Values of all runs of a study."""

    values: pd.DataFrame  # condition, seed, system, topics (a year, or known item), qid, measure, value
    speed: pd.DataFrame = field(default_factory=pd.DataFrame)  # condition, seed, system, queries, and TIMES
    # condition, seed, run (the name of its folder), and what training and index cost
    costs: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def measured(self) -> set[Key]:
        """The condition and system of all values."""
        return set(zip(self.values["condition"], self.values["system"], strict=True))

    def by_topic(self, key: Key, topics: Sequence[str], measure: str) -> pd.DataFrame:
        """Return one system's values of one measure: a row for each topic, a column for each seed."""
        found = self.values
        chosen = found[
            (found["condition"] == key[0])
            & (found["system"] == key[1])
            & found["topics"].isin(topics)
            & (found["measure"] == measure)
        ]
        table: pd.DataFrame = chosen.pivot(index=["topics", "qid"], columns="seed", values="value").sort_index()
        return table

    def mean_over_seeds(self, key: Key, topics: Sequence[str], measure: str) -> npt.NDArray[np.float64]:
        """Return one system's value of each topic, averaged over its seeds: float64 ``[topics]``."""
        return self.by_topic(key, topics, measure).mean(axis=1).to_numpy(dtype=np.float64)

    def better_bm25(self, topics: Sequence[str], measure: str) -> str:
        """Return the BM25 that systems are tested against, the one with the higher mean."""
        of_topics = self.values[self.values["topics"].isin(topics)].rename(columns={"system": "name"})
        return best_of(of_topics, [name for name in BASELINES if (REFERENCE, name) in self.measured], measure)

    def best_seed(self, key: Key, topics: Sequence[str], measure: str) -> int:
        """Return the seed of the highest mean, the first of equal ones."""
        means = self.by_topic(key, topics, measure).mean(axis=0)
        return int(means.index[int(means.to_numpy().argmax())])

    def means(
        self, keys: Sequence[Key], topics: Sequence[str], measures: Sequence[str], *, years: bool = False
    ) -> pd.DataFrame:
        """Average each measure over topics, with the standard deviation over the seeds."""
        names = list(map(name_of, keys))
        table = means_table(self.named(topics, measures), names, measures, years=topics if years else ())
        table.insert(0, "condition", [condition for condition, _ in keys])
        table.insert(1, "system", [system for _, system in keys])
        return table.drop(columns="name")

    def tests(
        self, pairs: Sequence[tuple[Key, Key]], topics: Sequence[str], measures: Sequence[str], number: int
    ) -> pd.DataFrame:
        """Test systems against others on values averaged over the seeds, corrected for a number of tests."""
        values, named = self.named(topics, measures), [(name_of(key), name_of(other)) for key, other in pairs]
        tables = [paired_tests(values, named, measure, number).assign(measure=measure) for measure in measures]
        for table in tables:
            table["condition"], table["system"] = [key[0] for key, _ in pairs], [key[1] for key, _ in pairs]
        whole = pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)  # the measures of a pair together
        return whole[["condition", "system", "against", "measure", *TEST_COLUMNS]]

    def near_random(
        self, keys: Sequence[Key], floor: Key, topics: Sequence[str], measure: str, advice: str
    ) -> tuple[str, ...]:
        """Point out the systems that are not significantly above a random order."""
        values = self.named(topics, [measure]).groupby(["name", "qid"], sort=False)["value"].mean().reset_index()
        chance = values[values["name"] == name_of(floor)]
        own = [values[values["name"] == name] for name in dict.fromkeys(map(name_of, keys))]
        return near_random(pd.concat(own), chance, measure, advice) if own and len(chance) else ()

    def named(self, topics: Sequence[str], measures: Sequence[str]) -> pd.DataFrame:
        """Return values in the form from which all tables are made: the topics of several years, each with its year."""
        found = self.values[self.values["topics"].isin(topics) & self.values["measure"].isin(measures)]
        names = list(map(name_of, zip(found["condition"], found["system"], strict=True)))
        # if some topics have no values, the others have dtype object
        return found.assign(name=names, qid=found["topics"] + " " + found["qid"]).astype({"value": "float64"})


def name_of(key: Key) -> str:
    """Name a system in one text, with its condition if it has one."""
    return " / ".join(part for part in key if part not in (REFERENCE, ""))


def measured_formulas(rankings: Rankings, found: TopicSet) -> pd.DataFrame:
    """Measure rankings of formulas: ``system``, ``qid``, ``measure``, ``value``."""
    table = measure_by_topic(rankings, found.topics, found.qrels, TASK2_MEASURES).rename(columns={"name": "system"})
    return table.fillna({"value": 0.0})


def formula_references(shared: Artifacts, year: str) -> pd.DataFrame:
    """Measure Tangent and random orders of a year's formulas: ``system``, ``qid``, ``measure``, ``value``."""

    def compute() -> pd.DataFrame:
        found = judged_formulas(shared, year)
        search = distinct(shared.tangent.retriever(FORMULA_DEPTH, store=shared.topic_formulas(year)))
        floor = random_floor(found.qrels).assign(system=FLOOR)
        return pd.concat([floor, measured_formulas({TANGENT: search(found.topics)}, found)])

    return shared.table(f"{year}-formulas", "references.csv", compute)
