"""The measures of ARQMath as declarations.

A prime measure (nDCG', MAP', P') is the plain one after the unjudged documents were taken out, which ``judged_only``
does before the cut-off. Bpref looks at judged documents alone and has no such form. ``rel=2``: a grade of 2 or 3 is
relevant; the judgements themselves stay as they are, since a document judged 0 or 1 is judged.

A topic whose run has no judged document counts 0 in all of them; the C program trec_eval without ``-c`` leaves it out
of the mean. A topic without judgements is left out. Documents of equal score stand in the order of their ids, the
larger id first, whatever their rank says: that is trec_eval's rule. (Judged@10 alone has an order of its own.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from ir_measures import AP, Bpref, Judged, P, define, nDCG

from pyterrier_mathamr._common.errors import MathAMRWarning

from .errors import ARQMathError

if TYPE_CHECKING:
    import pandas as pd

TASK1_MEASURES: list[Any] = [
    nDCG(judged_only=True) @ 1000,
    AP(rel=2, judged_only=True) @ 1000,
    P(rel=2, judged_only=True) @ 10,
    Bpref(rel=2),
]
"""The measures of Task 1: nDCG', MAP' and P'@10, binary ones at grade 2 or better, and Bpref."""

SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    dict(zip(map(str, TASK1_MEASURES), ("nDCG'", "MAP'", "P'@10", "Bpref"), strict=True))
)
"""The names that papers use, by the name that ``ir_measures`` has in tables."""

JUDGED: Any = Judged @ 10
"""The part of the first ten that is judged: how much the prime of the others took out. It is no measure of quality, so
it stands beside them, as in ``[*TASK1_MEASURES, JUDGED]``, and not among those whose differences are tested."""

TASK2_MEASURES: list[Any] = [*TASK1_MEASURES]
"""The measures of Task 2, over visually distinct formulas: of a ranking by ``VisualIdDeduplication``."""


def _first_grades(qrels: pd.DataFrame, run: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Yield the grade of the first judged answer of each judged topic; 0 where there is none."""
    found = run.merge(qrels, on=["query_id", "doc_id"])
    found = found.sort_values(["score", "doc_id"], ascending=False).drop_duplicates("query_id")
    grades = dict(zip(found["query_id"], found["relevance"], strict=True))
    for topic in qrels["query_id"].unique():
        yield topic, float(grades.get(topic, 0))


AVERAGE_RELEVANCE: Any = define(_first_grades, name="AR'", support_cutoff=False)
"""AR', the mean grade, 0 to 3, of each topic's first judged answer (DCG'@1)."""

TASK3_MEASURES: list[Any] = [AVERAGE_RELEVANCE, P(rel=2, judged_only=True) @ 1]
"""The measures of Task 3: AR' and P'@1. A topic without a judged answer counts 0 here; ``task3_scores`` leaves it out,
as the organisers' program does."""


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
        ARQMathError: no answer of the run is judged.
    """
    judged = run[["qid", "docno", "score"]].merge(qrels[["qid", "docno", "label"]], on=["qid", "docno"])
    first = judged.sort_values(["score", "docno"], ascending=False).drop_duplicates("qid")["label"]
    topics = int(run["qid"].nunique())
    if first.empty:
        raise ARQMathError(f"none of {topics} topics has a judged answer; its ids must be those of the qrels (d_1)")
    if len(first) < topics:
        text = f"{topics - len(first)} of {topics} topics have no judged answer; the means are over the others"
        warnings.warn(MathAMRWarning(text), stacklevel=2)
    return Task3Scores(float(first.mean()), float((first >= 2).mean()), len(first), topics)
