"""What a trained model finds: each measure of each topic by each strategy, and the time of single queries."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.experiments.compare import measure_by_topic, run_systems
from pyterrier_mathamr.experiments.fusion_weight import fitted_weight
from pyterrier_mathamr.experiments.known_item import KNOWN_ITEM_MEASURES
from pyterrier_mathamr.experiments.stages import write_whole
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.systems import ZScoreFusion, fuse_rankings

from .job import Job
from .materials import KNOWN_ITEM, Materials, TopicSet
from .strategies import BM25, COLBERT, FUSION, STRATEGIES

TIMED_QUERIES = 50


def measure_job(job: Job, materials: Materials, model: MathAMR, index: MathAMRIndex) -> None:
    """Search with each strategy and write the values by topic, and the times of single queries.

    Args:
        job: says with what, and where the files go.
        materials: topics and judgements.
        model: encodes the queries.
        index: the answers' vectors.
    """
    bm25 = materials.bm25
    systems = {
        name: STRATEGIES[name].system(index, bm25, job.depth)
        for name in job.measured_strategies
        if STRATEGIES[name].way != "fusion"
    }
    weights = _fusion_weights(job, systems, materials.questions("validation"), model)
    parts, encoded = [], []
    for name in (KNOWN_ITEM, *job.years):
        found = materials.questions("test") if name == KNOWN_ITEM else materials.topics(name)
        topics = _encoded(found, model, job.device)
        rankings = _rankings(systems, weights, topics, job)
        measures = KNOWN_ITEM_MEASURES if name == KNOWN_ITEM else TASK1_MEASURES
        parts.append(measure_by_topic(rankings, topics, found.qrels, measures).assign(topics=name))
        encoded.append(topics)
    fused = {
        name: ZScoreFusion(systems[BM25], systems[COLBERT], weight=weight, num_results=job.depth.results)
        for name, weight in weights.items()
    }
    write_whole(job.speed, _speed({**systems, **fused}, pd.concat(encoded[1:], ignore_index=True)).to_csv(index=False))
    table = pd.concat(parts, ignore_index=True).rename(columns={"name": "system"}).fillna({"value": 0.0})
    write_whole(job.measured, table[["topics", "system", "qid", "measure", "value"]].to_csv(index=False))


def _encoded(found: TopicSet, model: MathAMR, device: str | None) -> pd.DataFrame:
    """Encode topics from their stored graphs."""
    frame: pd.DataFrame = (found.graphs.loader(side="query") >> model.query_encoder(device=device))(found.topics)
    encoded: pd.DataFrame = frame.drop(columns="query_graph")
    return encoded


def _fusion_weights(
    job: Job, systems: Mapping[str, pt.Transformer], questions: TopicSet, model: MathAMR
) -> dict[str, float]:
    """Say what MaxSim counts in each fusion: half, or what fits the validation questions."""
    weights = {name: 0.5 for name in job.measured_strategies if STRATEGIES[name].way == "fusion"}
    if FUSION in weights:
        topics = _encoded(questions, model, job.device)
        found, _ = run_systems({name: systems[name] for name in (BM25, COLBERT)}, topics)
        weights[FUSION] = fitted_weight(found[BM25], found[COLBERT], questions.qrels)
    return weights


def _rankings(
    systems: Mapping[str, pt.Transformer], weights: Mapping[str, float], topics: pd.DataFrame, job: Job
) -> dict[str, pd.DataFrame]:
    """Search with each system once and fuse what was found."""
    found, _ = run_systems(systems, topics)
    for name, weight in weights.items():
        found[name] = fuse_rankings(found[BM25], found[COLBERT], weight, job.depth.results)
    return found


def _speed(systems: Mapping[str, pt.Transformer], topics: pd.DataFrame) -> pd.DataFrame:
    """Search with single encoded queries: queries per second, and the time that half and 95 % of them stay under.

    Args:
        systems: from queries with ``query_embs`` to a ranking.
        topics: at most the first :data:`TIMED_QUERIES` are used.

    Returns:
        ``system``, ``queries``, ``queries per second``, ``p50 ms``, ``p95 ms``.
    """
    queries = [topics.iloc[[row]] for row in range(min(TIMED_QUERIES, len(topics)))]
    rows = []
    for name, system in systems.items():
        system(queries[0])  # opens files and builds what is built on first use
        times = []
        for query in queries:
            start = time.perf_counter()
            system(query)
            times.append(1000 * (time.perf_counter() - start))
        half, most = np.percentile(times, (50, 95))
        rows.append((name, len(times), 1000 * len(times) / sum(times), half, most))
    table: pd.DataFrame = pd.DataFrame(rows, columns=["system", "queries", "queries per second", "p50 ms", "p95 ms"])
    return table
