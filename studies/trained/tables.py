"""The tables of a study, computed from the measured values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.artifacts import TANGENT
from pyterrier_mathamr.experiments.measuring import (
    FLOOR,
    KNOWN_ITEM_MEASURES,
    RANDOM_ANSWERS,
    PairedTest,
    near_random,
    near_random_remark,
    paired_test,
)
from pyterrier_mathamr.experiments.reporting.published import published
from pyterrier_mathamr.experiments.search import BM25

from .definition import Row, Study
from .job import FORMULAS
from .results import TIMES, Key, Results

TASK1 = tuple(map(str, TASK1_MEASURES))
"""The measures of Task 1 and Task 2."""
KNOWN = tuple(map(str, KNOWN_ITEM_MEASURES))
MAIN = TASK1[0]
REFERENCE = "–"
"""The condition of BM25 and the floor, which depend on none."""


@dataclass(frozen=True, eq=False)
class StudyTables:
    """The tables of one study."""

    study: Study
    results: Results
    years: tuple[str, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that have been measured, and whose baseline has."""
        return self._done(self.study.rows)

    @property
    def tests(self) -> int:
        """The number of tests of the study, for the Bonferroni correction: each tested row and measure of each task."""
        rows = (*self.study.rows, *(_formula_rows(self.study) if self.study.task2 else ()))
        return len(TASK1) * sum(row.against is not None for row in rows)

    @property
    def formula_rows(self) -> tuple[Row, ...]:
        """The rows of Task 2 if the study measures it: each condition by the vectors of its formulas."""
        return self._done(_formula_rows(self.study)) if self.study.task2 else ()

    def mean(self, topics: Sequence[str], measures: Sequence[str], keys: Sequence[Key] | None = None) -> pd.DataFrame:
        """Compute the mean of each measure and its standard deviation over the seeds, the floor and BM25 first."""
        chosen = [row.key for row in self.rows] if keys is None else list(keys)
        lines = []
        for condition, system in (*self._references(topics), *chosen):
            line: dict[str, object] = {"condition": condition, "system": system}
            for measure in measures:
                by_seed = self.results.by_topic((condition, system), topics, measure).mean(axis=0)
                line[measure] = float(by_seed.mean())
                line[f"{measure} std"] = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
            lines.append(line)
        table: pd.DataFrame = pd.DataFrame(lines)
        return table

    def tested(self, rows: Sequence[Row], topics: Sequence[str]) -> pd.DataFrame:
        """Compute :meth:`mean`, and for each tested row and measure whether it differs from its baseline."""
        table = self.mean(topics, TASK1, [row.key for row in rows])
        outcomes = (
            self.significance(rows, topics).set_index(["condition", "system", "measure"])["significant"].to_dict()
        )
        for measure in TASK1:
            keys = zip(table["condition"], table["system"], strict=True)
            table[f"{measure} reject"] = [outcomes.get((*key, measure), False) for key in keys]
        return table

    def best_seed(self) -> pd.DataFrame:
        """Show each row by its best seed, the one of the highest nDCG' on the same topics, as the paper does."""
        lines = []
        for row in self.rows:
            seed = self.results.best_seed(row.key, self.years, MAIN)
            line: dict[str, object] = {"condition": row.condition, "system": row.strategy, "seed": seed}
            for measure in TASK1:
                values = self.results.by_topic(row.key, self.years, measure)[seed]
                line[measure] = float(values.mean())
                line[f"{measure} reject"] = False
                if row.against is not None:
                    other = self.results.best_seed(row.against, self.years, MAIN)
                    baseline = self.results.by_topic(row.against, self.years, measure)[other]
                    outcome = paired_test(values.to_numpy(), baseline.to_numpy(), self.tests)
                    line[f"{measure} reject"] = outcome.significant
            lines.append(line)
        table: pd.DataFrame = pd.DataFrame(lines)
        return table

    def significance(self, rows: Sequence[Row], topics: Sequence[str]) -> pd.DataFrame:
        """Test each row against its baseline on each measure, on values averaged over the seeds."""
        lines = []
        for row in rows:
            for measure in TASK1 if row.against is not None else ():
                values = self.results.mean_over_seeds(row.key, topics, measure)
                baseline = self.results.mean_over_seeds(row.against or row.key, topics, measure)
                outcome = paired_test(values, baseline, self.tests)
                lines.append(
                    {
                        "condition": row.condition,
                        "system": row.strategy,
                        "against": " / ".join(row.against or ()),
                        "measure": measure,
                        **outcome.columns(),
                    }
                )
        columns = ["condition", "system", "against", "measure", *PairedTest.NAMES]
        table: pd.DataFrame = pd.DataFrame(lines, columns=columns)
        return table

    def against_bm25(self, topics: Sequence[str], measure: str) -> pd.DataFrame:
        """Test every system of every condition against BM25, corrected for the tests of this table only."""
        bm25 = self.results.mean_over_seeds((REFERENCE, BM25), topics, measure)
        lines = []
        for condition, system in self.systems():
            values = self.results.mean_over_seeds((condition, system), topics, measure)
            outcome = paired_test(values, bm25, len(self.study.conditions) * (len(self.study.strategies) - 1))
            lines.append({"condition": condition, "system": system, "measure": measure, **outcome.columns()})
        table: pd.DataFrame = pd.DataFrame(lines, columns=["condition", "system", "measure", *PairedTest.NAMES])
        return table

    def costs(self) -> pd.DataFrame:
        """Compute the mean cost of each condition over its seeds."""
        costs = self.results.costs
        if costs.empty:
            return costs
        by_condition = costs.drop(columns=["seed", "run"]).groupby("condition", sort=False)
        means = by_condition.mean(numeric_only=True)
        means.insert(0, "runs", by_condition.size())
        means["seconds per epoch std"] = by_condition["seconds per epoch"].std(ddof=1)
        for name in ("parameters", "index bytes", "vectors"):
            means[name] = means[name].round().astype("int64")
        table: pd.DataFrame = means.reset_index()
        return table

    def speed(self) -> pd.DataFrame:
        """Compute the mean times of single queries over conditions and seeds; they depend on the system only."""
        grouped = self.results.speed.groupby("system", sort=False)
        means = grouped[TIMES].mean()
        means["queries per second std"] = grouped["queries per second"].std(ddof=1)
        table: pd.DataFrame = means.reset_index()
        return table

    def order(self) -> pd.DataFrame:
        """Rank the rows by nDCG', here and in the paper; ranks, not figures, since scales differ."""
        lines = []
        for row in self.rows:
            if (cell := row.published) is not None:
                figure = published().tables[cell.table].figure(cell.row, cell.column)
                mean = float(self.results.mean_over_seeds(row.key, self.years, MAIN).mean())
                lines.append((*row.key, mean, figure.value if figure else float("nan")))
        table = pd.DataFrame(lines, columns=["condition", "system", "place here", "place in the paper"])
        for name in table.columns[2:]:
            table[name] = table[name].astype(float).rank(ascending=False, method="min").astype("Int64")
        return table

    def near_random_remark(
        self, topics: Sequence[str], measure: str, keys: Sequence[Key], advice: str
    ) -> tuple[str, ...]:
        """Point out the systems that are not significantly above the random order."""
        floors = [key for key in self._references(topics) if key[1] in (FLOOR, RANDOM_ANSWERS)]
        if not floors or not keys:
            return ()
        chance = self._by_topic(floors[0], topics, measure)
        values = [self._by_topic(key, topics, measure).assign(name=" / ".join(key)) for key in dict.fromkeys(keys)]
        near = near_random(pd.concat(values), chance)
        return near_random_remark(near, float(chance["value"].mean()), measure, len(chance), advice)

    def _by_topic(self, key: Key, topics: Sequence[str], measure: str) -> pd.DataFrame:
        """Return one system's values averaged over its seeds: ``qid`` (with the year) and ``value``."""
        mean = self.results.by_topic(key, topics, measure).mean(axis=1)
        table: pd.DataFrame = pd.DataFrame({"qid": [" ".join(index) for index in mean.index], "value": mean.to_numpy()})
        return table

    def _references(self, topics: Sequence[str]) -> list[Key]:
        """List the rows that depend on no condition and have been measured on these topics."""
        found = self.results.values
        known = set(found.loc[found["condition"].eq(REFERENCE) & found["topics"].isin(topics), "system"])
        return [(REFERENCE, system) for system in (FLOOR, RANDOM_ANSWERS, BM25, TANGENT) if system in known]

    def _done(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """Keep the rows that have been measured, and whose baseline has."""
        done = self._measured()
        return tuple(row for row in rows if row.key in done and (row.against is None or row.against in done))

    def systems(self) -> list[Key]:
        """List every measured system of every condition."""
        keys = [(condition.name, system) for condition in self.study.conditions for system in self.study.strategies]
        done = self._measured()
        return [key for key in keys if key[1] != BM25 and key in done]

    def _measured(self) -> set[Key]:
        """List the condition and system of all values."""
        return set(zip(self.results.values["condition"], self.results.values["system"], strict=True))


def _formula_rows(study: Study) -> tuple[Row, ...]:
    """Derive the rows of Task 2 from those of Task 1: a condition has the baseline of its first row."""
    first = {row.condition: row for row in reversed(study.rows)}
    against = {name: row.against and (row.against[0], FORMULAS) for name, row in first.items()}
    return tuple(Row(condition.name, FORMULAS, against.get(condition.name)) for condition in study.conditions)
