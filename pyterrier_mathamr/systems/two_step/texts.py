"""Rows of frames as the texts that the models of the two-step search read.

::

    raw        title, body       formulas as $latex$
    mathamr    graph             its labels, linearised
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr.posts import MathPost, plain_text, post_from_any, post_from_html
from pyterrier_mathamr.posts.rows import is_blank, text_of

from .graph_words import linearise

Form = Literal["raw", "mathamr"]
"""Texts with LaTeX between dollars, or linearised MathAMR graphs."""

View = Literal["title", "head", "tail", "whole"]
"""What of a question is read: its title, the beginning or the end of its body, or title and body."""

Row = Mapping[Any, Any]


def question_text(row: Row, view: View, form: Form) -> str:
    """Write what a model reads of a question."""
    if form == "mathamr":
        return _graph_text(row, "query_graph", "graph")
    title, body = text_of(row, "title"), text_of(row, "html") or text_of(row, "body")
    if not title.strip() and not body.strip():
        return plain_text(post_from_any(text_of(row, "query")))
    if view == "title":
        return plain_text(post_from_any(title))
    return plain_text(post_from_any(body, title if view == "whole" else ""))


def answer_text(row: Row, form: Form) -> str:
    """Write what a model reads of an answer."""
    if form == "mathamr":
        return _graph_text(row, "graph")
    post = MathPost("", ())
    if not is_blank(row.get("html")):
        post = post_from_html(text_of(row, "html"))
    elif not is_blank(row.get("text")):
        post = post_from_any(text_of(row, "text"))
    return plain_text(post)


def _graph_text(row: Row, *columns: str) -> str:
    graph = next((row[name] for name in columns if not is_missing(row.get(name))), None)
    return "" if graph is None or graph.is_empty else linearise(graph)
