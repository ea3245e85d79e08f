"""The topics of Task 1 and Task 2 that can be measured on a local collection, with their judgments."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Literal, NamedTuple

import pandas as pd

from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.arqmath import ARQMathCollection, MissingFileError, Qrel, visual_qrels
from pyterrier_mathamr.experiments.errors import NoRelevantTopicError
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.posts import plain_text, post_from_html

RELEVANT = 2
"""The lowest grade that is relevant."""

Split = Literal["validation", "test"]
"""The known-item questions to choose by, and those to report."""


class TopicSet(NamedTuple):
    """Topics, their judgments and their graphs.

    Attributes:
        topics: ``qid``, ``query``, ``title``, ``body``; those of Task 2 have ``formula_id`` and ``latex``
            instead of ``query``.
        qrels: ``qid``, ``docno``, ``label``.
        graphs: by qid.
    """

    topics: pd.DataFrame
    qrels: pd.DataFrame
    graphs: GraphStore


def require_years(collection: ARQMathCollection, years: Iterable[int | str], task: Literal[1, 2] = 1) -> None:
    """Refuse years whose topics or judgments the folder lacks, by the names of files."""
    for year in years:
        collection.topics(year, task)
        try:
            collection.qrels_file(year, task)
        except MissingFileError:
            if task == 1:
                raise
            collection.qrels_file(year, task, judged="visual")


def judged_topics(
    collection: ARQMathCollection, year: int | str, answers: Container[DocNo]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the topics of Task 1 that have a relevant answer among those that can be found."""
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
    return pd.DataFrame(topics, columns=["qid", "query", "title", "body"], dtype=str), qrels


def formula_topics(collection: ARQMathCollection, year: int | str) -> pd.DataFrame:
    """Read the topics of Task 2: ``qid, title, body, formula_id, latex``, each formula within its question."""
    rows = [(topic.id, topic.title, topic.body, topic.formula_id, topic.latex) for topic in collection.topics(year, 2)]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "title", "body", "formula_id", "latex"], dtype=str)
    return frame


def visual_judgments(
    collection: ARQMathCollection, year: int | str, visual_ids: FormulaStore, found: Container[str]
) -> dict[str, pd.DataFrame]:
    """Read the judgments of Task 2, of formula ids and of visual ids, both by visual id."""
    readers: dict[str, Callable[[], pd.DataFrame]] = {
        "formula ids": lambda: visual_qrels(_frame(collection.qrels(year, 2)), visual_ids),
        "visual ids": lambda: _frame(collection.qrels(year, 2, judged="visual")),
    }
    judged, missing = {}, []
    for kind, read in readers.items():
        try:
            judged[kind] = read()
        except MissingFileError as error:
            missing.append(error)
    if not judged:
        raise missing[0]
    kept = {}
    for kind, qrels in judged.items():
        known = qrels[[docno in found for docno in qrels["docno"]]]
        relevant = known["qid"].isin(known.loc[known["label"] >= RELEVANT, "qid"])
        if relevant.any():
            kept[kind] = known[relevant].reset_index(drop=True)
    if not kept:
        raise NoRelevantTopicError(collection.path, year, RELEVANT)
    return kept


def _frame(qrels: Iterable[Qrel]) -> pd.DataFrame:
    rows = [(row.query_id, row.doc_id, row.relevance) for row in qrels]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    return frame
