"""Where the texts of a ranking are: ``title`` and ``body`` are those of the topic, ``html`` … those of the document.

Where ``title`` or ``body`` differ within a query that has a ``query``, they are the documents' (``_common.frames``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr.explain import Asked, AskedError, QueryRow, read_asked
from pyterrier_mathamr.posts import DOCUMENT_COLUMNS

QUERY_COLUMNS: tuple[tuple[str, ...], ...] = (("query",), ("title", "body"))
"""Where the text of a topic is."""

TEXT_COLUMNS = ("html", "text", "markdown")
"""Where the text of a document is, in order of preference."""


def check_documents(frame: pd.DataFrame, stage: pt.Transformer) -> None:
    """Refuse rows without a column of posts, for ``stage``."""
    with pt.validate.any(frame, context=stage) as validation:
        for name in DOCUMENT_COLUMNS:
            validation.columns(includes=[name])


def check_queries(frame: pd.DataFrame, stage: pt.Transformer) -> None:
    """Refuse rows without ``qid`` or the text of a topic, for ``stage``."""
    with pt.validate.any(frame, context=stage) as validation:
        for columns in QUERY_COLUMNS:
            validation.columns(includes=["qid", *columns])


def check_texts(frame: pd.DataFrame, stage: pt.Transformer) -> None:
    """Refuse a ranking without the texts of topics or of documents, for ``stage``."""
    with pt.validate.any(frame, context=stage) as validation:
        for columns in QUERY_COLUMNS:
            for name in TEXT_COLUMNS:
                validation.result_frame(extra_columns=[*columns, name])


def read_texts(query: QueryRow, docno: str | None, label: str) -> Asked:
    """Read what an explanation of the texts of a query and a document is asked of."""
    asked = read_asked(query, docno, label)
    if all(asked.row.get(name) is None for name in TEXT_COLUMNS):
        raise AskedError(label, "the row has no text of the document", "Give it `html` or `text`.")
    return asked


def text_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a row of a ranking, for :func:`~pyterrier_mathamr.posts.document_post`."""
    name = next((name for name in TEXT_COLUMNS if not is_missing(row.get(name))), "")
    return {"docno": str(row["docno"]), **({name: row[name]} if name else {})}


def of_document(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Leave out of a row of a ranking what is the query's."""
    return {name: row[name] for name in ("docno", *TEXT_COLUMNS) if name in row}


def of_documents(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out of a ranking what is the query's."""
    return frame[[name for name in ("docno", *TEXT_COLUMNS) if name in frame.columns]]
