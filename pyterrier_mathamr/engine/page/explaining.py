"""An explanation as the page shows it: both texts, what is alike in one color, and a row for each part of the score.

Each row of the table is written as the texts are: formulas as formulas, words and formulas in the colors of the query's
parts. The rows and the sum of those that are left out add up to the score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr.engine.reader import EngineSnapshot
from pyterrier_mathamr.engine.snippets import Matcher, Piece, best_piece, color_of, marked_html, marked_post
from pyterrier_mathamr.explain import Explanation, explain_score
from pyterrier_mathamr.formula.display.rendering import formula_span
from pyterrier_mathamr.posts import MathPost, post_from_html

_ROWS = 60
_LONGEST = 300  # characters of a sentence
_ALIGNED = 500_000  # characters; symbols of a longer post are not compared with the query's formula by formula
_NAMES = {"bm25": "BM25", "mathamr": "MathAMR+"}


def explained(engine: EngineSnapshot, q: str, docno: str, system: str) -> dict[str, Any]:
    """Explain the score of a post.

    Args:
        engine: what is searched.
        q: the query.
        docno: the post.
        system: ``blend``, or ``bm25`` or ``mathamr``, of which the blend is the weighted sum.

    Raises:
        UnknownIdError: there is no such post.
    """
    query, matcher = engine.read_query(q), engine.matcher(q)
    post, titled = read_post(engine, docno)
    parts = _explanation(engine, q, docno, system, aligned=len(post.text) <= _ALIGNED).parts
    matched = _matched_formulas(parts)

    def of_document(formula: int) -> str:
        like = matched.get(formula)
        return matcher.color_of_formula(post.formulas[formula].latex) if like is None else color_of(like)

    counted = parts[parts["contribution"] != 0]
    rest = counted["contribution"].iloc[_ROWS:]
    of_query, of_post = _Cells(query, matcher, color_of), _Cells(post, matcher, of_document)
    document = shown_piece(post, best_piece(post, matcher), matcher, titled, of_document)
    return {
        "docno": docno,
        "system": system,
        "score": float(parts["contribution"].sum()),
        "query_html": marked_post(query, matcher, color_of),
        "document_html": document.pop("html"),
        "document": document,
        "parts": [_row(part, of_query, of_post) for part in counted.head(_ROWS).itertuples(index=False)],
        "rest": {"parts": len(rest), "contribution": float(rest.sum())},
    }


def read_post(engine: EngineSnapshot, docno: str) -> tuple[MathPost, bool]:
    """Read a post, and whether its first block is a title."""
    [document] = engine.indexes.posts.get_many([docno])
    return post_from_html(document.html, document.title), bool(post_from_html(document.title).text)


def shown_piece(
    post: MathPost, piece: Piece, matcher: Matcher, titled: bool, formula_color: Callable[[int], str] | None = None
) -> dict[str, Any]:
    """A piece of a post, and where it is in the post."""
    text = MathPost(piece.text, post.formulas)
    html = marked_post(text, matcher, formula_color, titled=titled and not piece.start)
    return {"html": html, "start": piece.start, "end": piece.end, "characters": piece.characters}


def _explanation(engine: EngineSnapshot, q: str, docno: str, system: str, *, aligned: bool) -> Explanation:
    """Explain the score of the blend, or the one of its systems by its own retriever; aligned with the post's texts."""
    asked = with_objects(engine.frame(q), docno=[docno], **({"graph": [engine.graph(docno)]} if aligned else {}))
    if system == "blend":
        return engine.retriever().explain(asked)
    retriever = engine.bm25(num_results=1) if system == "bm25" else engine.mathamr(num_results=1)
    return explain_score(retriever, asked).scaled(1.0, _NAMES[system])


def _row(part: Any, query: _Cells, post: _Cells) -> dict[str, Any]:
    """Write a row of :attr:`Explanation.parts`."""
    return {
        "system": part.system,
        "part": part.part,
        "query_html": query.cell(part.query_row, part.query),
        "document_html": post.cell(part.document_row, part.document),
        "contribution": float(part.contribution),
    }


def _matched_formulas(parts: pd.DataFrame) -> Mapping[int, int]:
    """Formulas of the post to the formula of the query that gets most from them."""
    rows = parts[
        parts["part"].isin(["formula", "symbols"]) & (parts["document_row"] >= 0) & (parts["contribution"] > 0)
    ]
    matched: dict[int, int] = {}
    for query_row, document_row in zip(rows["query_row"], rows["document_row"], strict=True):
        matched.setdefault(int(document_row), int(query_row))
    return matched


class _Cells:
    """Writes the parts of one of the two texts."""

    def __init__(self, post: MathPost, matcher: Matcher, formula_color: Callable[[int], str]) -> None:
        self._post, self._matcher, self._color = post, matcher, formula_color
        self._sentences = post.sentences

    def cell(self, row: int, text: str) -> str:
        """Write a part."""
        formulas = len(self._post.formulas)
        if row < 0:
            return marked_html(text, MathPost(text, ()), self._matcher, lambda _: "")
        if row < formulas:
            return formula_span(self._post.formulas[row].latex, self._color(row))
        if row < formulas + len(self._sentences):
            return marked_html(_cut(self._sentences[row - formulas]), self._post, self._matcher, self._color)
        return "<i>the whole text</i>"


def _cut(text: str) -> str:
    """Shorten a text between words, which placeholders are."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} …"
