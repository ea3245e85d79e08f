"""Why a post has its score: what each word and each part of the query contributes to it.

The parts are those of :mod:`.ranking`: one for each word and each formula of the query whose tokens the post has, too,
and one for each of the query's vectors with the most similar vector of the post. Their contributions add up to the
score.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pyterrier_mathamr.explain.rendering import formula_html
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost
from pyterrier_mathamr.systems.bm25.tokens import TokenOptions, formula_tokens, word_tokens
from pyterrier_mathamr.systems.sparse.reading import query_post

from .ranking import SCALE, BlendedRetriever

_COLUMNS = [
    "system", "part", "query", "document", "query_row", "document_row", "similarity", "weight", "contribution"
]  # fmt: skip
_SHOWN = ["system", "part", "query", "document", "contribution"]
_PLAIN = TokenOptions(bigrams=False)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a post has its score.

    Attributes:
        docno: the post.
        score: as in the ranking.
        parts: a row for each part of the score, the greatest contribution first: ``system`` (``BM25``, ``MathAMR+``),
            ``part`` (``word``, ``symbols`` of a formula, ``formula``, ``sentence``, ``document``), ``query`` and
            ``document`` (texts; LaTeX of a formula), ``query_row`` and ``document_row`` (of formulas and vectors; -1
            for words), ``similarity`` and ``weight`` (of vectors), ``contribution``. The contributions add up to
            ``score``.
        query_html: the query with its formulas, for people.
        document_html: the same of the post.
    """

    docno: str
    score: float
    parts: pd.DataFrame
    query_html: str = ""
    document_html: str = ""

    def __repr__(self) -> str:
        return f"Explanation({self.docno!r}, score={self.score:.2f})\n{self.parts[_SHOWN].head(12).to_string()}"

    def _repr_html_(self) -> str:
        """Show the texts, and each part as a bar with its number, without script."""
        greatest = max(self.parts["contribution"].abs().max(), 1e-12) if len(self.parts) else 1.0
        rows = "".join(_bar(part, greatest) for part in self.parts.head(20).itertuples(index=False))
        return (
            f"<div><p><b>{escape(self.docno)}</b> · score {self.score:.2f}</p><table><tr><th>part</th><th>query</th>"
            f"<th>post</th><th></th><th>contribution</th></tr>{rows}</table>"
            f"<details><summary>texts</summary><h4>query</h4>{self.query_html}<h4>post</h4>{self.document_html}"
            "</details></div>"
        )


class Explained(NamedTuple):
    """The post whose score is taken apart.

    Attributes:
        docno: its id.
        post: its text and formulas.
        graph: its graph, which names the rows of its vectors.
    """

    docno: str
    post: MathPost
    graph: MathAMRGraph


def explain(retriever: BlendedRetriever, query: Mapping[str, Any], read: MathPost, found: Explained) -> pd.DataFrame:
    """Take a score apart.

    Args:
        retriever: whose score.
        query: a row of an encoded query: ``query``, ``query_embs``, ``query_graph`` and, where the model has them,
            ``query_weights``, ``query_document_weight``, ``query_formula_ids``.
        read: the query's text and formulas.
        found: the post.

    Returns:
        The parts, as in :class:`Explanation`.
    """
    of_words, of_vectors = retriever.bounds(query)
    words = _words(retriever, query, read, found, SCALE * retriever.weights.words / of_words)
    vectors = _vectors(retriever, query, found, SCALE * retriever.weights.graph / of_vectors)
    parts = pd.DataFrame([*words, *vectors], columns=_COLUMNS)
    return parts.sort_values("contribution", ascending=False, kind="stable", ignore_index=True)


def _words(
    retriever: BlendedRetriever, query: Mapping[str, Any], read: MathPost, found: Explained, scale: float
) -> Iterator[tuple[Any, ...]]:
    """What each word and each formula of the query contributes to BM25, by the tokens that the post has, too."""
    tokens_of = retriever.bm25.token_options()
    shares = retriever.bm25.scorer().explain(query_post(query), found.docno)
    given = {token: scale * share for token, share in shares.items()}
    sources = Counter[str]()
    of_formulas = [Counter(formula_tokens(formula.latex, tokens_of)) for formula in read.formulas]
    of_words = Counter(word_tokens(PLACEHOLDER.sub(" ", read.text), tokens_of))
    for tokens in (*of_formulas, of_words):
        sources.update(tokens)
    for row, tokens in enumerate(of_formulas):
        parts = {token: given[token] * times / sources[token] for token, times in tokens.items() if token in given}
        if parts:
            place, latex = _most_alike(parts, found.post, tokens_of)
            yield "BM25", "symbols", read.formulas[row].latex, latex, row, place, np.nan, np.nan, sum(parts.values())
    written = {
        word_tokens(word, _PLAIN)[0]: word for word in _WORD.findall(read.text)[::-1] if word_tokens(word, _PLAIN)
    }
    for token, total in given.items():
        part = total * of_words[token] / sources[token] if sources[token] else total
        if part:
            text = " ".join(written.get(word, word) for word in token.split("_"))
            yield "BM25", "word", text, text, -1, -1, np.nan, np.nan, part


def _most_alike(parts: Mapping[str, float], post: MathPost, options: TokenOptions) -> tuple[int, str]:
    """The formula of a post that has most of what a formula of the query contributes: its row and LaTeX."""
    best, where = 0.0, -1
    for row, formula in enumerate(post.formulas):
        shared = sum(parts.get(token, 0.0) for token in set(formula_tokens(formula.latex, options)))
        if shared > best:
            best, where = shared, row
    return where, post.formulas[where].latex if where >= 0 else ""


def _vectors(
    retriever: BlendedRetriever, query: Mapping[str, Any], found: Explained, scale: float
) -> Iterator[tuple[Any, ...]]:
    """What each vector of the query contributes to MaxSim, with the vector of the post that is most similar to it."""
    if not len(query["query_embs"]):
        return
    options: dict[str, Any] = {
        name: query.get(name) for name in ("query_formula_ids", "query_weights", "query_document_weight")
    }
    options |= {"query_graph": query.get("query_graph"), "document_graph": found.graph}
    table = retriever.vectors.explain(query["query_embs"], found.docno, **options)
    for _, rows in table.groupby(["query_row", "document_row"], sort=False):  # the document's vector is in both terms
        first = rows.iloc[0]
        yield (
            "MathAMR+", first["query_kind"], first["query_text"], first["document_text"], int(first["query_row"]),
            int(first["document_row"]), float(first["similarity"]), scale * float(rows["weight"].sum()),
            scale * float(rows["contribution"].sum()),
        )  # fmt: skip


def _bar(part: Any, greatest: float) -> str:
    """A row of the table: the texts of a part, a bar and its number."""
    width = round(100 * abs(part.contribution) / greatest)
    color = "#3b6fb6" if part.contribution >= 0 else "#b65a3b"
    formula = part.part in ("formula", "symbols")
    texts = (formula_html(text) if formula else _shortened(text) for text in (part.query, part.document))
    cells = "".join(f'<td style="text-align:left">{text}</td>' for text in texts)
    return (
        f'<tr><td>{part.part}</td>{cells}<td style="width:110px"><div style="width:{width}px;height:.8em;'
        f'background:{color}"></div></td><td>{part.contribution:.2f}</td></tr>'
    )


def _shortened(text: str) -> str:
    return escape(text if len(text) <= 120 else text[:117] + "…")
