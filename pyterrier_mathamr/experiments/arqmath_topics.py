"""The topics of a year that can be measured on a local collection, and their judgements."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pandas as pd

from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.arqmath import ARQMathCollection
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
