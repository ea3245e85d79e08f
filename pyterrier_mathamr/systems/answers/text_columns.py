"""Where the texts of a ranking are: ``title`` and ``body`` are those of the topic, ``html`` … those of the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.frames import is_missing

QUERY_COLUMNS: tuple[tuple[str, ...], ...] = (("query",), ("title", "body"))
"""Where the text of a topic is."""

TEXT_COLUMNS = ("html", "text", "markdown")
"""Where the text of a document is, in order of preference."""


def text_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a row of a ranking, for :func:`~pyterrier_mathamr.posts.document_post`."""
    name = next((name for name in TEXT_COLUMNS if not is_missing(row.get(name))), "")
    return {"docno": str(row["docno"]), **({name: row[name]} if name else {})}


def of_documents(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out of a ranking what is the query's."""
    return frame[[name for name in ("docno", *TEXT_COLUMNS) if name in frame.columns]]
