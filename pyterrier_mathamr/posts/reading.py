"""Text in each of its forms to `MathPost`: HTML, plain text, Markdown, LaTeX; and the rows of documents and queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from html import escape
from typing import Any

from pyterrier_mathamr._common.feedback import report_problem
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.running.worker import OverLimitError

from .html import HtmlFlattener
from .markdown import read_markdown
from .math_spans import clean
from .post import DocumentError, MathPost, assemble, typed_text

LOOKS_LIKE_HTML = re.compile(
    r"</?(?:p|br|div|span|em|strong|li|ul|ol|code|pre|blockquote|h[1-6]|sub|sup|hr|table|math|[a-z]{1,9}:math)(?:\s[^<>]{0,500})?/?>"
    r"|</[abi]>|&(?:lt|gt|amp|quot|nbsp|#\d{1,6});",
    re.IGNORECASE,
)
PARAGRAPH = re.compile(r"\n[^\S\n]*(?:\n\s*)+")


def post_from_html(body: str, title: str = "", *, bare_formulas: bool = False) -> MathPost:
    r"""Read a post or topic as ARQMath stores it.

    Args:
        body: HTML; formulas are ``<span class="math-container" id="...">`` or between dollars, ``\(..\)`` or
            ``\[..\]``. Malformed HTML and a bare ``<`` in LaTeX are read as far as possible.
        title: HTML of the title, which becomes the first block.
        bare_formulas: also read runs such as ``x^2+1=0`` outside delimiters and code as formulas.

    Returns:
        The post; each span with an id is one formula with that id.

    Raises:
        DocumentError: ``body`` or ``title`` is not text.
    """
    check_texts(body, title)
    return _from_html(body, title, bare_formulas)


@lru_cache(maxsize=128)  # shared by stages that read the same batch in turn
def _from_html(body: str, title: str, bare_formulas: bool) -> MathPost:
    reader = HtmlFlattener(mark_code=bare_formulas)
    reader.feed(title)
    reader.feed(body)
    post = assemble(reader.text, reader.formulas, bare_formulas)
    return replace(post, unread=tuple(reader.unread)) if reader.unread else post


def post_from_text(text: str, title: str = "", *, bare_formulas: bool = False) -> MathPost:
    r"""Read plain text with formulas between dollars, ``\(..\)`` or ``\[..\]``; ``\$`` is a currency sign.

    Args:
        text: paragraphs separated by blank lines.
        title: the title, which becomes the first block.
        bare_formulas: also read runs such as ``x^2+1=0`` outside delimiters as formulas.

    Raises:
        DocumentError: ``text`` or ``title`` is not text.
    """
    check_texts(text, title)
    blocks = (
        PARAGRAPH.sub("\x00", part.replace("\r\n", "\n").strip()).replace("\n", " ").replace("\x00", "\n")
        for part in (clean(title), clean(text))
    )
    return assemble("\n".join(blocks), (), bare_formulas)


def post_from_any(text: str, title: str = "", *, bare_formulas: bool = False) -> MathPost:
    """Read a post as HTML if it has tags or entities of HTML, else as plain text.

    Args:
        text: HTML or text.
        title: HTML or text.
        bare_formulas: also read runs such as ``x^2+1=0`` outside delimiters and code as formulas.

    Raises:
        DocumentError: ``text`` or ``title`` is not text.
    """
    check_texts(text, title)
    read = post_from_html if LOOKS_LIKE_HTML.search(text) or LOOKS_LIKE_HTML.search(title) else post_from_text
    return read(text, title, bare_formulas=bare_formulas)


def check_texts(*texts: object) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise DocumentError("post", f"its title and body are text, not {type(text).__name__}: {text!s:.60}")


DOCUMENT_COLUMNS = ("html", "body", "text", "markdown")
"""Where the text of a document is, in order of preference."""

_DELIMITER = re.compile(r"\$\$?|\\begin\{[a-z]+\*?\}|\\.")

Row = Mapping[str, Any]
"""The columns of one row by name."""


def document_post(row: Row, *, bare_formulas: bool = False) -> MathPost:
    """Read a document: its ``title`` and the first existing one of ``html``, ``body``, ``text`` and ``markdown``.

    Args:
        row: ``body`` and ``text`` are HTML if they have tags or entities of HTML.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.

    Returns:
        The post; a formula without an id gets one from :func:`~pyterrier_mathamr.posts.formula_id`.

    Raises:
        DocumentError: the value is not text.
        OverLimitError: Markdown needs too much time, or its macros write too much.
    """
    name, text = _text_column(row)
    docno, title = text_of(row, "docno"), text_of(row, "title")
    if name == "markdown":
        check_texts(text)
        try:
            (title, text), _ = read_markdown(title, text)
        except OverLimitError as error:
            raise OverLimitError(f"document {docno!r:.80}: {error}") from error
    read = post_from_html if name in ("html", "markdown") else post_from_any
    post = read(text, title, bare_formulas=bare_formulas)
    return report_unclosed(docno, post).with_formula_ids(docno)


LONGEST_PARENT_TITLE = 20_000
"""Characters of the HTML of a question's title, which is read once for each answer."""


def parent_title(row: Row, *, bare_formulas: bool = False) -> MathPost:
    """Read the title of the question that a document answers, ``parent_title``; an empty post where there is none.

    Args:
        row: the title is HTML where it has tags or entities of HTML; one of more than 20,000 characters is left out.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``, as of the document.

    Returns:
        The title; its formulas have the ids that they have in the question.
    """
    title = text_of(row, "parent_title")
    if len(title) > LONGEST_PARENT_TITLE:
        report_problem(text_of(row, "docno"), "the title of its question is too long, and is left out", title[:60])
        title = ""
    return post_from_any(title, bare_formulas=bare_formulas)


def document_html(row: Row) -> str:
    """Write the text of a document as HTML, plain text by paragraphs.

    Args:
        row: ``body`` and ``text`` are HTML if they have tags or entities of HTML; the title is not read.

    Raises:
        OverLimitError: Markdown needs too much time, or its macros write too much.
    """
    name, text = _text_column(row)
    if name == "markdown":
        return read_markdown(text)[0][0]
    if name == "html" or LOOKS_LIKE_HTML.search(text):
        return text
    return "".join(f"<p>{escape(block, quote=False)}</p>" for block in PARAGRAPH.split(text))


def _text_column(row: Row) -> tuple[str, str]:
    name = next((name for name in DOCUMENT_COLUMNS if not is_missing(row.get(name))), "")
    return name, row[name] if name else ""


TOPIC_COLUMNS = ("title", "body", "query", "latex")
"""Where the text of a topic is."""


def check_topic(row: Mapping[Any, Any]) -> None:
    """Raise :class:`DocumentError` if a text of a topic is a list, a number or another object."""
    for name in TOPIC_COLUMNS:
        if not isinstance(value := row.get(name), str) and not is_missing(value):
            raise DocumentError(
                f"topic {row.get('qid', '')!r}",
                f"`{name}` is not text but {type(value).__name__}, {value!s:.60}; give one text for each qid",
            )


def query_post(row: Mapping[Any, Any], *, bare_formulas: bool = False) -> MathPost:
    """Read a query: ``title`` and ``body`` if there is a body, else ``query``, else only the title.

    Args:
        row: each value is HTML if it has tags or entities of HTML.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``, if the documents were read so.

    Raises:
        DocumentError: a value is not text.
    """
    check_topic(row)
    if not is_blank(row.get("body")):
        post = post_from_any(row["body"], text_of(row, "title"), bare_formulas=bare_formulas)
        return report_unclosed(text_of(row, "qid"), post)
    title, query = text_of(row, "title"), text_of(row, "query")
    if title and query == typed_text(post_from_any(title)):  # the title has the ids of formulas
        query = ""
    return report_unclosed(
        text_of(row, "qid"), post_from_any(query if query.strip() else title, bare_formulas=bare_formulas)
    )


def report_unclosed(name: str, post: MathPost) -> MathPost:
    """Report unclosed delimiters and unreadable MathML of a post; return the post."""
    for where in post.unread:
        report_problem(name, "the MathML of a formula cannot be read, and is text", where)
    for where in post.unclosed:
        match = _DELIMITER.match(where)
        report_problem(name, f"{match[0] if match else where[:1]} is never closed", where)
    return post


def is_blank(value: object) -> bool:
    """Return whether a cell is missing or blank text."""
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def text_of(row: Row, name: str) -> str:
    """Return a cell as text; a missing one is the empty text."""
    value = row.get(name)
    return "" if is_missing(value) else str(value)
