"""Run systems on topics and measure their rankings."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import RR, R

from pyterrier_mathamr.arqmath import SHORT_NAMES as ARQMATH_NAMES
from pyterrier_mathamr.arqmath import (
    TASK1_MEASURES,
    TASK2_MEASURES,
    ARQMathCollection,
    known_item_qrels,
    known_item_topics,
)

from .topics import Split, TopicSet

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
