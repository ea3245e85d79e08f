"""Rows of frames to posts: which columns hold the text, and what a frame must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyterrier as pt

from pyterrier_mathamr._common.frames import FrameKind, frame_kind, is_missing
from pyterrier_mathamr.posts import MathPost, post_from_any, post_from_html

Side = Literal["auto", "query", "document", "both"]
"""Whose graphs are built: with ``auto`` those of the queries where the frame has any, else of the documents."""

DOCUMENT_TEXTS = ("html", "body", "text")
"""Columns of a document's text, the best first."""


def document_post(row: Mapping[str, Any]) -> MathPost:
    """Read a document: its ``title`` and the first of ``html``, ``body`` and ``text`` that is there.

    Args:
        row: the columns of one row by name.

    Raises:
        PostError: the text is not text.
    """
    title = _text(row, "title")
    if not is_missing(row.get("html")):
        return post_from_html(row["html"], title)
    name = next((name for name in DOCUMENT_TEXTS if not is_missing(row.get(name))), "")
    return post_from_any(row[name] if name else "", title)


def query_post(row: Mapping[str, Any]) -> MathPost:
    """Read a query: ``title`` and ``body`` where there is a body, else ``query``, else the title alone.

    Args:
        row: the columns of one row by name.

    Raises:
        PostError: the text is not text.
    """
    if not is_missing(row.get("body")):
        return post_from_any(row["body"], _text(row, "title"))
    if not is_missing(row.get("query")):
        return post_from_any(row["query"])
    return post_from_any(_text(row, "title"))


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if is_missing(value) else str(value)


def wanted_sides(columns: list[str], side: Side, transformer: pt.Transformer) -> tuple[bool, bool]:
    """Check the columns of a frame and tell whose graphs are to be built.

    Args:
        columns: the frame's columns.
        side: what the transformer was asked for.
        transformer: named in the message.

    Returns:
        Whether queries and whether documents are built.

    Raises:
        pt.validate.InputValidationError: the frame lacks what is needed; inspection reads the possible inputs from it.
    """
    queries = side in ("auto", "query")
    with pt.validate.any(columns, context=transformer) as check:
        if queries:
            check.query_frame(["query"])
            check.query_frame(["title", "body"])
            check.query_frame(["body"])
            check.query_frame(["title"])
            check.result_frame(["query"])
        for name in DOCUMENT_TEXTS:
            if side in ("auto", "document"):
                check.columns(includes=[name], excludes=["qid"])
            if side == "document":
                check.columns(includes=["docno", name])
            if side == "both":
                check.result_frame(["query", name])
    kind = frame_kind(columns)
    if side == "auto":
        return kind is not FrameKind.DOCUMENTS, kind is FrameKind.DOCUMENTS
    return side in ("query", "both"), side in ("document", "both")
