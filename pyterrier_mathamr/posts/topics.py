"""The topics of a frame, and the columns of a ranking that belong to its topics or to its documents."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from pyterrier_mathamr._common.frames import first_values, with_objects


def distinct_queries(frame: pd.DataFrame, outputs: Sequence[str] = ()) -> pd.DataFrame:
    """Return one row for each query of a frame."""
    rows = frame.drop(columns=[*outputs, *columns_of_documents(frame)], errors="ignore")
    first = rows.drop_duplicates(subset="qid").reset_index(drop=True)
    if len(first) == len(rows):
        return first
    gaps = {name: first_values(rows, name) for name in rows.columns if rows[name].isna().any()}
    return with_objects(first, **{name: list(map(values.get, first["qid"].tolist())) for name, values in gaps.items()})


_OF_DOCUMENTS = ("docid", "html", "text", "markdown", "parent_title", "graph", "formula_ids")
_OF_EITHER = ("title", "body")


def columns_of_documents(frame: pd.DataFrame) -> list[str]:
    """List the columns of a ranking that describe its documents, except ``docno``."""
    if not {"qid", "docno"} <= set(frame.columns):
        return []
    texts = [name for name in _OF_EITHER if name in frame.columns] if "query" in frame.columns else []
    loaded = texts if any(_differs(frame, name) for name in texts) else []
    return [name for name in frame.columns if name in loaded or describes_document(name)]


def texts_of_topics(frame: pd.DataFrame) -> list[str]:
    """List the columns of texts that a ranking has kept from its topics, not from documents."""
    if not {"qid", "docno"} <= set(frame.columns) or not _differs(frame, "docno"):
        return []
    return [name for name in (*_OF_EITHER, "html", "text", "markdown") if name in frame and not _differs(frame, name)]


def describes_document(name: str) -> bool:
    """Whether a column of a ranking is always the document's."""
    return name in _OF_DOCUMENTS or str(name).startswith("doc_")


def _differs(frame: pd.DataFrame, name: str) -> bool:
    """Whether a query has several values of a column, apart from gaps."""
    pairs = frame[["qid", name]].dropna().drop_duplicates()
    return bool(pairs["qid"].duplicated().any())
