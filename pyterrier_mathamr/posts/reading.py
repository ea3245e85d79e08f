"""Text in each of its forms to `MathPost`: HTML, plain text, Markdown, LaTeX."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from pyterrier_mathamr._common.errors import MathAMRError

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
