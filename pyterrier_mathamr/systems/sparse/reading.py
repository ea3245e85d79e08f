"""From a row of a frame or of a corpus to a post; one that cannot be read becomes an empty post, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import documents, is_missing, listed
from pyterrier_mathamr.posts import MathPost, PostError, post_from_any, post_from_html

DOCUMENT_COLUMNS = (("docno", "html"), ("docno", "body"), ("docno", "text"))
"""The columns of a document, one tuple for each way."""


def checked_documents(
    stream: pd.DataFrame | Iterable[Mapping[str, Any]], indexer: pt.Indexer
) -> Iterable[Mapping[str, Any]]:
    """Check the first document, if there is one.

    Args:
        stream: a DataFrame or dictionaries.
        indexer: named in the message.

    Returns:
        The documents.

    Raises:
        pt.validate.InputValidationError: the document has none of :data:`DOCUMENT_COLUMNS`.
    """
    peekable: Any = pt.utils.peekable(documents(stream))
    try:
        peekable.peek()
    except StopIteration:
        return ()
    with pt.validate.any_iter(peekable, context=indexer) as validation:
        for columns in DOCUMENT_COLUMNS:
            validation.columns(includes=list(columns))
    checked: Iterable[Mapping[str, Any]] = peekable
    return checked


def document_post(document: Mapping[Any, Any]) -> MathPost:
    """Read a document: ``html``, else ``body``, else ``text``, after its ``title`` where it has one.

    Args:
        document: column to value; ``docno`` names it in a warning.

    Returns:
        The post; an empty one where the document is blank or cannot be read.
    """
    title = _string(document, "title")
    for column in ("html", "body"):
        if column in document:
            return _read(post_from_html, _string(document, column), title, f"document {document.get('docno')!r}")
    return _read(post_from_any, _string(document, "text"), title, f"document {document.get('docno')!r}")


def query_post(query: Mapping[Any, Any]) -> MathPost:
    """Read a query: ``title`` and ``body`` where one of them has text, else ``query``.

    Args:
        query: column to value; ``qid`` names it in a warning.

    Returns:
        The post; an empty one where the query is blank or cannot be read.
    """
    title, body = _string(query, "title"), _string(query, "body")
    if "body" in query and (title or body):
        return _read(post_from_any, body, title, f"query {query.get('qid')!r}")
    return _read(post_from_any, _string(query, "query"), "", f"query {query.get('qid')!r}")


def warn_of_queries(qids: Sequence[str], why: str, advice: str) -> None:
    """Warn once of all queries that cannot find anything.

    Args:
        qids: the queries; none, no warning.
        why: what they are.
        advice: what to do.
    """
    if qids:
        text = f"{len(qids)} query(ies) find nothing, since {why}: {listed(qids)}. {advice}"
        warnings.warn(text, MathAMRWarning, stacklevel=4)


def _string(row: Mapping[Any, Any], column: str) -> str:
    """Return a cell as text; an empty cell is the empty text."""
    value = row.get(column)
    return "" if is_missing(value) else str(value)


def _read(reader: Callable[[str, str], MathPost], text: str, title: str, name: str) -> MathPost:
    try:
        return reader(text, title)
    except PostError as error:
        warnings.warn(f"{name} cannot be read; it is used without text: {error}", MathAMRWarning, stacklevel=3)
        return MathPost("", ())
