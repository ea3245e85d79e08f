"""The topics of a frame: their texts, and the columns of a ranking that are theirs and not their documents'.

::

    qid  title    body           query        docno  text        a topic's text is in `query`, or in `title` and `body`;
    1    A sum    <p>Is it…</p>  A sum Is…    d3     No, …       a retriever adds `query`, which PyTerrier's stages
    1    A sum    <p>Is it…</p>  A sum Is…    d7     Yes, …      read, and keeps the other columns of the topic

The `title` and `body` of a ranking with `query` may also have been loaded for its documents. They are the topics' if
all documents of a topic have the same or, where each topic has one document, if `query` is their text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.frames import first_values, with_objects

from .math_spans import strip_delimiters
from .post import typed_text
from .reading import TOPIC_COLUMNS, check_topic, is_blank, post_from_any, text_of

TOPIC_FORMS = (("query",), ("title", "body"), ("body",), ("title",))
"""The columns of a topic's text besides ``qid``, one tuple for each form."""

_OF_DOCUMENTS = ("docid", "html", "text", "markdown", "parent_title", "graph", "formula_ids")
_OF_EITHER = ("title", "body")


def with_query(topics: pd.DataFrame) -> pd.DataFrame:
    """Add ``query``, the text of ``title`` and ``body``, else the formula in ``latex``, to topics without it."""
    if "query" in topics.columns or not {*TOPIC_COLUMNS} & {*topics.columns}:
        return topics
    return with_objects(topics, query=list(map(_text, topics.to_dict("records"))))


def distinct_queries(frame: pd.DataFrame, outputs: Sequence[str] = ()) -> pd.DataFrame:
    """Return one row for each query of a frame."""
    rows = frame.drop(columns=[*outputs, *columns_of_documents(frame)], errors="ignore")
    return _first_rows(rows)


def columns_of_documents(frame: pd.DataFrame) -> list[str]:
    """List the columns of a ranking that describe its documents, except ``docno``."""
    if not {"qid", "docno"} <= set(frame.columns):
        return []
    loaded = [name for name in _OF_EITHER if name in frame.columns] if _has_titles_of_documents(frame) else []
    return [name for name in frame.columns if name in loaded or describes_document(name)]


def columns_of_topics(frame: pd.DataFrame) -> list[str]:
    """List the columns that topics are read from, without a ``title`` and ``body`` of documents."""
    left_out = _OF_EITHER if "docno" in frame.columns and not _asks_its_title_and_body(frame) else ()
    return [name for name in TOPIC_COLUMNS if name in frame.columns and name not in left_out]


def texts_of_topics(frame: pd.DataFrame) -> list[str]:
    """List the columns of texts that a ranking has kept from its topics, not from documents."""
    if not {"qid", "docno"} <= set(frame.columns):
        return []
    names: tuple[str, ...] = (*_OF_EITHER, "html", "text", "markdown") if _differs(frame, "docno") else ()
    if not names and _asks_its_title_and_body(frame):
        names = _OF_EITHER
    return [name for name in names if name in frame and not _differs(frame, name)]


def describes_document(name: str) -> bool:
    """Whether a column of a ranking is always the document's."""
    return name in _OF_DOCUMENTS or str(name).startswith("doc_")


def _has_titles_of_documents(ranking: pd.DataFrame) -> bool:
    """Whether ``title`` and ``body`` of a ranking are its documents'."""
    names = [name for name in _OF_EITHER if name in ranking.columns]
    if not names or "query" not in ranking.columns:
        return False
    if any(_differs(ranking, name) for name in names):
        return True
    return not _differs(ranking, "docno") and not _asks_its_title_and_body(ranking)


def _asks_its_title_and_body(ranking: pd.DataFrame) -> bool:
    """Whether ``query`` is the text of ``title`` and ``body`` for each topic, as :func:`with_query` adds it."""
    names = [name for name in ("qid", "query", *_OF_EITHER) if name in ranking.columns]
    topics = _first_rows(ranking[names]).to_dict("records") if "query" in names else [{"query": None}]
    return all(row["query"] == _text(row) for row in topics)


def _text(topic: Mapping[Any, Any]) -> str:
    """Write the title and body of a topic, else its formula, as text that is read as they are."""
    check_topic(topic)
    text = typed_text(post_from_any(text_of(topic, "body"), text_of(topic, "title")))
    return text if text or is_blank(topic.get("latex")) else f"${strip_delimiters(topic['latex'])}$"


def _first_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each query, with the first value of each column that is not empty."""
    first = rows.drop_duplicates(subset="qid").reset_index(drop=True)
    if len(first) == len(rows):
        return first
    gaps = {name: first_values(rows, name) for name in rows.columns if rows[name].isna().any()}
    return with_objects(first, **{name: list(map(values.get, first["qid"].tolist())) for name, values in gaps.items()})


def _differs(frame: pd.DataFrame, name: str) -> bool:
    """Whether a query has several values of a column, apart from gaps."""
    pairs = frame[["qid", name]].dropna()
    try:
        return bool(pairs.drop_duplicates()["qid"].duplicated().any())
    except TypeError:  # a cell is a list or the like
        for row in pairs.to_dict("records"):
            check_topic(row)
        raise
