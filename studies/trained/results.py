"""The results of a study's runs: values by topic, and costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.index import MathAMRIndex

from .job import Job, Jobs

ONCE = -1
"""The seed of systems without one: BM25 and the floor."""

_VALUES = ["condition", "seed", "system", "topics", "qid", "measure", "value"]
TIMES = ["queries per second", "encoding ms", "search ms", "p50 ms", "p95 ms"]
"""Columns of the times of single queries."""
_SPEED = ["condition", "seed", "system", "queries", *TIMES]

Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Results:
    """Values of all runs.

    Attributes:
        values: ``condition``, ``seed``, ``system``, ``topics`` (a year, or ``known item``), ``qid``, ``measure``,
            ``value``.
        speed: ``condition``, ``seed``, ``system``, ``queries``, and :data:`TIMES`.
        costs: ``condition``, ``seed``, ``run`` (the name of its folder), and what training and index cost.
    """

    values: pd.DataFrame
    speed: pd.DataFrame
    costs: pd.DataFrame

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


def read_results(jobs: Jobs) -> Results:
    """Read the files of finished jobs."""
    values, speed, costs = [], [], []
    for (condition, seed), job in jobs.items():
        if not job.finished():
            continue
        marks: dict[str, Any] = {"condition": condition, "seed": seed}
        values.append(pd.read_csv(job.measured, dtype={"qid": str, "topics": str}).assign(**marks))
        if job.task2:
            values.append(pd.read_csv(job.formulas, dtype={"qid": str, "topics": str}).assign(**marks))
        speed.append(pd.read_csv(job.speed).assign(**marks))
        costs.append({**marks, "run": job.folder.name, **_cost(job)})
    return Results(
        pd.concat(values, ignore_index=True) if values else pd.DataFrame(columns=_VALUES),
        pd.concat(speed, ignore_index=True) if speed else pd.DataFrame(columns=_SPEED),
        pd.DataFrame(costs),
    )


def _cost(job: Job) -> dict[str, float]:
    """Read the cost of a run and the size of its index."""
    cost = json.loads(job.cost.read_text(encoding="utf-8"))
    index = MathAMRIndex(job.folder / "answers.mathamr")
    size = sum(file.stat().st_size for file in index.path.rglob("*") if file.is_file())
    vectors = sum(len(entry.rows) for entry in index.entries())
    kept = {name: value for name, value in cost.items() if isinstance(value, (int, float))}
    return {**kept, "index bytes": size, "vectors": vectors}
