r"""Query reduction: the words and formulas of a question that are worth searching with.

::

    question ──▶ distinct words and formulas ──▶ features ──▶ linear score ──▶ the best of each kind ──▶ query

    "How can I show that $x=1$ and $\sum_n 1/n$ diverge?"  ──▶  "show diverge $\sum_n 1/n$"

A question repeats itself, gives background and explains its notation; people who prepare queries for a search engine
leave out most of it. Key terms are scored as in learned query reduction (Kumaran and Carvalho, SIGIR 2009; Bendersky
and Croft, SIGIR 2008), with separate weights for words and formulas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.extending import (
    TOPIC_FORMS,
    BM25Snapshot,
    Leaf,
    Rule,
    Transformer,
    at_least,
    distinct_queries,
    empty_output,
    lex_latex,
    with_objects,
)
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, plain_text
from pyterrier_mathamr.sparse import BM25Index, word_tokens

KeyWeights = Mapping[str, Mapping[str, float]]

REDUCTION_WEIGHTS: KeyWeights = MappingProxyType(
    {
        "word": {"idf": 3.11, "title": 1.26, "length": 2.41},
        "formula": {"symbols": 0.20, "title": 1.89, "position": -0.16, "count": -0.55},
    }
)
"""Kind to feature to weight, learned on known items of arqmath-mini by ``python -m studies reduction``."""

FEATURES = {
    "word": ("idf", "title", "length", "position", "count"),
    "formula": ("symbols", "title", "position", "count"),
}
"""Kind to the features that it has."""
_COLUMNS = ("kind", "text", "kept", "score", "idf", "title", "length", "symbols", "position", "count")
_PIECE = re.compile(rf"{PLACEHOLDER.pattern}|[^\W_]+")
_LETTERS = 12


class QueryReduction(Leaf, Transformer):
    r"""Reduces questions to their key terms: ``query`` has the best words, then the best formulas between dollars.

    The score of a word or formula is a weighted sum of its features, which need neither a parser nor a model:

    =========  =========================================================================================================
    idf        of a word, ln((m + 1) / n) / ln(m + 1) for n of m documents; 0 for a word that the index lacks
    title      whether it is in the title, the first line of a text with several
    length     of a word, its characters / 12, at most 1
    symbols    of a formula, ln(1 + its LaTeX tokens) / 4
    position   of its first occurrence, from 0 at the beginning of the question to 1
    count      ln of its occurrences
    =========  =========================================================================================================

    Formulas of one symbol are left out. The form is as in :func:`~pyterrier_mathamr.arqmath.read_manual_topics`.
    Words are in the order of the question and repeated as there, since rankings weigh a word by its occurrences.
    ``title`` and ``body``, which later stages would read instead of ``query``, are dropped; the whole question is in
    ``query_0``, and ``pt.rewrite.reset()`` restores it for a stage that reads everything, such as a neural re-ranker.

    Args:
        bm25_index: counts the documents of a word; its options define which words are the same, and the stop words.
        words: how many distinct words are kept; ``None`` for all.
        formulas: how many distinct formulas are kept; ``None`` for all.
        weights: ``word`` and ``formula`` to the weight of each feature, 0 if missing; ``None`` for
            the weights learned on known items of arqmath-mini.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        reduced = QueryReduction(bm25_index) >> bm25_index.retriever()
        pipeline = reduced >> pt.rewrite.reset() >> encode >> index.scorer()
    """

    label, help_url = "Query reduction", "https://doi.org/10.1145/1571941.1572038"
    checks: ClassVar[Mapping[str, Rule]] = {
        "words": at_least(0).or_none(),
        "formulas": at_least(0).or_none(),
        "weights": Rule(f"weights of some of {FEATURES}", lambda value: _are_weights(value)).or_none(),
    }

    def __init__(
        self,
        bm25_index: BM25Index,
        words: int | None = 20,
        formulas: int | None = 2,
        *,
        weights: KeyWeights | None = None,
    ) -> None:
        super().__init__()
        self.bm25_index, self.words, self.formulas, self.weights = bm25_index, words, formulas, weights

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Reduce each query of a frame, one row for each ``qid``.

        Args:
            inp: ``query``, or ``title`` and ``body``, each HTML or text with formulas between dollars.

        Returns:
            The frame without ``title`` and ``body``, with ``query``, ``query_0``, ``words`` (a text) and ``formulas``
            (a list of LaTeX without dollars). A query without words and formulas stays blank.

        Raises:
            pt.validate.InputValidationError: there is no column to read, or the frame is a ranking.
        """
        with pt.validate.any(inp, context=self) as validation:
            for columns in TOPIC_FORMS:
                validation.query_frame(extra_columns=list(columns))
        queries = distinct_queries(inp)
        if queries.empty:
            return empty_output(_pushed(queries, []), ["query", "words", "formulas"])
        snapshot = self.bm25_index.snapshot()
        posts = [snapshot.read_query(row) for row in queries.to_dict("records")]
        reduced = []
        for terms in (self._scored(post, snapshot) for post in posts):
            written = sorted(place for term in terms["word"][: self.words] for place in term["written"])
            latex = [term["text"] for term in terms["formula"][: self.formulas]]
            reduced.append((" ".join(word for _, word in written), latex))
        return with_objects(
            _pushed(queries, posts),
            query=[" ".join([words, *(f"${latex}$" for latex in formulas)]).strip() for words, formulas in reduced],
            words=[words for words, _ in reduced],
            formulas=[formulas for _, formulas in reduced],
        )

    def terms(self, query: Mapping[str, Any] | pd.Series[Any]) -> pd.DataFrame:
        """Show how each word and formula of a query is scored, and whether it is kept.

        Args:
            query: a row with ``query``, or ``title`` and ``body``.

        Returns:
            A row for each distinct word and formula, words first, each kind by descending score: ``kind``, ``text`` (a
            word as first written, or LaTeX), ``kept``, ``score``, and the features, ``NaN`` if its kind has
            none. The score is the sum over the features of weight times value.
        """
        snapshot = self.bm25_index.snapshot()
        scored = self._scored(snapshot.read_query(dict(query)), snapshot)
        for kind, most in (("word", self.words), ("formula", self.formulas)):
            for place, term in enumerate(scored[kind]):
                term["kept"] = most is None or place < most
        rows = [{"kind": kind, **term} for kind, terms in scored.items() for term in terms]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def _scored(self, post: MathPost, snapshot: BM25Snapshot) -> dict[str, list[dict[str, Any]]]:
        """Order the words and the formulas by descending score, of equal ones the earlier first."""
        terms_of, weights = key_terms(post, snapshot), self.weights or REDUCTION_WEIGHTS
        for kind, terms in terms_of.items():
            for term in terms:
                term["score"] = sum(weight * term[name] for name, weight in weights[kind].items())
            terms.sort(key=lambda term: -term["score"])
        return terms_of


def key_terms(post: MathPost, snapshot: BM25Snapshot) -> dict[str, list[dict[str, Any]]]:
    """Find the distinct words and formulas of a question with their features, in the order of the question.

    Returns:
        ``word`` and ``formula`` to dictionaries: ``text``, ``written`` (place and spelling of each occurrence), and the
        features.
    """
    options = replace(snapshot.tokens, bigrams=False, formulas=False)
    first, _, rest = post.text.partition("\n")
    end_of_title = len(first) if rest.strip() else 0
    pieces = list(_PIECE.finditer(post.text))
    terms_of: dict[str, dict[str, dict[str, Any]]] = {"word": {}, "formula": {}}
    for place, piece in enumerate(pieces):
        if piece[1] is not None:
            kind, key = "formula", post.formulas[int(piece[1])].latex
            text = key
        else:
            kind, text = "word", piece[0]
            key = next(iter(word_tokens(text, options)), "")
        if key and (kind == "word" or len(lex_latex(key)) > 1):
            term = terms_of[kind].setdefault(key, {"text": text, "written": [], "title": 0.0})
            term["written"].append((place, text))
            term["title"] = max(term["title"], float(piece.start() < end_of_title))
    postings, documents = snapshot.postings, len(snapshot) + 1
    for kind, terms in terms_of.items():
        for key, term in terms.items():
            term["position"] = term["written"][0][0] / len(pieces)
            term["count"] = math.log(len(term["written"]))
            if kind == "word":
                term["idf"] = 0.0
                if key in postings.terms:
                    holding = len(postings.documents_of(postings.terms[key]))
                    term["idf"] = math.log(documents / holding) / math.log(documents)
                term["length"] = min(len(term["text"]) / _LETTERS, 1.0)
            else:
                term["symbols"] = math.log(1 + len(lex_latex(key))) / 4
    return {kind: list(terms.values()) for kind, terms in terms_of.items()}


def _pushed(queries: pd.DataFrame, posts: Sequence[MathPost]) -> pd.DataFrame:
    """Keep the whole question in ``query_0``, and leave out ``title`` and ``body``."""
    given = queries["query"] if "query" in queries else [None] * len(queries)
    whole = [
        text if isinstance(text, str) and text.strip() else plain_text(post)
        for text, post in zip(given, posts, strict=False)
    ]
    kept = queries.drop(columns=["title", "body", "words", "formulas"], errors="ignore")
    pushed: pd.DataFrame = pt.model.push_queries(with_objects(kept, query=whole))
    return pushed


def _are_weights(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and set(value) == set(FEATURES)
        and all(isinstance(of, Mapping) and set(of) <= set(FEATURES[kind]) for kind, of in value.items())
    )
