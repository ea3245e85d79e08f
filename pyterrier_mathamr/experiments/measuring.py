"""Run systems on topics and measure their rankings, random orders, and fusions at each weight."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import RR, R

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.arqmath import (
    TASK1_MEASURES,
    TASK2_MEASURES,
    ARQMathCollection,
    known_item_qrels,
    known_item_topics,
)
from pyterrier_mathamr.systems import fit_fusion_weight, fuse_rankings

from .topics import Split, TopicSet

Rankings = Mapping[str, pd.DataFrame]

KNOWN_ITEM_MEASURES: list[Any] = [RR @ 10, R @ 10]
"""Mean reciprocal rank of the first own answer, and the share of the own answers found, both in the first ten."""

WEIGHTS = tuple(step / 20 for step in range(21))
DRAWS = 200
_ALIASES = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}


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
    Topics without judgements are left out.

    Args:
        rankings: name to ranking; the first is the baseline.
        topics: ``qid``.
        qrels: ``qid``, ``docno``, ``label``.
        measures: of ``ir_measures``; by default those of Task 1.

    Returns:
        A row for each ranking: ``name``, a column for each measure, and for each the topics better (``+``) and worse
        (``-``) than the baseline, ``p-value``, ``reject`` and ``p-value corrected``; measures in the given order. If
        no topic has judgements, ``name`` and measures of NaN.
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


def measured_formulas(rankings: Rankings, found: TopicSet) -> pd.DataFrame:
    """Measure rankings of formulas: ``system``, ``qid``, ``measure``, ``value``."""
    table = measure_by_topic(rankings, found.topics, found.qrels, TASK2_MEASURES).rename(columns={"name": "system"})
    return table.fillna({"value": 0.0})


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
    """Keep the rows that the measures read, a few of a thousand: ir_measures walks through all that it is given.

    If every measure reads judged documents only, the others are dropped. If every measure has a cutoff, so is each row
    with at least that many higher scores in its query; scores are compared in single precision, as trec_eval does. Ids
    become plain objects, which ir_measures reads twice as fast.
    """
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
        kept.append(rows.astype({"qid": object, "docno": object}))
    return kept


def evaluate_known_item(
    systems: Mapping[str, pt.Transformer], collection: ARQMathCollection, split: Split = "test"
) -> pd.DataFrame:
    """Measure how well the questions of one part of a collection find their own answers among all answers.

    Args:
        systems: name to a transformer from ``qid``, ``query``, ``title``, ``body`` to a ranking of the answers.
        collection: a local ARQMath folder.
        split: ``validation`` to choose by, ``test`` to report.

    Returns:
        A row for each system: ``name``, ``RR@10``, ``R@10``, and their tests against the first system; see
        :func:`~pyterrier_mathamr.experiments.measure`.
    """
    topics = known_item_topics(collection.questions(), split)
    rankings, _ = run_systems(systems, topics)
    return measure(rankings, topics, known_item_qrels(collection.pairs(), split), KNOWN_ITEM_MEASURES)


def random_floor(qrels: pd.DataFrame, *, draws: int = DRAWS, seed: int = 42) -> pd.DataFrame:
    """Measure random orders of each topic's judged documents.

    In a part of the release few documents are judged, so that nDCG' is far above 0 for any order; this is how far.

    Args:
        qrels: ``qid``, ``docno``, ``label``.
        draws: orders of each topic, at least 1.
        seed: of the random generator.

    Returns:
        ``qid``, ``measure``, ``value``: the mean of each measure of Task 1 over the draws.
    """
    random = np.random.default_rng(seed)
    judged = qrels.rename(columns=_ALIASES)
    values = []
    for _ in range(draws):
        run = judged[["query_id", "doc_id"]].assign(score=random.permutation(len(judged)).astype(float))
        found = ir_measures.iter_calc(TASK1_MEASURES, judged, run)
        values.append(pd.Series({(metric.query_id, str(metric.measure)): metric.value for metric in found}))
    names = pd.MultiIndex.from_product([qrels["qid"].drop_duplicates(), map(str, TASK1_MEASURES)])
    mean = pd.Series(sum(values) / draws, name="value").reindex(names)
    table: pd.DataFrame = mean.rename_axis(["qid", "measure"]).reset_index()
    return table


def fusion_weights(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Measure the fusion of two rankings at each weight, for inspection; see :func:`fitted_weight` for the choice.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        qrels: ``qid``, ``docno``, ``label``.

    Returns:
        ``weight`` (of ``right``, 0 to 1 in steps of 0.05) and ``RR@10``.
    """
    rows = []
    judged = qrels.rename(columns=_ALIASES)
    for weight in WEIGHTS:
        run = fuse_rankings(left, right, weight, num_results=10).rename(columns=_ALIASES)
        rows.append((weight, ir_measures.calc_aggregate([RR @ 10], judged, run)[RR @ 10]))
    table: pd.DataFrame = pd.DataFrame(rows, columns=["weight", "RR@10"])
    return table


def fitted_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Fit the weight of ``right`` in a fusion; 0.5, with a warning, if the questions do not determine one.

    ``systems.fit_fusion_weight`` reads whole rankings: the first ten results of known items alone often choose 0 for a
    side that helps further down.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        qrels: ``qid``, ``docno``, ``label``.
    """
    try:
        return fit_fusion_weight(left, right, qrels)
    except NothingToFitError as error:
        warnings.warn(f"the fusion weight is 0.5: {error}", MathAMRWarning, stacklevel=2)
        return 0.5
