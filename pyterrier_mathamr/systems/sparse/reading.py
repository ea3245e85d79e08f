"""From a row of a frame or of a corpus to a post; what cannot be read becomes an empty post, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr.posts import MathPost, PostError, post_from_any, post_from_html

DOCUMENT_COLUMNS = (("docno", "html"), ("docno", "body"), ("docno", "text"))
"""What a document may bring, one tuple for each way."""


def checked_documents(documents: Iterable[Mapping[str, Any]], indexer: pt.Indexer) -> Iterable[Mapping[str, Any]]:
    """Look at the first document, if there is one, before anything is done.

    Args:
        documents: a stream.
        indexer: named in the message.

    Returns:
        The same stream.

    Raises:
        pt.validate.InputValidationError: the document has none of :data:`DOCUMENT_COLUMNS`.
    """
    peekable: Any = pt.utils.peekable(documents)
    try:
        peekable.peek()
    except StopIteration:
        return ()
    with pt.validate.any_iter(peekable, context=indexer) as validation:
        for columns in DOCUMENT_COLUMNS:
            validation.columns(includes=list(columns))
    checked: Iterable[Mapping[str, Any]] = peekable
    return checked


def document_post(document: Mapping[str, Any]) -> MathPost:
    """Read a document: ``html``, else ``body``, else ``text``, after its ``title`` where it has one.

    Args:
        document: column to value; ``docno`` names it in a warning.

    Returns:
        The post; one without text where nothing is there or it cannot be read.
    """
    title = _string(document, "title")
    for column in ("html", "body"):
        if column in document:
            return _read(post_from_html, _string(document, column), title, f"document {document.get('docno')!r}")
    return _read(post_from_any, _string(document, "text"), title, f"document {document.get('docno')!r}")


def query_post(query: Mapping[str, Any]) -> MathPost:
    """Read a query: ``title`` and ``body`` where one of them has text, else ``query``.

    Args:
        query: column to value; ``qid`` names it in a warning.

    Returns:
        The post; one without text where nothing is there or it cannot be read.
    """
    title, body = _string(query, "title"), _string(query, "body")
    if "body" in query and (title or body):
        return _read(post_from_any, body, title, f"query {query.get('qid')!r}")
    return _read(post_from_any, _string(query, "query"), "", f"query {query.get('qid')!r}")


def _string(row: Mapping[str, Any], column: str) -> str:
    """Give a cell as text; an empty cell is the empty text."""
    value = row.get(column)
    return "" if is_missing(value) else str(value)


def _read(reader: Callable[[str, str], MathPost], text: str, title: str, name: str) -> MathPost:
    try:
        return reader(text, title)
    except PostError as error:
        warnings.warn(f"{name} cannot be read and counts as empty: {error}", MathAMRWarning, stacklevel=3)
        return MathPost("", ())
