"""The systems of the comparison, and their table over the measures of Task 1.

What MaxSim counts beside BM25: the measure of each weight, to be looked at.

The weight itself is fitted, see ``systems.fit_fusion_weight``: the first ten results of known items alone often say 0
for a side that helps further down.


The known-item measure: a question looks for its own answers among all answers of the collection.

What chance gives: the judged answers of each topic in random order.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import RR, R

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathCollection, known_item_qrels, known_item_topics
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.systems import ZScoreFusion, fit_fusion_weight, fuse_rankings

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


WEIGHTS = tuple(step / 20 for step in range(21))


def fusion_weights(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Measure the fusion of two rankings with each weight.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        qrels: ``qid``, ``docno``, ``label``.

    Returns:
        ``weight`` (what ``right`` counts, 0 to 1 in steps of 0.05) and ``RR@10``.
    """
    rows = []
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    for weight in WEIGHTS:
        fused = fuse_rankings(left, right, weight, num_results=10)
        run = fused.rename(columns={"qid": "query_id", "docno": "doc_id"})[["query_id", "doc_id", "score"]]
        rows.append((weight, ir_measures.calc_aggregate([RR @ 10], judged, run)[RR @ 10]))
    table: pd.DataFrame = pd.DataFrame(rows, columns=["weight", "RR@10"])
    return table


def fitted_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Fit what ``right`` counts, or say half, with a warning, where the questions cannot tell.

    Args:
        left: ``qid``, ``docno``, ``score``.
        right: the same of the other system.
        qrels: ``qid``, ``docno``, ``label``.
    """
    try:
        return fit_fusion_weight(left, right, qrels)
    except NothingToFitError as error:
        warnings.warn(f"the fusion's weight is 0.5: {error}", MathAMRWarning, stacklevel=2)
        return 0.5


Split = Literal["validation", "test"]

KNOWN_ITEM_MEASURES: list[Any] = [RR @ 10, R @ 10]
"""Mean reciprocal rank of the first own answer, and the share of the own answers found, both in the first ten."""


def evaluate_known_item(
    systems: Mapping[str, pt.Transformer],
    collection: ARQMathCollection,
    split: Split = "test",
) -> pd.DataFrame:
    """Measure systems over the questions of one part of a collection.

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


DRAWS = 200


def random_floor(qrels: pd.DataFrame, *, draws: int = DRAWS, seed: int = 42) -> pd.DataFrame:
    """Measure rankings that hold each topic's judged answers in random order.

    On a part of the release few answers are judged, so that nDCG' is far from 0 whatever the order; this says how far.

    Args:
        qrels: ``qid``, ``docno``, ``label``.
        draws: orders of each topic.
        seed: of the draws.

    Returns:
        ``qid``, ``measure``, ``value``: the mean of each measure of Task 1 over the draws.
    """
    random = np.random.default_rng(seed)
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    total: pd.Series[float] | None = None
    for _ in range(draws):
        run = judged[["query_id", "doc_id"]].assign(score=random.permutation(len(judged)).astype(float))
        found = ir_measures.iter_calc(TASK1_MEASURES, judged, run)
        values = pd.Series({(metric.query_id, str(metric.measure)): metric.value for metric in found})
        total = values if total is None else total + values
    if total is None:
        raise ValueError(f"{draws} draws")
    table: pd.DataFrame = (total / draws).rename("value").rename_axis(["qid", "measure"]).reset_index()
    return table
