"""What the runs of a study found, and the one way to make tables of it: means, tests, remarks on random orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES, TASK2_MEASURES
from pyterrier_mathamr.experiments.measuring import (
    FLOOR,
    KNOWN_ITEM_MEASURES,
    SHORT_NAMES,
    PairedTest,
    Rankings,
    measure_by_topic,
    near_random,
    near_random_remark,
    paired_test,
    random_floor,
)
from pyterrier_mathamr.experiments.workdir import FORMULA_DEPTH, TANGENT, Artifacts, TopicSet, distinct

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
    """Values of all runs of a study.

    Attributes:
        values: ``condition``, ``seed``, ``system``, ``topics`` (a year, or ``known item``), ``qid``, ``measure``,
            ``value``.
        speed: ``condition``, ``seed``, ``system``, ``queries``, and :data:`TIMES`.
        costs: ``condition``, ``seed``, ``run`` (the name of its folder), and what training and index cost.
    """

    values: pd.DataFrame
    speed: pd.DataFrame = field(default_factory=pd.DataFrame)
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

    def best_seed(self, key: Key, topics: Sequence[str], measure: str) -> int:
        """Return the seed of the highest mean, the first of equal ones."""
        means = self.by_topic(key, topics, measure).mean(axis=0)
        return int(means.index[int(means.to_numpy().argmax())])

    def means(
        self, keys: Sequence[Key], topics: Sequence[str], measures: Sequence[str], *, years: bool = False
    ) -> pd.DataFrame:
        """Average each measure over topics, with the standard deviation over the seeds."""
        lines = []
        for key in keys:
            values = {measure: self.by_topic(key, topics, measure) for measure in measures}
            line: dict[str, object] = {"condition": key[0], "system": key[1]}
            if years and len(topics) > 1:
                by_year = values[measures[0]].groupby(level="topics").mean().mean(axis=1)
                line |= {f"{SHORT_NAMES[measures[0]]} {year}": float(by_year[year]) for year in topics}
            for measure, own in values.items():
                by_seed = own.mean(axis=0)
                line[measure] = float(by_seed.mean())
                line[f"{measure} std"] = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
            lines.append(line)
        return pd.DataFrame(lines)

    def tests(
        self, pairs: Sequence[tuple[Key, Key]], topics: Sequence[str], measures: Sequence[str], number: int
    ) -> pd.DataFrame:
        """Test systems against others on values averaged over the seeds, corrected for a number of tests."""
        lines = []
        for key, other in pairs:
            for measure in measures:
                ours, theirs = (self.mean_over_seeds(each, topics, measure) for each in (key, other))
                test = paired_test(ours, theirs, number).columns()
                lines.append((*key, " / ".join(part for part in other if part != REFERENCE), measure, *test.values()))
        return pd.DataFrame(lines, columns=["condition", "system", "against", "measure", *PairedTest.NAMES])

    def near_random(
        self, keys: Sequence[Key], floor: Key, topics: Sequence[str], measure: str, advice: str
    ) -> tuple[str, ...]:
        """Point out the systems that are not significantly above a random order."""
        chance = self._named(floor, topics, measure)
        if chance.empty or not keys:
            return ()
        near = near_random(pd.concat([self._named(key, topics, measure) for key in dict.fromkeys(keys)]), chance)
        return near_random_remark(near, float(chance["value"].mean()), measure, len(chance), advice)

    def _named(self, key: Key, topics: Sequence[str], measure: str) -> pd.DataFrame:
        """Return one system's values averaged over its seeds: ``name``, ``qid`` (with the year) and ``value``."""
        mean = self.by_topic(key, topics, measure).mean(axis=1)
        name = " / ".join(part for part in key if part != REFERENCE)
        qids = [" ".join(index) for index in mean.index]
        return pd.DataFrame({"name": name, "qid": qids, "value": mean.to_numpy()})


def rounded(tests: pd.DataFrame) -> pd.DataFrame:
    """Round differences: a report writes the smallest numbers as those of p are written, ``< 0.0001``."""
    return tests.assign(difference=tests["difference"].astype(float).round(4))


def measured_formulas(rankings: Rankings, found: TopicSet) -> pd.DataFrame:
    """Measure rankings of formulas: ``system``, ``qid``, ``measure``, ``value``."""
    table = measure_by_topic(rankings, found.topics, found.qrels, TASK2_MEASURES).rename(columns={"name": "system"})
    return table.fillna({"value": 0.0})


def formula_references(shared: Artifacts, year: str) -> pd.DataFrame:
    """Measure Tangent and random orders of a year's formulas: ``system``, ``qid``, ``measure``, ``value``."""

    def compute() -> pd.DataFrame:
        found = shared.formula_topics(year)
        search = distinct(shared.tangent.retriever(FORMULA_DEPTH, store=shared.topic_formulas(year)))
        floor = random_floor(found.qrels).assign(system=FLOOR)
        return pd.concat([floor, measured_formulas({TANGENT: search(found.topics)}, found)])

    return shared.table(f"{year}-formulas", "references.csv", compute)
