"""The measures of ARQMath as declarations, and the scores of Task 3 as the organisers compute them.

A prime measure (nDCG', MAP', P') is the plain measure after the removal of unjudged documents: ``judged_only``, which
precedes the cutoff. Bpref uses judged documents only and needs no such form. ``rel=2``: grades 2 and 3 are relevant;
the judgments are not filtered, as a document of grade 0 or 1 is judged.

A topic without a judged document in the run scores 0; trec_eval without ``-c`` leaves it out of the mean. A topic
without judgments is left out. Ties in score are ordered by document id, descending, regardless of the rank, as in
trec_eval. (Judged@10 has an order of its own.)
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import ir_measures
import pandas as pd
from ir_measures import AP, Bpref, Judged, P, define, nDCG

from pyterrier_mathamr._common.errors import MathAMRWarning

from .errors import ARQMathError

_ONE_JUDGMENT = [ir_measures.Qrel("1", "d", 1)]  # to ask whether a measure can be computed
_ORDER = ("nDCG", "AP", "P", "Bpref", "Judged")


def _ordered(measure: Any) -> Any:
    """Return an equal measure whose place in a set does not depend on the hash seed of the process."""
    kind = type(measure)
    changed = {
        "__hash__": lambda self: _ORDER.index(self.NAME),
        "__reduce__": lambda self: (_ordered, (kind(**self.params),)),
    }
    return type(kind.__name__, (kind,), changed)(**measure.params)


TASK1_MEASURES: list[Any] = [
    _ordered(nDCG(judged_only=True) @ 1000),
    _ordered(AP(rel=2, judged_only=True) @ 1000),
    _ordered(P(rel=2, judged_only=True) @ 10),
    _ordered(Bpref(rel=2)),
]
"""The measures of Task 1: nDCG', MAP', P'@10 and Bpref; binary measures take grades 2 and 3 as relevant."""

SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    dict(zip(map(str, TASK1_MEASURES), ("nDCG'", "MAP'", "P'@10", "Bpref"), strict=True))
)
"""The names in papers by the names of ``ir_measures``."""

_PRIME = re.compile(r"(\w+)'(@\d+)?")
_OTHER_NAMES = {"MAP": "AP", "MRR": "RR"}


def parse_measure(name: str) -> Any:
    """Return the measure of a name.

    Args:
        name: as papers have it (``nDCG'``, ``MAP'``, ``P'@10``, ``Bpref``; any other with a prime is that of
            ``ir_measures`` over judged documents, of which those of grade 2 and 3 are relevant: ``P'@5``, ``RR'``), or
            as ``ir_measures`` has it (``nDCG@10``, ``AP(rel=2)``).

    Raises:
        ARQMathError: there is no such measure.
    """
    known = dict(zip(SHORT_NAMES.values(), TASK1_MEASURES, strict=True))
    if name in known:
        return known[name]
    text = name
    if match := _PRIME.fullmatch(name):
        plain = _OTHER_NAMES.get(match[1], match[1])
        options = "judged_only=True" if plain == "nDCG" else "rel=2,judged_only=True"
        text = f"{plain}({options}){match[2] or ''}"
    try:
        measure = ir_measures.parse_measure(text)
        ir_measures.evaluator([measure], _ONE_JUDGMENT)
    except (NameError, ValueError, KeyError, TypeError, AttributeError) as error:
        examples = ", ".join([*known, "P'@5", "nDCG@10", "AP(rel=2)"])
        raise ARQMathError(f"there is no measure {name!r}; give one such as {examples}") from error
    return measure


JUDGED: Any = _ordered(Judged @ 10)
"""The judged fraction of the first ten: how much the prime measures removed. As it is no measure of quality, whose
differences are tested, the lists do not have it: ``[*TASK1_MEASURES, JUDGED]``."""

TASK2_MEASURES: list[Any] = [*TASK1_MEASURES]
"""The measures of Task 2, for rankings of visually distinct formulas by ``VisualIdDeduplication``."""


def _first_grades(qrels: pd.DataFrame, run: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Yield the grade of the first judged answer of each judged topic, or 0."""
    found = run.merge(qrels, on=["query_id", "doc_id"])
    found = found.sort_values(["score", "doc_id"], ascending=False).drop_duplicates("query_id")
    grades = dict(zip(found["query_id"], found["relevance"], strict=True))
    for topic in qrels["query_id"].unique():
        yield topic, float(grades.get(topic, 0))


AVERAGE_RELEVANCE: Any = define(_first_grades, name="AR'", support_cutoff=False)
"""AR', the mean grade (0 to 3) of each topic's first judged answer (DCG'@1)."""

TASK3_MEASURES: list[Any] = [AVERAGE_RELEVANCE, _ordered(P(rel=2, judged_only=True) @ 1)]
"""The measures of Task 3: AR' and P'@1. A topic without a judged answer scores 0 here; ``task3_scores`` and the
organisers' program leave it out."""


class Task3Scores(NamedTuple):
    """The scores of a run of Task 3."""

    average_relevance: float  # AR', 0 to 3
    precision_at_1: float  # P'@1, the fraction with grade 2 or 3
    judged: int  # topics with a judged answer, the basis of both means
    topics: int  # topics of the run


def task3_scores(run: pd.DataFrame, qrels: pd.DataFrame) -> Task3Scores:
    """Compute AR' and P'@1 as the organisers' program does: over the topics that have a judged answer.

    Their program reads the codes 5 and 6 as grade 0; read the judgments with ``failures="zero"`` to reproduce it. By
    default such answers are unjudged, and their topics are left out.

    Args:
        run: ``qid``, ``docno`` and ``score``; of several answers to a topic the first judged one is used, with ties in
            trec_eval's order.
        qrels: ``qid``, ``docno`` and ``label``.

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
