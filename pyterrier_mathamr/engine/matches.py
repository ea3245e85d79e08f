"""Good matches: whether a post answers a question at all, estimated from the collection itself.

::

    M(Q, D) = S(Q, D) · c(Q)      the engine's score, and the share of the question that the collection knows
    match   = the share of unrelated pairs of question and post with a lower M, 0 to 1

Unrelated pairs are random sentences and titles of posts with random other posts, not of the same thread or file. A
question that is a formula, with three words at most, is compared with random formulas instead: it has few parts, so
that some post nearly always has something similar. If all posts are on one subject, or nearly the same, even these
pairs score high; no score counts as higher than the one at the same level of ARQMath, so that a right answer stays a
good match.

S by itself is high for a question on another subject that shares one word with some post, and for words that the model
has never seen, whose vectors are similar: ``zzz qqq`` has 50 points. So c lowers all scores of a question whose words
no post has; the ranking is unchanged. See docs/archive/engine.md for how often the threshold is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.posts import PLACEHOLDER, Document, MathPost, post_from_any, post_from_html
from pyterrier_mathamr.store.saved import field, finite

from .ranking import BlendedRetriever, Floats, ReadQuery

if TYPE_CHECKING:
    from .generations import Indexes
    from .posts import PostStore

GOOD = 0.9
"""The least ``match`` of a good match: nine of ten random posts are further from a random question."""

LEVELS = np.concatenate([np.arange(0, 900, 50), np.arange(900, 990, 10), np.arange(990, 1000)]) / 1000
"""The shares of unrelated pairs whose scores are kept, 0 to .999."""

QUESTIONS, POSTS = 64, 64
"""Random questions, and random posts for each."""

FEWEST = 50
"""Posts below which a collection is too small for an estimate; then the scores of ARQMath are used."""

_CHANGED = 0.1  # share of added and deleted posts from which scores are estimated again
_FEWEST_WORDS, _LONGEST = 4, 1_000  # words and characters of a random question
_SHORTEST = 3  # characters of a random formula


@dataclass(frozen=True)
class UnrelatedScores:
    """How high unrelated posts score."""

    sentences: tuple[float, ...]  # M of unrelated pairs of a sentence and a post at each of :data:`LEVELS`, ascending
    formulas: tuple[float, ...]  # M of unrelated pairs of a formula and a post
    posts: int  # the number of posts that it was estimated from
    changed: int = 0  # the number of posts that were added or deleted since

    def match(self, question: MathPost, scores: Floats) -> Floats:
        """Return the share of unrelated pairs with a lower M: float64 ``[m]``, at most .999."""
        words = len(PLACEHOLDER.sub(" ", question.text).split())
        of_formula = question.formulas and words < _FEWEST_WORDS
        shares: Floats = np.interp(scores, self.formulas if of_formula else self.sentences, LEVELS)
        return shares

    def after(self, old: PostStore, new: PostStore) -> UnrelatedScores | None:
        """Return it for a changed collection; ``None`` if so much has changed that it no longer applies."""
        changed = self.changed + len(np.setxor1d(old.rows().sources, new.rows().sources))
        crossed = (self.posts < FEWEST) != (len(new) < FEWEST)
        return None if crossed or changed > _CHANGED * self.posts else replace(self, changed=changed)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> UnrelatedScores:
        """Read it from the manifest of an engine.

        Raises:
            ValueError: it is malformed.
        """
        sentences, formulas = (
            tuple(finite(score, "score") for score in field(stored, name, list)) for name in ("sentences", "formulas")
        )
        if any(len(scores) != len(LEVELS) or list(scores) != sorted(scores) for scores in (sentences, formulas)):
            raise ValueError(f"its scores are not {len(LEVELS)} numbers in ascending order")
        return cls(sentences, formulas, field(stored, "posts", int), field(stored, "changed", int))


OF_ARQMATH = {
    "mathamr-plus-mini": (
        (
            -7.07, 1.77, 4.11, 5.63, 7.09, 8.09, 8.99, 9.93, 10.87, 11.78, 12.66, 13.56, 14.47, 15.45, 16.51, 17.65,
            18.82, 20.63, 22.64, 23.04, 23.48, 24.19, 24.99, 25.7, 27.01, 28.55, 30.11, 33.95, 34.42, 34.89, 35.62,
            36.21, 37.19, 37.96, 38.75, 40.72, 43.96,
        ),
        (
            -8.16, 1.89, 4.46, 6.05, 7.44, 8.59, 9.72, 10.79, 11.83, 12.78, 13.79, 14.92, 16.02, 17.16, 18.48, 19.92,
            21.63, 23.88, 27.22, 28.06, 28.91, 29.88, 31.2, 33.1, 35.21, 37.5, 41.94, 49.65, 50.78, 52.5, 54.8, 57.41,
            58.93, 61.57, 64.34, 66.91, 71.21,
        ),
    ),
    "mathamr-plus-text": (
        (
            -14.29, -2.76, -0.96, 0.0, 1.09, 1.95, 2.82, 3.69, 4.58, 5.47, 6.24, 7.05, 7.87, 8.92, 9.95, 11.17, 12.62,
            14.14, 16.7, 17.22, 18.3, 19.0, 19.82, 20.67, 21.47, 22.79, 25.0, 28.37, 28.82, 29.58, 30.1, 31.45, 33.12,
            34.95, 37.85, 39.35, 42.16,
        ),
        (
            -10.31, -1.6, -0.09, 0.97, 1.93, 2.79, 3.64, 4.44, 5.27, 6.1, 6.95, 7.85, 8.89, 9.95, 11.15, 12.51, 14.16,
            16.34, 19.26, 20.06, 20.9, 22.0, 23.08, 24.83, 26.59, 28.58, 31.49, 36.15, 36.81, 38.17, 39.86, 40.77,
            42.06, 44.75, 47.08, 48.97, 53.23,
        ),
    ),
}  # fmt: skip
OF_ARQMATH["mathamr-plus-text-large"] = OF_ARQMATH["mathamr-plus-text"]
"""Of sentences and of formulas with 6,164 posts of ARQMath, at each of :data:`LEVELS`; ``python -m studies matches``
prints them."""


def unrelated_scores(indexes: Indexes, retriever: BlendedRetriever, model: str) -> UnrelatedScores:
    """Score random questions of a collection against random other posts of it; the same posts give the same scores."""
    docnos = sorted(indexes.posts.snapshot())
    bundled = OF_ARQMATH.get(model, OF_ARQMATH["mathamr-plus-mini"])
    if len(docnos) < FEWEST:
        return UnrelatedScores(*bundled, len(docnos))
    chooser = random.Random(0)
    sample = indexes.posts.get_many(chooser.sample(docnos, min(2 * QUESTIONS, len(docnos))))
    others = indexes.posts.get_many(chooser.sample(docnos, min(4 * POSTS, len(docnos))))

    def least(choose: Callable[[MathPost, random.Random], str], bounds: tuple[float, ...]) -> tuple[float, ...]:
        texts = [(post, choose(post_from_html(post.html, post.title), chooser)) for post in sample]
        asked = [(post, text) for post, text in texts if text][:QUESTIONS]
        with gathered():  # faults of posts, which were reported before
            queries = retriever.read({str(number): post_from_any(text) for number, (_, text) in enumerate(asked)})
        scores: list[float] = []
        for (source, _), query in zip(asked, queries, strict=True):
            unrelated = [post for post in chooser.sample(others, len(others)) if not _related(source, post)][:POSTS]
            of_posts = retriever.score(query, retriever.documents([post.docno for post in unrelated]))
            scores += (share_known(query, len(docnos)) * of_posts).tolist()
        if not scores:
            return bounds  # all posts are of one thread, or none has such a text
        return tuple(np.minimum(np.quantile(scores, LEVELS), bounds).tolist())

    return UnrelatedScores(least(_sentence, bundled[0]), least(_formula, bundled[1]), len(docnos))


def percent(match: float) -> str:
    """Write a match as text, rounded down: ``99.9 %`` at most."""
    return f"{int(1000 * match + 1e-9) / 10:.1f} %"


def share_known(query: ReadQuery, posts: int) -> float:
    """Compute c(Q): the share of a question's words and symbols, weighted by rarity, that occur in some post.

    In N posts a missing word counts N / (N + 50): few posts also lack words of their own subject.
    """
    known, unknown = query.tokens.greatest(structures=False), query.tokens.unknown()
    return known / (known + unknown * posts / (posts + FEWEST)) if known else 0.0


def _sentence(post: MathPost, chooser: random.Random) -> str:
    """Choose the title or a sentence of a post; nothing where all are short."""
    texts = [text_of(MathPost(sentence, post.formulas)) for sentence in post.sentences[:100]]
    long = [text for text in texts if len(text.split()) >= _FEWEST_WORDS and len(text) <= _LONGEST]
    return chooser.choice(long) if long else ""


def _formula(post: MathPost, chooser: random.Random) -> str:
    """Choose a formula of a post, of more than one or two characters."""
    formulas = [formula.latex for formula in post.formulas]
    long = [latex for latex in formulas if len(latex.replace(" ", "")) >= _SHORTEST and len(latex) <= _LONGEST]
    return f"${chooser.choice(long)}$" if long else ""


def _related(post: Document, other: Document) -> bool:
    same_file = bool(post.origin.kind) and post.origin[:2] == other.origin[:2]
    return same_file or bool(({post.docno, post.parent} & {other.docno, other.parent}) - {""})
