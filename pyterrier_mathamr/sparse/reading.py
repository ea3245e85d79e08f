"""From a row of a frame or of a corpus to a post; one that cannot be read becomes an empty post, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr import posts
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import documents, listed
from pyterrier_mathamr.posts import MathPost, PostError

DOCUMENT_COLUMNS = tuple(("docno", name) for name in posts.DOCUMENT_COLUMNS)
"""The columns of a document, one tuple for each way."""


def checked_documents(
    stream: pd.DataFrame | Iterable[Mapping[str, Any]], indexer: pt.Indexer
) -> Iterable[Mapping[str, Any]]:
    """Check the first document, if there is one."""
    peekable: Any = pt.utils.peekable(documents(stream))
    try:
        peekable.peek()
    except StopIteration:
        return ()
    with pt.validate.any_iter(peekable, context=indexer) as validation:
        for columns in indexer.index_inputs():
            validation.columns(includes=columns)
    checked: Iterable[Mapping[str, Any]] = peekable
    return checked


def document_post(document: Mapping[Any, Any], *, bare_formulas: bool = False) -> MathPost:
    """Read a document as :func:`~pyterrier_mathamr.posts.document_post`; one that cannot be read is empty."""
    return _read(posts.document_post, document, bare_formulas, f"document {document.get('docno')!r}")


def query_post(query: Mapping[Any, Any], *, bare_formulas: bool = False) -> MathPost:
    """Read a query as :func:`~pyterrier_mathamr.posts.query_post`; one that cannot be read is empty."""
    return _read(posts.query_post, query, bare_formulas, f"query {query.get('qid')!r}")


def warn_of_queries(qids: Sequence[str], why: str, advice: str) -> None:
    """Warn once of all queries that cannot find anything."""
    if qids:
        text = f"{len(qids)} query(ies) find nothing, since {why}: {listed(qids)}. {advice}"
        warnings.warn(text, MathAMRWarning, stacklevel=4)


def _read(reader: Callable[..., MathPost], row: Mapping[Any, Any], bare_formulas: bool, name: str) -> MathPost:
    try:
        return reader(row, bare_formulas=bare_formulas)
    except PostError as error:
        warnings.warn(f"{name} cannot be read; it is used without text: {error}", MathAMRWarning, stacklevel=3)
        return MathPost("", ())
