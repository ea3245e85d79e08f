"""From the row of a document or query to its post: which columns hold the text, and which ids its formulas have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyterrier_mathamr._common.feedback import tell
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.running.worker import OverLimitError

from .post import MathPost
from .reading import post_from_any, post_from_html, post_from_markdown

DOCUMENT_COLUMNS = ("html", "body", "text", "markdown")
"""Where the text of a document is, in order of preference."""

_DELIMITER = re.compile(r"\$\$?|\\begin\{[a-z]+\*?\}|\\.")

Row = Mapping[str, Any]
"""The columns of one row by name."""


def document_post(row: Row, *, bare_formulas: bool = False) -> MathPost:
    """Read a document: its ``title`` and the first of ``html``, ``body``, ``text`` and ``markdown`` that is there.

    Args:
        row: ``body`` and ``text`` are HTML where they have tags or entities of HTML.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.

    Returns:
        The post; a formula without an id gets that of :func:`~pyterrier_mathamr.posts.formula_id`.

    Raises:
        PostError: the value is not text.
        OverLimitError: it is Markdown that takes too long, or whose macros write too much.
    """
    name = next((name for name in DOCUMENT_COLUMNS if not is_missing(row.get(name))), "")
    read = {"html": post_from_html, "markdown": post_from_markdown}.get(name, post_from_any)
    docno = text_of(row, "docno")
    try:
        post = read(row[name] if name else "", text_of(row, "title"), bare_formulas=bare_formulas)
    except OverLimitError as error:
        raise OverLimitError(f"document {docno!r:.80}: {error}") from error
    return tell_unclosed(docno, post).with_formula_ids(docno)


def query_post(row: Row, *, bare_formulas: bool = False) -> MathPost:
    """Read a query: ``title`` and ``body`` where there is a body, else ``query``, else the title alone.

    Args:
        row: each is HTML where it has tags or entities of HTML.
        bare_formulas: as for the documents that are searched.

    Raises:
        PostError: the value is not text.
    """
    if not is_blank(row.get("body")):
        post = post_from_any(row["body"], text_of(row, "title"), bare_formulas=bare_formulas)
        return tell_unclosed(text_of(row, "qid"), post)
    text = text_of(row, "title") if is_blank(row.get("query")) else row["query"]
    return tell_unclosed(text_of(row, "qid"), post_from_any(text, bare_formulas=bare_formulas))


def tell_unclosed(name: str, post: MathPost) -> MathPost:
    """Tell of the delimiters of a post that nothing closes and of MathML that cannot be read; return the post."""
    for where in post.unread:
        tell(name, "the MathML of a formula cannot be read, and is text", where)
    for where in post.unclosed:
        found = _DELIMITER.match(where)
        tell(name, f"{found[0] if found else where[:1]} is never closed", where)
    return post


def is_blank(value: object) -> bool:
    """Tell whether a cell is missing or blank text."""
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def text_of(row: Row, name: str) -> str:
    """Return a cell as text; a missing one is the empty text."""
    value = row.get(name)
    return "" if is_missing(value) else str(value)
