"""The scores of Task 3, in which each topic has one answer."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import pandas as pd

from pyterrier_mathamr._common.errors import MathAMRWarning

from .errors import NothingJudgedError


class Task3Scores(NamedTuple):
    """What a run of Task 3 is worth."""

    average_relevance: float  # AR', 0 to 3
    precision_at_1: float  # P'@1, a grade of 2 or 3 counting 1
    judged: int  # topics with a judged answer, over which both are means
    topics: int  # topics of the run


def task3_scores(run: pd.DataFrame, qrels: pd.DataFrame) -> Task3Scores:
    """Compute AR' and P'@1 as the organisers' program does: over the topics that have a judged answer.

    Their program takes the codes 5 and 6 as grade 0: read the judgements with ``failures="zero"`` for its numbers.
    Dropped, as they are elsewhere, such answers are unjudged and their topics left out.

    Args:
        run: ``qid``, ``docno`` and ``score``; of several answers to a topic the first judged one counts, those of
            equal score standing in trec_eval's order.
        qrels: ``qid``, ``docno`` and ``label``.

    Returns:
        Both means, and over how many topics of the run they are.

    Raises:
        NothingJudgedError: no answer of the run is judged.
    """
    judged = run[["qid", "docno", "score"]].merge(qrels[["qid", "docno", "label"]], on=["qid", "docno"])
    first = judged.sort_values(["score", "docno"], ascending=False).drop_duplicates("qid")["label"]
    topics = int(run["qid"].nunique())
    if first.empty:
        raise NothingJudgedError(topics)
    if len(first) < topics:
        text = f"{topics - len(first)} of {topics} topics have no judged answer; the means are over the others"
        warnings.warn(MathAMRWarning(text), stacklevel=2)
    return Task3Scores(float(first.mean()), float((first >= 2).mean()), len(first), topics)
