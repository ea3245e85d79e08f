"""Which columns of a frame are about a query, about a document, or what an encoder said of a query's rows."""

from __future__ import annotations

import pandas as pd

_OF_DOCUMENTS = ("docid", "html", "text", "markdown", "graph", "formula_ids")
_OF_EITHER = ("title", "body")
_QUERY_ROWS = ("query_embs", "query_model", "query_formula_ids", "query_weights", "query_document_weight")


def columns_of_documents(frame: pd.DataFrame) -> list[str]:
    """List the columns of a ranking that describe its documents, but for the ``docno``."""
    if not {"qid", "docno"} <= set(frame.columns):
        return []
    texts = [name for name in _OF_EITHER if name in frame.columns] if "query" in frame.columns else []
    loaded = texts if any(_differs(frame, name) for name in texts) else []
    return [name for name in frame.columns if name in loaded or describes_document(name)]


def texts_of_topics(frame: pd.DataFrame) -> list[str]:
    """List the columns of texts that a ranking has kept from its topics, and that so are no document's."""
    if not {"qid", "docno"} <= set(frame.columns) or not _differs(frame, "docno"):
        return []
    return [name for name in (*_OF_EITHER, "html", "text", "markdown") if name in frame and not _differs(frame, name)]


def describes_document(name: str) -> bool:
    """Tell whether a column of a ranking is the document's whatever its values are."""
    return name in _OF_DOCUMENTS or str(name).startswith("doc_")


def without_query_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the rows of queries that another encoder added, with their weights and the names of their formulas."""
    return frame.drop(columns=[name for name in _QUERY_ROWS if name in frame.columns])


def _differs(frame: pd.DataFrame, name: str) -> bool:
    """Tell whether a query has several values of a column, gaps apart."""
    pairs = frame[["qid", name]].dropna().drop_duplicates()
    return bool(pairs["qid"].duplicated().any())
