"""One post as a record: its id, and its title and text as HTML with each formula in a container of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

from pyterrier_mathamr._common.feedback import tell
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr.posts import (
    PLACEHOLDER,
    MathPost,
    PostFormula,
    formula_id,
    post_from_any,
    post_from_html,
    post_from_text,
    title_of_markdown,
)
from pyterrier_mathamr.posts.html import title_of_html
from pyterrier_mathamr.posts.latex_document import read_latex
from pyterrier_mathamr.posts.markdown import read_markdown
from pyterrier_mathamr.posts.rows import tell_unclosed
from pyterrier_mathamr.posts.unicode_math import latex_of_unicode

from .sources import IDS, DocumentError

_TEXTS = ("html", "body", "text", "contents", "markdown", "latex")

LONGEST_POST = 10_000_000
"""Characters of a title or text."""


class Document(NamedTuple):
    """A post as it is indexed.

    Attributes:
        docno: its id.
        title: HTML of its title, formulas as math containers; may be empty.
        html: HTML of its body, likewise.
    """

    docno: str
    title: str
    html: str

    def record(self) -> dict[str, str]:
        """Return the columns that builders and indexers read."""
        return self._asdict()


def document_of(place: str, record: Mapping[str, Any], bare_formulas: bool) -> Document:
    """Read one post: its id, and its text in the form that the name of the column says."""
    docno = next((str(record[name]) for name in IDS if not is_missing(record.get(name))), "")
    if not docno.strip():
        raise DocumentError(place, f"no id; give one of {', '.join(IDS)}")
    kind = next((name for name in _TEXTS if not is_missing(record.get(name))), "")
    if not kind:
        found = ", ".join(sorted(map(str, record))) or "nothing"
        raise DocumentError(place, f"no text; give one of {', '.join(_TEXTS)}, not {found}")
    title = "" if is_missing(record.get("title")) else record["title"]
    for text in (title, record[kind]):
        if isinstance(text, str) and len(text) > LONGEST_POST:
            raise DocumentError(place, f"its {len(text):,} characters are more than {LONGEST_POST:,}; split it")
    posts = _read(docno, kind, record[kind], title, bare_formulas)
    title_post, body = (tell_unclosed(docno, post) for post in posts)
    if not title_post.text and isinstance(record.get("title_or"), str):
        title_post = post_from_text(record["title_or"])
    if not title_post.text and not body.text:
        raise DocumentError(place, "the post is empty")
    title_post, body = in_latex(title_post), in_latex(body)
    return Document(docno, _html(docno, title_post, 0), _html(docno, body, len(title_post.formulas)))


def in_latex(post: MathPost) -> MathPost:
    r"""Rewrite formulas typed in Unicode, so that ``√2`` and ``\sqrt{2}`` have the same symbols in every index."""
    formulas = (PostFormula(latex_of_unicode(formula.latex), formula.id) for formula in post.formulas)
    return replace(post, formulas=tuple(formulas))


def _read(docno: str, kind: str, text: Any, title: Any, bare: bool) -> tuple[MathPost, MathPost]:
    """Read title and body."""
    read: Callable[..., MathPost]
    if kind == "latex" and isinstance(text, str):
        found, text, problems = read_latex(text)
        title, read = title or found, post_from_text
    elif kind == "markdown" and isinstance(text, str) and isinstance(title, str):
        if not title:
            title, text = title_of_markdown(text)
        (title, text), problems = read_markdown(title, text)
        read = post_from_html
    else:
        found, text = title_of_html(text) if kind == "html" and isinstance(text, str) else ("", text)
        title, problems = title or found, ()
        read = post_from_html if kind == "html" else post_from_any
    for what, where in problems:
        tell(docno, what, where)
    return read(title, bare_formulas=bare), read(text, bare_formulas=bare)


def _html(docno: str, post: MathPost, first: int) -> str:
    """Write a post as HTML in which each formula is a container with its id."""
    pieces: list[str] = []
    for line in post.text.split("\n"):
        if not line:
            continue
        parts, at = [], 0
        for match in PLACEHOLDER.finditer(line):
            formula = post.formulas[int(match[1])]
            name = formula.id or formula_id(docno, first + int(match[1]))
            parts.append(_escaped(line[at : match.start()]))
            latex = escape(formula.latex, quote=False)
            parts.append(f'<span class="math-container" id="{escape(name)}">{latex}</span>')
            at = match.end()
        parts.append(_escaped(line[at:]))
        pieces.append(f"<p>{''.join(parts)}</p>")
    return "".join(pieces)


def _escaped(text: str) -> str:
    """Write text as HTML; a dollar that delimited no formula must not when it is read again."""
    return escape(text, quote=False).replace("$", "\\$")
