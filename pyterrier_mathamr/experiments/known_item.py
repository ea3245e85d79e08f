"""The known-item measure: a question looks for its own answers among all answers of the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pandas as pd
import pyterrier as pt
from ir_measures import RR, R

from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_qrels, known_item_topics

Split = Literal["validation", "test"]

KNOWN_ITEM_MEASURES: list[Any] = [RR @ 10, R @ 10]
"""Mean reciprocal rank of the first own answer, and the share of the own answers found, both in the first ten."""


def known_item_table(
    systems: Mapping[str, pt.Transformer], topics: pd.DataFrame, qrels: pd.DataFrame, *, verbose: bool = False
) -> pd.DataFrame:
    """Measure how well systems find the answers of questions.

    Args:
        systems: name to a transformer from ``topics`` to a ranking of answers.
        topics: ``qid`` and what the systems need.
        qrels: ``qid``, ``docno``, ``label`` of the own answers; topics without any are left out.
        verbose: show a progress bar.

    Returns:
        A row for each system: ``name``, ``RR@10``, ``R@10``.
    """
    table: pd.DataFrame = pt.Experiment(
        list(systems.values()),
        topics,
        qrels,
        KNOWN_ITEM_MEASURES,
        names=list(systems),
        filter_by_qrels=True,
        verbose=verbose,
    )
    return table


def evaluate_known_item(
    systems: Mapping[str, pt.Transformer],
    collection: ARQMathCollection,
    split: Split = "test",
    *,
    verbose: bool = False,
) -> pd.DataFrame:
    """Measure systems over the questions of one part of a collection.

    Args:
        systems: name to a transformer from ``qid``, ``query``, ``title``, ``body`` to a ranking of the answers.
        collection: a local ARQMath folder.
        split: ``validation`` to choose by, ``test`` to report.
        verbose: show a progress bar.

    Returns:
        A row for each system: ``name``, ``RR@10``, ``R@10``.
    """
    topics = known_item_topics(collection.questions(), split)
    return known_item_table(systems, topics, known_item_qrels(collection.pairs(), split), verbose=verbose)
