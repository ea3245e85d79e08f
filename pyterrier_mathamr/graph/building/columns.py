"""Rows of frames to posts: which columns hold the text, and what a frame must have."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import FrameKind, frame_kind, is_missing, listed
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import (
    MathPost,
    PostFormula,
    placeholder,
    post_from_any,
    post_from_html,
    strip_delimiters,
)

Side = Literal["auto", "query", "document", "both"]
"""Whose graphs are built: with ``auto`` those of the queries where the frame has any, else of the documents."""

Queries = Literal["post", "formula"]
"""What a query is: a text with formulas, or one formula in LaTeX."""

TOPIC_TEXTS = ("title", "body", "query", "latex")
"""Columns of a topic's text."""

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


def formula_post(row: Mapping[str, Any]) -> MathPost:
    r"""Read a query that is one formula: ``latex``, else ``query``, with or without dollars.

    The formula gets no context that nobody wrote: its post is ``FORMULA_0`` and nothing else. Its graph is that of a
    sentence which is the formula, as titles and displayed lines of real posts are, so that the model has seen its like,
    and its vectors are of the formula, a sentence and a document as those of any post. An invented sentence ("Find
    ``FORMULA_0``.") would be the same for all queries, and draw each towards the posts in which such words stand; a
    formula node without sentence and document is a graph that the model was never trained on.

    Args:
        row: the columns of one row by name; ``formula_id`` is the id of the formula, which may have none.
    """
    latex = row.get("latex") if not is_missing(row.get("latex")) else _text(row, "query")
    return MathPost(placeholder(0), (PostFormula(strip_delimiters(str(latex)), _text(row, "formula_id")),))


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if is_missing(value) else str(value)


def warn_of_second_texts(queries: pd.DataFrame, columns: Sequence[str]) -> None:
    """Tell the user of queries that share a ``qid`` but not their text, for only the first of them is built.

    Args:
        queries: queries or a ranking, with ``qid``.
        columns: where texts are; those that the frame lacks do not count, nor do rows where one is missing.
    """
    names = [name for name in columns if name in queries.columns]
    texts = queries[["qid", *names]].dropna().drop_duplicates()
    several = texts.loc[texts["qid"].duplicated(), "qid"].drop_duplicates().tolist()
    if several:
        warnings.warn(
            f"{len(several)} qid(s) have several texts, of which only the first is used: {listed(several)}. Give each "
            "query a qid of its own; after a stage that rewrites `query` in one branch of a pipeline, use "
            "pt.rewrite.reset().",
            MathAMRWarning,
            stacklevel=2,
        )


def warn_of_empty_formulas(posts: Mapping[str, MathPost], store: FormulaStore | None) -> None:
    """Tell the user of queries whose formula is empty, for what is found for them means nothing.

    Args:
        posts: qid to the post of its formula, see :func:`formula_post`.
        store: official formula trees; a formula that it has is not empty, whatever its LaTeX.
    """
    empty = {qid: post.formulas[0].id for qid, post in posts.items() if post.formulas and not post.formulas[0].latex}
    if not empty:
        return
    official = store.get_many(sorted({id for id in empty.values() if id})) if store is not None else {}
    named = [qid for qid, id in empty.items() if id not in official]
    if named:
        warnings.warn(
            f"{len(named)} qid(s) have an empty formula, and what is found for them means nothing: {listed(named)}. "
            "Give each query a formula in LaTeX, in `latex` or `query`.",
            MathAMRWarning,
            stacklevel=2,
        )


def wanted_sides(
    columns: list[str], side: Side, transformer: pt.Transformer, query_kind: Queries = "post"
) -> tuple[bool, bool]:
    """Check the columns of a frame and tell whose graphs are to be built.

    Args:
        columns: the frame's columns.
        side: what the transformer was asked for.
        transformer: named in the message.
        query_kind: what a query is.

    Returns:
        Whether queries and whether documents are built.

    Raises:
        pt.validate.InputValidationError: the frame lacks what is needed; inspection reads the possible inputs from it.
    """
    queries = side in ("auto", "query")
    with pt.validate.any(columns, context=transformer) as check:
        if queries and query_kind == "formula":
            check.query_frame(["latex"])
            check.query_frame(["query"])
            check.result_frame(["query"])
        elif queries:
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
