"""Text in each of its forms to `MathPost`: HTML, plain text, Markdown, LaTeX; and the rows of documents and queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.feedback import tell
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.running.worker import OverLimitError

from .html import HtmlFlattener
from .latex_document import text_from_latex
from .markdown import read_markdown
from .math_spans import clean
from .post import MathPost, assemble

_LOOKS_LIKE_HTML = re.compile(
    r"</?(?:p|br|div|span|em|strong|li|ul|ol|code|pre|blockquote|h[1-6]|sub|sup|hr|table|math|[a-z]{1,9}:math)(?:\s[^<>]{0,500})?/?>"
    r"|</[abi]>|&(?:lt|gt|amp|quot|nbsp|#\d{1,6});",
    re.IGNORECASE,
)
_PARAGRAPH = re.compile(r"\n[^\S\n]*(?:\n\s*)+")


class PostError(MathAMRError):
    """The title or body of a post is not text but ``value``."""

    value: object
    template = "a post's title and body are text, not {value.__class__.__name__}: {shown!r}"

    @property
    def shown(self) -> str:
        """The beginning of the value."""
        return str(self.value)[:60]


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
        PostError: ``body`` or ``title`` is not text.
    """
    _check(body, title)
    return _from_html(body, title, bare_formulas)


@lru_cache(maxsize=128)  # what reads the posts of a batch one after another reads each once
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
        bare_formulas: see :func:`post_from_html`.

    Raises:
        PostError: ``text`` or ``title`` is not text.
    """
    _check(text, title)
    blocks = (
        _PARAGRAPH.sub("\x00", part.replace("\r\n", "\n").strip()).replace("\n", " ").replace("\x00", "\n")
        for part in (clean(title), clean(text))
    )
    return assemble("\n".join(blocks), (), bare_formulas)


def post_from_any(text: str, title: str = "", *, bare_formulas: bool = False) -> MathPost:
    """Read a post as HTML if it has tags or entities of HTML, else as plain text.

    Args:
        text: HTML or text.
        title: HTML or text.
        bare_formulas: see :func:`post_from_html`.

    Raises:
        PostError: ``text`` or ``title`` is not text.
    """
    _check(text, title)
    read = post_from_html if is_html(text) or is_html(title) else post_from_text
    return read(text, title, bare_formulas=bare_formulas)


def is_html(text: str) -> bool:
    """Tell whether a text has tags or entities of HTML."""
    return _LOOKS_LIKE_HTML.search(text) is not None


def post_from_markdown(text: str, title: str = "", *, bare_formulas: bool = False) -> MathPost:
    r"""Read Markdown (CommonMark with tables) in which formulas have delimiters as in :func:`post_from_html`.

    Args:
        text: Markdown. Code spans and blocks hold no formulas; links keep their text.
        title: Markdown of one line, which becomes the first block.
        bare_formulas: see :func:`post_from_html`.

    Raises:
        PostError: ``text`` or ``title`` is not text.
        OverLimitError: see :func:`html_from_markdown`.
    """
    _check(text, title)
    title, text = read_markdown(title, text).html
    return post_from_html(text, title, bare_formulas=bare_formulas)


def post_from_latex(source: str, *, bare_formulas: bool = False) -> MathPost:
    r"""Read a LaTeX document, or a part of one; ``\title`` becomes the first block.

    Args:
        source: LaTeX; the macros that it defines are written out.
        bare_formulas: see :func:`post_from_html`.

    Raises:
        PostError: ``source`` is not text.
        OverLimitError: see :func:`text_from_latex`.
    """
    _check(source)
    title, text = text_from_latex(source)
    return post_from_text(text, title, bare_formulas=bare_formulas)


def _check(*texts: object) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise PostError(text)


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
