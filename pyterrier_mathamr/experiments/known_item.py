"""The known-item measure: a question looks for its own answers among all answers of the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pandas as pd
import pyterrier as pt
from ir_measures import RR, R

from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_qrels, known_item_topics

from .compare import measure, run_systems

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
