"""What rankings are worth: measures, paired tests, random orders, the weight of a fusion, and the time of a query.

Where few documents are judged, the measures of any order are far above 0, so that a system that ranks no better than
chance can look good. Every table has the row of a random order:

* of the judged documents of each topic (:func:`random_floor`), the mean over 200 shuffles with a fixed seed. It ranks
  all of the judged, a system only those that it finds, so a system can be below it;
* of all answers, for known items (:func:`random_known_items`), whose measures are exact expectations.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, NamedTuple

import ir_measures
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt
from ir_measures import RR, R
from scipy import stats

from pyterrier_mathamr._common.errors import MathAMRWarning, MissingExtraError
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.arqmath import SHORT_NAMES as ARQMATH_NAMES
from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.fusion import fit_fusion_weight, fuse_rankings

Rankings = Mapping[str, pd.DataFrame]

KNOWN_ITEM_MEASURES: list[Any] = [RR @ 10, R @ 10]
"""Mean reciprocal rank of the first own answer, and the share of the own answers found, both in the first ten."""

SHORT_NAMES = {**ARQMATH_NAMES, "RR@10": "MRR@10"}
"""The names in papers of the measures of all tasks."""

ALIASES = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
"""Columns of PyTerrier as ``ir_measures`` names them."""


def run_systems(
    systems: Mapping[str, pt.Transformer], topics: pd.DataFrame
) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Search with each system once.

    Args:
        systems: name to a transformer from ``topics`` to a ranking.
        topics: ``qid`` and what the systems need.

    Returns:
        Name to ranking (``qid``, ``docno``, ``score``, ``rank``), and a table of ``name`` and ``ms per query``.
    """
    rankings, costs = {}, []
    for name, system in systems.items():
        start = time.perf_counter()
        ranking = system(topics)
        costs.append((name, 1000 * (time.perf_counter() - start) / max(1, len(topics))))
        rankings[name] = ranking[["qid", "docno", "score", "rank"]]
    return rankings, pd.DataFrame(costs, columns=["name", "ms per query"])


def measure(
    rankings: Rankings, topics: pd.DataFrame, qrels: pd.DataFrame, measures: list[Any] | None = None
) -> pd.DataFrame:
    """Measure rankings, and test each measure against the first ranking.

    The test is the two-sided paired t-test with Bonferroni correction for the number of systems (not of measures).
    Topics without judgments are left out.

    Args:
        rankings: name to ranking; the first is the baseline.
        topics: ``qid``.
        qrels: ``qid``, ``docno``, ``label``.
        measures: of ``ir_measures``; by default those of Task 1.

    Returns:
        A row for each ranking: ``name``, a column for each measure, and for each the topics better (``+``) and worse
        (``-``) than the baseline, ``p-value``, ``reject`` and ``p-value corrected``; measures in the given order. If
        no topic has judgments, ``name`` and measures of NaN.
    """
    measures = measures or TASK1_MEASURES
    names = list(map(str, measures))
    if not topics["qid"].isin(qrels["qid"]).any():
        return pd.DataFrame({"name": list(rankings)}).reindex(columns=["name", *names])
    table = _experiment(rankings, topics, qrels, measures, baseline=0, correction="bonferroni")
    tests = [column for name in names for column in table.columns if str(column).startswith(f"{name} ")]
    ordered: pd.DataFrame = table[["name", *names, *tests]]
    return ordered


def measure_by_topic(
    rankings: Rankings, topics: pd.DataFrame, qrels: pd.DataFrame, measures: list[Any] | None = None
) -> pd.DataFrame:
    """Measure rankings for each topic.

    Args:
        rankings: name to ranking.
        topics: ``qid``.
        qrels: ``qid``, ``docno``, ``label``.
        measures: of ``ir_measures``; by default those of Task 1.

    Returns:
        ``name``, ``qid``, ``measure``, ``value``; rankings, topics and measures in the given order.
    """
    measures = measures or TASK1_MEASURES
    if not topics["qid"].isin(qrels["qid"]).any():
        return pd.DataFrame(columns=["name", "qid", "measure", "value"])
    table = _experiment(rankings, topics, qrels, measures, perquery=True)
    orders = {"measure": map(str, measures), "qid": topics["qid"].drop_duplicates(), "name": rankings}
    places = [pd.Index(list(order)).get_indexer(table[column]) for column, order in orders.items()]
    ordered: pd.DataFrame = table.iloc[np.lexsort(places)].reset_index(drop=True)
    return ordered


def _experiment(
    rankings: Rankings, topics: pd.DataFrame, qrels: pd.DataFrame, measures: list[Any], **options: Any
) -> pd.DataFrame:
    """Run ``pt.Experiment``, whose rows and columns come in the order of a set, which differs between processes."""
    kept = _read_rows(rankings, qrels, measures)
    table: pd.DataFrame = pt.Experiment(
        kept, topics[["qid"]], qrels, measures, names=list(rankings), filter_by_qrels=True, **options
    )
    return table


def _read_rows(rankings: Rankings, qrels: pd.DataFrame, measures: list[Any]) -> list[pd.DataFrame]:
    """Keep the rows that the measures read, a few of a thousand: ir_measures walks through all that it is given."""
    judged = pd.MultiIndex.from_frame(qrels[["qid", "docno"]])
    judged_alone = all(measure.NAME == "Bpref" or measure.params.get("judged_only") for measure in measures)
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    kept = []
    for ranking in rankings.values():
        rows = ranking
        if judged_alone:
            rows = rows[pd.MultiIndex.from_frame(rows[["qid", "docno"]]).isin(judged)]
        elif all(cutoffs):
            scores = rows["score"].astype("float32").groupby(rows["qid"], sort=False)
            rows = rows[scores.rank(method="min", ascending=False) <= max(cutoffs)]
        if rows.empty:  # which PyTerrier refuses; a document that does not exist counts as nothing
            rows = pd.DataFrame({"qid": qrels["qid"].iloc[:1], "docno": "", "score": 0.0, "rank": 0})
        kept.append(rows.astype({"qid": object, "docno": object}))
    return kept


DRAWS = 200
FLOOR = "random order of the judged"
RANDOM_ANSWERS = "random order of all answers"
RANDOM_FORMULAS = "random order of all formulas"
_CUTOFF = 10


def random_floor(qrels: pd.DataFrame, *, draws: int = DRAWS, seed: int = 42) -> pd.DataFrame:
    """Measure random orders of each topic's judged documents."""
    random = np.random.default_rng(seed)
    judged = qrels.rename(columns=ALIASES)
    values = []
    for _ in range(draws):
        run = judged[["query_id", "doc_id"]].assign(score=random.permutation(len(judged)).astype(float))
        found = ir_measures.iter_calc(TASK1_MEASURES, judged, run)
        values.append(pd.Series({(metric.query_id, str(metric.measure)): metric.value for metric in found}))
    names = pd.MultiIndex.from_product([qrels["qid"].drop_duplicates(), map(str, TASK1_MEASURES)])
    mean = pd.Series(sum(values) / draws, name="value").reindex(names)
    table: pd.DataFrame = mean.rename_axis(["qid", "measure"]).reset_index()
    return table


def random_known_items(qrels: pd.DataFrame, documents: int) -> pd.DataFrame:
    """Compute what a random order of all documents has on known items, in expectation."""
    rows: list[tuple[str, str, float]] = []
    depth = min(_CUTOFF, documents)
    reciprocal, recall = map(str, KNOWN_ITEM_MEASURES)
    for qid, right in qrels.groupby("qid", sort=False).size().items():
        orders = math.comb(documents, right)
        places = (math.comb(documents - i, right - 1) / orders / i for i in range(1, depth + 1))
        rows += [(str(qid), reciprocal, sum(places)), (str(qid), recall, depth / documents)]
    table: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "measure", "value"])
    return table


ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The outcome of one test.

    Attributes:
        difference: mean of the first minus mean of the second.
        t: the statistic; NaN if the values of all topics are equal.
        p: two-sided, not corrected.
        corrected: ``p`` times the number of tests of the study, at most 1.
        significant: ``corrected`` is below 0.05.
    """

    difference: float
    t: float
    p: float
    corrected: float
    significant: bool

    NAMES: ClassVar[tuple[str, ...]] = ("difference", "t", "p", "p corrected", "significant")

    def columns(self) -> dict[str, float | bool]:
        """Return the values by their column names, in order."""
        return dict(zip(self.NAMES, astuple(self), strict=True))


def paired_test(values: npt.NDArray[np.float64], baseline: npt.NDArray[np.float64], tests: int) -> PairedTest:
    """Test whether two systems have the same mean over the same topics."""
    difference = values - baseline
    if len(difference) < 2 or not difference.any():
        return PairedTest(float(difference.mean()), math.nan, 1.0, 1.0, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # equal differences: t is infinite, p is 0
        t, p = stats.ttest_rel(values, baseline)
    corrected = min(1.0, float(p) * tests)
    return PairedTest(float(difference.mean()), float(t), float(p), corrected, corrected < ALPHA)


TIMED_QUERIES = 50


class TimedPipeline(NamedTuple):
    """A pipeline in the two stages that are timed.

    Attributes:
        search: from topics, encoded if there is an encoder, to a ranking.
        encode: from topics to encoded topics; ``None`` for a system that reads the text itself, such as BM25.
    """

    search: pt.Transformer
    encode: pt.Transformer | None = None

    @property
    def whole(self) -> pt.Transformer:
        """From the text of topics to a ranking."""
        return self.encode >> self.search if self.encode else self.search


def time_queries(
    pipelines: Mapping[str, TimedPipeline], topics: pd.DataFrame, *, most: int = TIMED_QUERIES
) -> pd.DataFrame:
    """Answer queries one at a time with each system."""
    queries = [topics.iloc[[row]] for row in range(min(most, len(topics)))]
    encoders = {id(way.encode): way.encode for way in pipelines.values() if way.encode is not None}
    encoded = {key: _timed(encoder, queries) for key, encoder in encoders.items()}
    plain = queries, np.zeros(len(queries))
    rows = []
    for name, way in pipelines.items():
        inputs, encoding = encoded[id(way.encode)] if way.encode is not None else plain
        _, searching = _timed(way.search, inputs)
        total = encoding + searching
        if len(queries):
            half, most_of_them = np.percentile(total, (50, 95))
            rows.append((name, len(queries), encoding.mean(), searching.mean(), total.mean(), half, most_of_them))
    columns = ["name", "queries", "encoding ms", "search ms", "ms per query", "p50 ms", "p95 ms"]
    table: pd.DataFrame = pd.DataFrame(rows, columns=columns)
    return table


def _timed(transformer: pt.Transformer, queries: list[pd.DataFrame]) -> tuple[list[pd.DataFrame], np.ndarray]:
    """Transform queries one at a time, and return the results and the milliseconds of each: float64 ``[queries]``."""
    if queries:
        transformer(queries[0])  # opens files and builds what is built on first use
    found, times = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(transformer(query))
        times.append(1000 * (time.perf_counter() - start))
    return found, np.array(times, dtype=np.float64)


Missing = dict[str, MissingExtraError]
"""By system, what is not installed."""


def with_missing(
    table: pd.DataFrame,
    names: Sequence[str],
    missing: Mapping[str, MissingExtraError],
    column: str = "name",
) -> pd.DataFrame:
    """Add a row for each system that an extra is missing for, which says so."""
    said = {name: f"{name}: needs the extra {error.extra}" for name, error in missing.items()}
    rows = pd.concat([table, pd.DataFrame({column: list(said.values())})], ignore_index=True)
    order = {said.get(name, name): place for place, name in enumerate(names)}
    places = rows[column].map(order).fillna(len(order))
    result: pd.DataFrame = rows.iloc[places.argsort(kind="stable")].reset_index(drop=True)
    return result


FEW_JUDGED = "So few answers are judged here that a difference of less than .02 nDCG' means nothing."
WEIGHTS = tuple(step / 20 for step in range(21))


def fusion_weights(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Measure the fusion of two rankings at each weight, for inspection; see :func:`fitted_weight` for the choice."""
    rows = []
    judged = qrels.rename(columns=ALIASES)
    for weight in WEIGHTS:
        run = fuse_rankings(left, right, weight, num_results=10).rename(columns=ALIASES)
        rows.append((weight, ir_measures.calc_aggregate([RR @ 10], judged, run)[RR @ 10]))
    table: pd.DataFrame = pd.DataFrame(rows, columns=["weight", "RR@10"])
    return table


def fitted_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Fit the weight of ``right`` in a fusion; 0.5, with a warning, if the questions do not determine one."""
    try:
        return fit_fusion_weight(left, right, qrels)
    except NothingToFitError as error:
        warnings.warn(f"the fusion weight is 0.5: {error}", MathAMRWarning, stacklevel=2)
        return 0.5


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


class FoundTopics(NamedTuple):
    """What was found for the topics of a year.

    Attributes:
        rankings: by system.
        topics: ``qid``.
        qrels: ``qid``, ``docno``, ``label``.
        floor: ``qid``, ``measure``, ``value`` of the random order.
    """

    rankings: dict[str, pd.DataFrame]
    topics: pd.DataFrame
    qrels: pd.DataFrame
    floor: pd.DataFrame


def pooled(found: Mapping[str, FoundTopics]) -> FoundTopics:
    """Join the topics of several years, which have the same systems."""
    first = next(iter(found.values()))
    return FoundTopics(
        {name: joined({year: one.rankings[name] for year, one in found.items()}) for name in first.rankings},
        joined({year: one.topics for year, one in found.items()}),
        joined({year: one.qrels for year, one in found.items()}),
        joined({year: one.floor for year, one in found.items()}),
    )


def joined(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join frames of several years, whose qids may be the same: each gets its year in front."""
    return pd.concat([frame.assign(qid=f"{year} " + frame["qid"]) for year, frame in frames.items()])
