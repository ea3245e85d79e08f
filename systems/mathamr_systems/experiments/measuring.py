"""Evaluation of rankings: measures, paired tests, tables of both, random orders, and query times.

If few documents are judged, the measures of any order are far above 0, so a system that ranks no better than
chance can look good. Every table has a row for a random order:

* of the judged documents of each topic (:func:`random_floor`), the mean over 200 shuffles with a fixed seed. It ranks
  all judged documents, a system only the ones that it finds, so a system can be below it;
* of all answers, for known items (:func:`random_known_items`), whose measures are exact expectations.

All tables come from one form of values: ``name``, ``qid`` (of several years with the year in front, ``2020 A.1``),
``measure``, ``value``, and ``seed`` where systems are trained with several.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt
from ir_measures import RR, R
from scipy import stats

from pyterrier_mathamr.arqmath import JUDGED, TASK1_MEASURES, ARQMathError, Qrel, read_qrels, read_run, strictly
from pyterrier_mathamr.arqmath import SHORT_NAMES as ARQMATH_NAMES
from pyterrier_mathamr.extending import (
    PAPER_NAMES,
    MathAMRWarning,
    MissingExtraError,
    NothingToFitError,
    ignored_warnings,
)
from pyterrier_mathamr.fusion import fit_fusion_weight

Rankings = Mapping[str, pd.DataFrame]
Missing = dict[str, MissingExtraError]
"""The missing extra of each system that cannot run."""

KNOWN_ITEM_MEASURES: list[Any] = [RR @ 10, R @ 10]
"""Mean reciprocal rank of the first own answer, and the share of the own answers found, both in the first ten."""
DEFAULT_MEASURES: Mapping[str, Any] = {
    **dict(zip(ARQMATH_NAMES.values(), TASK1_MEASURES, strict=True)),
    "Judged@10": JUDGED,
}
"""The measures of Task 1 by their names in papers, and how many of the first ten are judged."""
FEW_JUDGED = "So few answers are judged here that a difference of less than .02 nDCG' means nothing."
TOO_FEW = (
    "As the baseline is among them, the topics or judgments are too few to distinguish systems: use more years "
    "(`--years`) or a larger part of the release."
)


def run_systems(
    systems: Mapping[str, pt.Transformer], topics: pd.DataFrame
) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Search with each system once: rankings by name, and a table of ``name`` and ``ms per query``."""
    rankings, costs = {}, []
    for name, system in systems.items():
        start = time.perf_counter()
        ranking = system(topics)
        costs.append((name, 1000 * (time.perf_counter() - start) / max(1, len(topics))))
        rankings[name] = ranking[["qid", "docno", "score", "rank"]]
    return rankings, pd.DataFrame(costs, columns=["name", "ms per query"])


# Measures ------------------------------------------------------------------------------------------------------------


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
        measures: of ``ir_measures``; by default the measures of Task 1.

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
    """Measure rankings for each topic: ``name``, ``qid``, ``measure``, ``value``, each in the given order."""
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
    """Run ``pt.Experiment``, whose rows and columns come in the order of a set, which differs between processes.

    Rows that no measure reads are dropped first, since ir_measures loops over every row.
    """
    judged = pd.MultiIndex.from_frame(qrels[["qid", "docno"]])
    judged_only = all(measure.NAME == "Bpref" or measure.params.get("judged_only") for measure in measures)
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    kept = []
    for ranking in rankings.values():
        rows = ranking
        if judged_only:
            rows = rows[pd.MultiIndex.from_frame(rows[["qid", "docno"]]).isin(judged)]
        elif all(cutoffs):
            scores = rows["score"].astype("float32").groupby(rows["qid"], sort=False)
            rows = rows[scores.rank(method="min", ascending=False) <= max(cutoffs)]
        if rows.empty:  # which PyTerrier refuses; a document that does not exist counts as nothing
            rows = pd.DataFrame({"qid": qrels["qid"].iloc[:1], "docno": "", "score": 0.0, "rank": 0})
        kept.append(rows.astype({"qid": object, "docno": object}))
    table: pd.DataFrame = pt.Experiment(
        kept, topics[["qid"]], qrels, measures, names=list(rankings), filter_by_qrels=True, **options
    )
    return table


# Tests and tables ----------------------------------------------------------------------------------------------------

ALPHA = 0.05


class PairedTest(NamedTuple):
    """The outcome of one test; ``t`` is NaN if the values of all topics are equal."""

    difference: float  # mean of the first minus mean of the second
    t: float
    p: float  # two-sided, not corrected
    corrected: float  # p times the number of tests, at most 1
    significant: bool


TEST_COLUMNS = ("difference", "t", "p", "p corrected", "significant")
"""The fields of :class:`PairedTest` in tables."""


def paired_test(values: npt.NDArray[np.float64], baseline: npt.NDArray[np.float64], tests: int) -> PairedTest:
    """Test whether two systems have the same mean over the same topics."""
    difference = values - baseline
    if len(difference) < 2 or not difference.any():
        return PairedTest(float(difference.mean()), math.nan, 1.0, 1.0, False)
    with ignored_warnings(RuntimeWarning):  # equal differences: t is infinite, p is 0
        t, p = stats.ttest_rel(values, baseline)
    corrected = min(1.0, float(p) * tests)
    return PairedTest(float(difference.mean()), float(t), float(p), corrected, corrected < ALPHA)


def paired_tests(
    values: pd.DataFrame, pairs: Sequence[tuple[str, str]], measure: str, number: int | None = None
) -> pd.DataFrame:
    """Run a paired test of each pair of systems by one measure, with p corrected for ``number`` tests, or all pairs.

    The values of a topic are averaged over the seeds first, so that each topic enters a test once.
    """
    of_measure = values[values["measure"] == measure].astype({"value": "float64"}).fillna({"value": 0.0})
    wide = of_measure.pivot_table(index="qid", columns="name", values="value")
    rows = [
        (name, other, *paired_test(wide[name].to_numpy(), wide[other].to_numpy(), number or len(pairs)))
        for name, other in pairs
    ]
    return pd.DataFrame(rows, columns=["system", "against", *TEST_COLUMNS])


def means_table(
    values: pd.DataFrame, names: Sequence[str], measures: Sequence[str], *, years: Sequence[str] = ()
) -> pd.DataFrame:
    """Average over topics: a row for each name, with the first measure of each of several years.

    Spreads are ``error``, the standard error over topics; or ``std``, the deviation over the seeds, where there are
    such.
    """
    seeds = "seed" in values.columns
    spread = "std" if seeds else "error"
    of_name = dict(list(values.astype({"value": "float64"}).groupby("name", sort=False)))
    rows = []
    for name in names:
        of_system = of_name.get(name, values.iloc[:0])
        row: dict[str, object] = {"name": name}
        for year in years if len(years) > 1 else ():
            of_year = of_system[(of_system["measure"] == measures[0]) & of_system["qid"].str.startswith(f"{year} ")]
            by_seed = of_year.groupby("seed")["value"].mean() if seeds else of_year["value"]
            row[f"{PAPER_NAMES[measures[0]]} {year}"] = float(by_seed.mean())
        for measure in measures:
            of_measure = of_system[of_system["measure"] == measure]
            means = (
                of_measure.pivot(index="qid", columns="seed", values="value").mean() if seeds else of_measure["value"]
            )
            row[measure] = float(means.mean())
            row[f"{measure} {spread}"] = float(means.std()) / math.sqrt(1 if seeds else max(1, len(means)))
        rows.append(row)
    return pd.DataFrame(rows)


def rounded(tests: pd.DataFrame) -> pd.DataFrame:
    """Round differences to four places; a report writes smaller numbers like p, as ``< 0.0001``."""
    return tests.assign(difference=tests["difference"].astype(float).round(4))


def with_missing(
    table: pd.DataFrame, names: Sequence[str], missing: Mapping[str, MissingExtraError], column: str = "name"
) -> pd.DataFrame:
    """Add a row for each system with a missing extra, which names the extra."""
    said = {name: f"{name}: needs the extra {error.extra}" for name, error in missing.items()}
    rows = pd.concat([table, pd.DataFrame({column: list(said.values())})], ignore_index=True)
    order = {said.get(name, name): place for place, name in enumerate(names)}
    places = rows[column].map(order).fillna(len(order))
    result: pd.DataFrame = rows.iloc[places.argsort(kind="stable")].reset_index(drop=True)
    return result


def not_measured(missing: Missing) -> list[str]:
    return [f"**Not measured**: {name}. {error}" for name, error in missing.items()]


def stars(baseline: str, tests: str) -> str:
    return f"A star: differs from {baseline} (two-sided paired t-test, p < 0.05 after Bonferroni over {tests})."


# Random orders -------------------------------------------------------------------------------------------------------

DRAWS = 200
FLOOR = "random order of the judged"
RANDOM_ANSWERS = "random order of all answers"
_CUTOFF = 10


def random_floor(qrels: pd.DataFrame, measures: list[Any] | None = None, *, draws: int = DRAWS) -> pd.DataFrame:
    """Measure random orders of each topic's judged documents: ``qid``, ``measure``, ``value``."""
    measures, random = measures or TASK1_MEASURES, np.random.default_rng(42)
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    evaluator, sums = ir_measures.evaluator(measures, judged), defaultdict[tuple[str, str], float](float)
    for _ in range(draws):
        run = judged[["query_id", "doc_id"]].assign(score=random.permutation(len(judged)).astype(float))
        for metric in evaluator.iter_calc(run):
            sums[metric.query_id, str(metric.measure)] += metric.value
    names = pd.MultiIndex.from_product([qrels["qid"].drop_duplicates(), map(str, measures)])
    mean = (pd.Series(sums, name="value") / draws).reindex(names)
    table: pd.DataFrame = mean.rename_axis(["qid", "measure"]).reset_index()
    return table


def random_known_items(qrels: pd.DataFrame, documents: int) -> pd.DataFrame:
    """Compute the expected measures of a random order of all documents on known items."""
    rows: list[tuple[str, str, float]] = []
    depth = min(_CUTOFF, documents)
    reciprocal, recall = map(str, KNOWN_ITEM_MEASURES)
    for qid, right in qrels.groupby("qid", sort=False).size().items():
        orders = math.comb(documents, right)
        places = (math.comb(documents - i, right - 1) / orders / i for i in range(1, depth + 1))
        rows += [(str(qid), reciprocal, sum(places)), (str(qid), recall, depth / documents)]
    table: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "measure", "value"])
    return table


def near_random(
    values: pd.DataFrame, floor: pd.DataFrame, measure: str, advice: str, baseline: str | None = None
) -> tuple[str, ...]:
    """Write a remark with advice on the systems that are not significantly above a random order; none if all are.

    If the baseline is among them, the advice is to take more topics. All values are of one measure.
    """
    chance = floor.set_index("qid")["value"]
    names = values["name"].drop_duplicates().tolist()
    near: dict[str, str] = {}
    for name in names:
        of_system = values[values["name"] == name].set_index("qid")["value"]
        qids = of_system.index.intersection(chance.index)
        values_found = of_system[qids].fillna(0.0).to_numpy(dtype=np.float64)
        test = paired_test(values_found, chance[qids].to_numpy(dtype=np.float64), len(names))
        if not (test.significant and test.difference > 0):
            near[name] = f"{name} {values_found.mean():.4f} (p = {test.corrected:.2f})"
    if not near:
        return ()
    return (
        f"**Not above a random order** ({PAPER_NAMES.get(measure, measure)} {chance.mean():.4f}): "
        f"{'; '.join(near.values())}. These do not rank significantly better than chance (two-sided paired t-test over "
        f"{len(chance)} topics, p < {ALPHA:g} after Bonferroni over the systems of the table). "
        f"{TOO_FEW if baseline in near else advice}",
    )


# Comparisons of a task -----------------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """Measures of systems and of a random order."""

    table: pd.DataFrame  # as measure(), and the random order in the last row
    baseline: str  # the name of the row that all are tested against
    by_topic: pd.DataFrame  # name, qid, measure, value
    floor: pd.DataFrame  # qid, measure, value of the random order
    topics: int  # tested ones
    judgments: int

    def remark(self, advice: str) -> tuple[str, ...]:
        """Point out the systems near the random order by the first measure, if there are any."""
        main = str(self.table.columns[1])
        values, floor = (frame[frame["measure"] == main] for frame in (self.by_topic, self.floor))
        return near_random(values, floor, main, advice, self.baseline)


def compare(
    rankings: Rankings,
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    floor: pd.DataFrame,
    measures: list[Any] | None = None,
    *,
    floor_name: str = FLOOR,
    baselines: Sequence[str] = (),
) -> Comparison:
    """Measure rankings, test them against the first or the best of some, and put the random order below them."""
    measures = measures or TASK1_MEASURES
    by_topic = measure_by_topic(rankings, topics, qrels, measures)
    baseline = best_of(by_topic, [name for name in baselines if name in rankings] or list(rankings)[:1], measures[0])
    others = {name: ranking for name, ranking in rankings.items() if name != baseline}
    tested = measure({baseline: rankings[baseline], **others}, topics, qrels, measures)
    chance = floor.groupby("measure")["value"].mean()
    row = pd.DataFrame([{"name": floor_name, **{str(one): chance.get(str(one), math.nan) for one in measures}}])
    in_order = tested.set_index("name").loc[list(rankings)].reset_index()
    table = pd.concat([in_order, row], ignore_index=True)
    return Comparison(table, baseline, by_topic, floor, int(topics["qid"].isin(qrels["qid"]).sum()), len(qrels))


def best_of(values: pd.DataFrame, names: Sequence[str], measure: Any) -> str:
    """Return the system with the highest mean of a measure, of equal ones the first."""
    of_measure = values[values["measure"] == str(measure)].astype({"value": "float64"}).fillna({"value": 0.0})
    means = of_measure.groupby("name")["value"].mean().to_dict()
    return max(names, key=lambda name: means.get(name, 0.0))


class FoundTopics(NamedTuple):
    """The results for the topics of a year."""

    rankings: dict[str, pd.DataFrame]
    topics: pd.DataFrame  # qid
    qrels: pd.DataFrame  # qid, docno, label
    floor: pd.DataFrame  # qid, measure, value of the random order


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


def fitted_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Fit the weight of ``right`` in a fusion; 0.5, with a warning, if the questions do not determine one."""
    try:
        return fit_fusion_weight(left, right, qrels)
    except NothingToFitError as error:
        warnings.warn(f"the fusion weight is 0.5: {error}", MathAMRWarning, stacklevel=2)
        return 0.5


# Times ---------------------------------------------------------------------------------------------------------------

TIMED_QUERIES = 50


class TimedPipeline(NamedTuple):
    """A pipeline in the two stages that are timed; without an encoder, ``search`` reads the text itself, as BM25."""

    search: pt.Transformer
    encode: pt.Transformer | None = None

    @property
    def whole(self) -> pt.Transformer:
        """From the text of topics to a ranking."""
        return self.encode >> self.search if self.encode else self.search


def time_queries(
    pipelines: Mapping[str, TimedPipeline], topics: pd.DataFrame, *, most: int = TIMED_QUERIES
) -> pd.DataFrame:
    """Answer queries one at a time with each system; systems that share an encoder encode each query once."""
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
        transformer(queries[0])  # opens files and builds everything that is built on first use
    results, times = [], []
    for query in queries:
        start = time.perf_counter()
        results.append(transformer(query))
        times.append(1000 * (time.perf_counter() - start))
    return results, np.array(times, dtype=np.float64)


# Run files -----------------------------------------------------------------------------------------------------------


class Evaluation(NamedTuple):
    """The measures of several runs over the topics that are judged."""

    means: pd.DataFrame  # a row for each run: name and a column for each measure
    tests: pd.DataFrame  # of each run and measure against the baseline: name, measure, better, worse and the test
    by_topic: pd.DataFrame  # name, qid, measure, value
    topics: int  # judged ones
    missing: dict[str, list[str]]  # by run, the judged topics that it does not have; each counts 0


def read_rankings(files: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
    """Read run files by name; a line that cannot be read, or a file without a ranking, is an ``ARQMathError``."""
    rankings = {name: strictly(lambda path=path: read_run(path)) for name, path in files.items()}  # type: ignore[misc]
    for name, ranking in rankings.items():
        if ranking.empty:
            raise ARQMathError(f"{files[name]}: it holds no ranking; give a run in TREC's or ARQMath's format")
    return rankings


def read_judgments(path: Path) -> pd.DataFrame:
    """Read a file of judgments: ``qid``, ``docno``, ``label``; no judgment is an ``ARQMathError``."""
    judgments = strictly(lambda: qrels_frame(read_qrels(path)))
    if judgments.empty:
        raise ARQMathError(f"{path}: it holds no judgment; give lines of topic, iteration, id and grade")
    return judgments


def qrels_frame(qrels: Iterable[Qrel]) -> pd.DataFrame:
    """Make a frame of judgments: ``qid``, ``docno``, ``label``."""
    rows = [(row.query_id, row.doc_id, row.relevance) for row in qrels]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def evaluate_runs(
    rankings: Rankings,
    qrels: pd.DataFrame,
    measures: Mapping[str, Any] = DEFAULT_MEASURES,
    *,
    baseline: str | None = None,
) -> Evaluation:
    """Measure rankings over all judged topics, including topics that a ranking lacks.

    Measures have their displayed names; each ranking is tested against the baseline.
    """
    judged = qrels["qid"].drop_duplicates()
    missing = {name: judged[~judged.isin(ranking["qid"])].tolist() for name, ranking in rankings.items()}
    for name, ranking in rankings.items():
        if len(missing[name]) == len(judged):
            found, asked = ranking["qid"].iloc[0], judged.iloc[0]
            raise ARQMathError(f"{name}: none of its topics is judged; it has {found!r}, the judgments have {asked!r}")
    _warn_of_judgments(rankings, qrels, measures)
    chosen = list(measures.values())
    by_topic = measure_by_topic(rankings, pd.DataFrame({"qid": judged}), qrels, chosen)
    by_topic["measure"] = by_topic["measure"].map(dict(zip(map(str, chosen), measures, strict=True)))
    names = list(dict.fromkeys([*([baseline] if baseline else []), *rankings]))
    values = by_topic.fillna({"value": 0.0})
    means = means_table(values, names, list(measures))[["name", *measures]]
    tested = [name for name, each in measures.items() if str(each) != str(JUDGED)]
    tests = _tests_of_runs(values, names, tested) if baseline else pd.DataFrame()
    return Evaluation(means, tests, by_topic, len(judged), missing)


def _tests_of_runs(values: pd.DataFrame, names: Sequence[str], measures: Sequence[str]) -> pd.DataFrame:
    """Test each ranking against the first on each measure, corrected for the number of rankings."""
    first, *others = names
    tables = []
    for each in measures:
        wide = values[values["measure"] == each].pivot(index="qid", columns="name", values="value")
        tests = paired_tests(values, [(name, first) for name in others], each).rename(columns={"system": "name"})
        better = {"better": wide.gt(wide[first], axis=0).sum(), "worse": wide.lt(wide[first], axis=0).sum()}
        tests = tests.assign(measure=each, **{how: counts[others].to_numpy() for how, counts in better.items()})
        tables.append(tests[["name", "measure", "better", "worse", *TEST_COLUMNS]])
    return pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)  # the measures of each ranking together


def _warn_of_judgments(rankings: Rankings, qrels: pd.DataFrame, measures: Mapping[str, Any]) -> None:
    """Warn of rankings of another collection, and of measures that take grades as relevant that no document has."""
    for name, ranking in rankings.items():
        if not ranking["docno"].isin(qrels["docno"]).any():
            found, judged = ranking["docno"].iloc[0], qrels["docno"].iloc[0]
            text = f"{name}: none of its documents is judged; it has {found!r}, the judgments have {judged!r}"
            warnings.warn(MathAMRWarning(text), stacklevel=3)
    best = int(qrels["label"].max())
    if zero := [name for name, measure in measures.items() if measure.params.get("rel", 1) > best]:
        text = (
            f"{', '.join(zero)} can only be 0: the best grade of these judgments is {best}, and grades of 2 or more "
            "are relevant. For judgments without grades choose measures such as AP and P@10"
        )
        warnings.warn(MathAMRWarning(text), stacklevel=3)
