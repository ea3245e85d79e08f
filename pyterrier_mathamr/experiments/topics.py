"""The topics of a year that can be measured on a local collection, and their judgements.

The formula topics of a year, and their judgements by visually distinct formula.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import pandas as pd

from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.arqmath import ARQMathCollection, MissingFileError, Qrel, visual_qrels
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import plain_text, post_from_html

from .errors import NoRelevantTopicError

RELEVANT = 2


class JudgedTopics(NamedTuple):
    """Topics with a relevant answer in the collection: ``qid, query, title, body``, and ``qid, docno, label``."""

    topics: pd.DataFrame
    qrels: pd.DataFrame


def judged_topics(collection: ARQMathCollection, year: int | str, answers: Collection[DocNo]) -> JudgedTopics:
    """Read the topics of Task 1 that have an answer of grade 2 or better among the answers that are there.

    Args:
        collection: a local ARQMath folder.
        year: 2020, 2021 or 2022, or another by which the files are named.
        answers: the answers that can be found; judgements of others are left out, which in a part of the release
            changes the ideal ranking and in the whole release nothing.

    Returns:
        Topics (title and body as HTML with the formulas' ids, ``query`` as text with ``$…$``) and judgements.

    Raises:
        NoRelevantTopicError: there is no such topic.
    """
    graded = [(row.query_id, row.doc_id, row.relevance) for row in collection.qrels(year) if row.doc_id in answers]
    relevant = {qid for qid, _, label in graded if label >= RELEVANT}
    topics = [
        (topic.id, plain_text(post_from_html(topic.body, topic.title)), topic.title, topic.body)
        for topic in collection.topics(year)
        if topic.id in relevant
    ]
    if not topics:
        raise NoRelevantTopicError(collection.path, year, RELEVANT)
    qrels = pd.DataFrame([row for row in graded if row[0] in relevant], columns=["qid", "docno", "label"])
    return JudgedTopics(pd.DataFrame(topics, columns=["qid", "query", "title", "body"], dtype=str), qrels)


DEPTH = 10_000
"""Formulas that are ranked before those that look alike are made one; half of a collection's repeat another."""

LENGTH = 1000
"""Visually distinct formulas of a ranking, as the task allows."""


def formula_topics(collection: ARQMathCollection, year: int | str) -> pd.DataFrame:
    """Read the topics of Task 2: ``qid, title, body, formula_id, latex``, each formula within its question.

    Args:
        collection: a local ARQMath folder.
        year: 2020, 2021 or 2022, or another by which the files are named.
    """
    rows = [(topic.id, topic.title, topic.body, topic.formula_id, topic.latex) for topic in collection.topics(year, 2)]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "title", "body", "formula_id", "latex"], dtype=str)
    return frame


def visual_judgements(
    collection: ARQMathCollection, year: int | str, visual_ids: FormulaStore, found: Collection[str]
) -> dict[str, pd.DataFrame]:
    """Read the judgements of Task 2, those of formula ids and those of visual ids, both by visual id.

    A formula's grade counts for all formulas that look the same, as the organisers define it. Topics without a formula
    of grade 2 or better are left out.

    Args:
        collection: a local ARQMath folder.
        year: 2020, 2021 or 2022, or another by which the files are named.
        visual_ids: of the collection's formulas.
        found: the visual ids that can be found; judgements of others are left out, which in a part of the release
            changes the ideal ranking and in the whole release nothing.

    Returns:
        What was judged, ``formula ids`` or ``visual ids``, to ``qid, docno, label``; the kinds that the folder has.

    Raises:
        MissingFileError: it has neither.
        NoRelevantTopicError: there is no topic with a relevant formula.
    """
    by_kind: dict[str, pd.DataFrame] = {}
    missing: MissingFileError | None = None
    try:
        by_kind["formula ids"] = visual_qrels(_frame(collection.qrels(year, 2)), visual_ids)
    except MissingFileError as error:
        missing = error
    try:
        by_kind["visual ids"] = _frame(collection.qrels(year, 2, judged="visual"))
    except MissingFileError:
        if missing is not None:
            raise missing from None
    kept = {}
    for kind, qrels in by_kind.items():
        there = qrels[qrels["docno"].isin(found)]
        relevant = there["qid"].isin(there.loc[there["label"] >= RELEVANT, "qid"])
        if relevant.any():
            kept[kind] = there[relevant].reset_index(drop=True)
    if not kept:
        raise NoRelevantTopicError(collection.path, year, RELEVANT)
    return kept


def _frame(qrels: Iterable[Qrel]) -> pd.DataFrame:
    rows = [(row.query_id, row.doc_id, row.relevance) for row in qrels]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    return frame
