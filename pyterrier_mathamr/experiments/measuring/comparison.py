"""Systems beside a random order: the table, and the systems that are not significantly above it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES

from .chance import FLOOR
from .rankings import SHORT_NAMES, Rankings, measure, measure_by_topic
from .significance import ALPHA, paired_test

TOO_FEW = (
    "As the baseline is among them, the topics or judgments are too few to tell systems apart: take more years "
    "(`--years`) or a larger part of the release."
)


class NearRandom(NamedTuple):
    """A system that is not significantly above a random order.

    Attributes:
        name: of the system.
        value: its mean.
        p: of the test, corrected.
    """

    name: str
    value: float
    p: float


class Comparison(NamedTuple):
    """Systems measured beside a random order.

    Attributes:
        table: as :func:`measure`, and the random order in the last row.
        by_topic: ``name``, ``qid``, ``measure``, ``value``.
        near: the systems that are not significantly above the random order by the first measure.
        floor: the mean of the random order by the first measure.
        topics: how many were tested.
        judgments: how many they have.
    """

    table: pd.DataFrame
    by_topic: pd.DataFrame
    near: tuple[NearRandom, ...]
    floor: float
    topics: int
    judgments: int

    def remark(self, advice: str) -> tuple[str, ...]:
        """Point out the systems near the random order, if there are any."""
        if self.table["name"].iloc[0] in {one.name for one in self.near}:
            advice = TOO_FEW
        return near_random_remark(self.near, self.floor, str(self.table.columns[1]), self.topics, advice)


def compare(
    rankings: Rankings,
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    floor: pd.DataFrame,
    measures: list[Any] | None = None,
    *,
    floor_name: str = FLOOR,
) -> Comparison:
    """Measure rankings, test them against the first and against a random order."""
    measures = measures or TASK1_MEASURES
    table = measure(rankings, topics, qrels, measures)
    by_topic = measure_by_topic(rankings, topics, qrels, measures)
    chance = floor.groupby("measure")["value"].mean()
    row = pd.DataFrame([{"name": floor_name, **{str(one): chance.get(str(one), math.nan) for one in measures}}])
    main = str(measures[0])
    near = near_random(by_topic[by_topic["measure"] == main], floor[floor["measure"] == main])
    counted = int(topics["qid"].isin(qrels["qid"]).sum())
    return Comparison(
        pd.concat([table, row], ignore_index=True), by_topic, near, float(row[main].iloc[0]), counted, len(qrels)
    )


def near_random(by_topic: pd.DataFrame, floor: pd.DataFrame) -> tuple[NearRandom, ...]:
    """Find the systems that are not significantly above a random order."""
    chance = floor.set_index("qid")["value"]
    names = by_topic["name"].drop_duplicates().tolist()
    near = []
    for name in names:
        own = by_topic[by_topic["name"] == name].set_index("qid")["value"]
        qids = own.index.intersection(chance.index)
        values = own[qids].fillna(0.0).to_numpy(dtype=np.float64)
        outcome = paired_test(values, chance[qids].to_numpy(dtype=np.float64), len(names))
        if not (outcome.significant and outcome.difference > 0):
            near.append(NearRandom(str(name), float(values.mean()), outcome.corrected))
    return tuple(near)


def near_random_remark(
    near: tuple[NearRandom, ...], floor: float, measure: str, topics: int, advice: str
) -> tuple[str, ...]:
    """Write a remark on the systems near a random order; none if there are none."""
    if not near:
        return ()
    named = "; ".join(f"{one.name} {one.value:.4f} (p = {one.p:.2f})" for one in near)
    return (
        f"**Not above a random order** ({SHORT_NAMES.get(measure, measure)} {floor:.4f}): {named}. These do not rank "
        f"significantly better than chance (two-sided paired t-test over {topics} topics, p < {ALPHA:g} after "
        f"Bonferroni over the systems of the table). {advice}",
    )
