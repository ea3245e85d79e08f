"""The systems of the comparison, and their table over the measures of Task 1."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.systems import ZScoreFusion

BASELINE = "BM25"
FUSED = "BM25 + ColBERT-style"

Rankings = Mapping[str, pd.DataFrame]


def search_systems(
    bm25: pt.Transformer,
    encode: pt.Transformer,
    index: MathAMRIndex,
    *,
    num_results: int = 1000,
    candidates: int = 1000,
    weight: float = 0.5,
) -> dict[str, pt.Transformer]:
    """Make the systems of every table: BM25, the strategies of MathAMR+ (section 3.5.2), and both in one.

    Args:
        bm25: queries to a ranking.
        encode: queries to ``query_embs``; ``pt.Transformer.identity()`` where the queries have them.
        index: the answers.
        num_results: length of the rankings.
        candidates: how many the first stage hands to the exact MaxSim, for doc-VN and for BM25.
        weight: what MaxSim counts in the fusion.

    Returns:
        Name to system; the first is the baseline.
    """
    colbert = encode >> index.colbert(num_results=num_results)
    return {
        BASELINE: bm25 % num_results,
        "single vector": encode >> index.single_vector(num_results=num_results),
        "doc-VN + MaxSim": encode >> index.doc_vn(num_results=num_results, candidates=candidates),
        "ColBERT-style": colbert,
        "BM25 >> scorer": (bm25 % candidates) >> encode >> index.scorer(),
        FUSED: ZScoreFusion(bm25 % num_results, colbert, weight=weight, num_results=num_results),
    }


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

    The test is the two-sided paired t-test, corrected after Bonferroni for the number of systems (not of measures).
    Topics without judgements are left out.

    Args:
        rankings: name to ranking; the first is the baseline.
        topics: ``qid``.
        qrels: ``qid``, ``docno``, ``label``.
        measures: of ``ir_measures``; those of Task 1 where not given.

    Returns:
        A row for each ranking: ``name``, a column for each measure, and for each the topics better (``+``) and worse
        (``-``) than the baseline, ``p-value``, ``reject`` and ``p-value corrected``.
    """
    measures = measures or TASK1_MEASURES
    table: pd.DataFrame = pt.Experiment(
        _read_rows(rankings, qrels, measures),
        topics[["qid"]],
        qrels,
        measures,
        names=list(rankings),
        baseline=0,
        correction="bonferroni",
        filter_by_qrels=True,
    )
    first = ["name", *map(str, measures)]  # pt.Experiment gives the measures in the order of a set
    table = table[first + [column for column in table.columns if column not in first]]
    return table


def measure_by_topic(
    rankings: Rankings, topics: pd.DataFrame, qrels: pd.DataFrame, measures: list[Any] | None = None
) -> pd.DataFrame:
    """Measure rankings for each topic.

    Args:
        rankings: name to ranking.
        topics: ``qid``.
        qrels: ``qid``, ``docno``, ``label``.
        measures: of ``ir_measures``; those of Task 1 where not given.

    Returns:
        ``name``, ``qid``, ``measure``, ``value``.
    """
    measures = measures or TASK1_MEASURES
    table: pd.DataFrame = pt.Experiment(
        _read_rows(rankings, qrels, measures),
        topics[["qid"]],
        qrels,
        measures,
        names=list(rankings),
        perquery=True,
        filter_by_qrels=True,
    )
    return table


def _read_rows(rankings: Rankings, qrels: pd.DataFrame, measures: list[Any]) -> list[pd.DataFrame]:
    """Keep of each ranking the rows that the measures read, which are a few of a thousand: ir_measures walks them all.

    Where no measure reads unjudged documents, these go. Where all have a cutoff, what cannot be above it goes: a row
    that at least so many of its query have a higher score than, as trec_eval compares scores, in single precision. Ids
    become plain objects, which ir_measures walks through twice as fast.
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
