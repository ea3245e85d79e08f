"""Suggestions: words of the posts that are similar to a word of a question that no post has.

::

    stabiliser ──nearest_terms──▶ stabil, …       stems in the index of words, in the order of their edits
                                    └─▶ stability, stabilizer of posts with this stem ──▶ stabilizer, of one edit

If no post has any word of a question, nothing is found by words; and without formulas no match is good (`matches`),
whatever has similar vectors. So the question is searched with the nearest words in their place, and whatever shows the
results says so.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, placeholder
from pyterrier_mathamr.sparse.texts import Texts, nearest_terms
from pyterrier_mathamr.sparse.tokens import pieces_of, word_tokens, words_and_runs

if TYPE_CHECKING:
    from .generations import Indexes

_SHORTEST, _LONG, _LONGEST = 4, 7, 40  # letters of a word of one edit, of two edits, and at most
_SUGGESTED = 3
_WORDS = 8  # of a question, that are looked up
_LONGEST_ENDING = 5  # characters that a stemmer removes, as in ``ation``
_STEMS, _POSTS, _EXAMINED = 24, 32, 20_000  # nearest stems; posts of the first, and fewer of others; characters of each
_TAG = re.compile(r"<[^<>]*>")


class Suggestions(NamedTuple):
    """Words of a question that no post has, and what may be meant by them."""

    # each such word that is similar to words of the posts, with these, the nearest first
    words: dict[str, Sequence[str]]
    corrected: MathPost  # the question with the nearest words in place of these
    # the question that is searched: the corrected one if no post has any of its words, else as asked
    searched: MathPost

    @property
    def replaced(self) -> bool:
        """Whether the corrected question is searched."""
        return bool(self.words) and self.searched == self.corrected

    def __str__(self) -> str:
        """Say it in a sentence for each word; empty without suggestions."""
        then = "Searched for “{}” instead." if self.replaced else "Similar words: {}."
        shown = {word: similar[:1] if self.replaced else similar for word, similar in self.words.items()}
        return " ".join(f"No post has “{word}”. {then.format(', '.join(some))}" for word, some in shown.items())


def suggestions_for(question: MathPost, indexes: Indexes, similar: Callable[[str], Sequence[str]]) -> Suggestions:
    """Look up the words of a question; ``similar`` finds similar words of the posts, see :func:`similar_words`."""
    bm25 = indexes.bm25.snapshot()
    words, runs = words_and_runs(PLACEHOLDER.sub(" ", question.text))
    single = bm25.tokens.single
    tokens_of = {word: word_tokens(word, single) for word in dict.fromkeys([*words, *runs])}
    known = {word: any(map(bm25.postings.terms.__contains__, tokens)) for word, tokens in tokens_of.items() if tokens}
    if all(known.values()) or indexes.posts.called(text_of(question)):
        return Suggestions({}, question, question)
    unknown = [word for word in dict.fromkeys(words) if not known.get(word, True)]
    nearest = {word: some for word in unknown[:_WORDS] if (some := similar(word))}
    if not nearest:
        return Suggestions({}, question, question)

    def corrected(text: str) -> str:
        return "".join(nearest[piece][0] if piece in nearest else piece for piece, _ in pieces_of(text))

    pieces = enumerate(PLACEHOLDER.split(question.text))  # every second one is the number of a formula
    text = "".join(placeholder(int(piece)) if place % 2 else corrected(piece) for place, piece in pieces)
    other = replace(question, text=text)
    return Suggestions(nearest, other, question if any(known.values()) else other)


def similar_words(word: str, indexes: Indexes) -> list[str]:
    """Find words of the posts that are spelled nearly as a word, by edits, then by how many posts have them."""
    sought = unicodedata.normalize("NFKC", word).lower()
    if not _SHORTEST <= len(sought) <= _LONGEST or any(map(str.isdecimal, sought)):
        return []
    most = 2 if len(sought) >= _LONG else 1
    bm25 = indexes.bm25.snapshot()
    postings, options = bm25.postings, bm25.tokens.single
    single, places = postings.single_terms
    nearest_stems = places[nearest_terms(single, sought, most, _LONGEST_ENDING)[:_STEMS]].tolist()
    documents_of = {postings.names[place]: postings.documents_of(place) for place in nearest_stems}
    if not documents_of:
        return []
    read = [  # of each stem some posts, evenly spaced
        documents[np.linspace(0, len(documents) - 1, min(_POSTS // rank + 1, len(documents))).astype(int)]
        for rank, documents in enumerate(documents_of.values(), start=1)
    ]
    begins = {stem[:2] for stem in documents_of}
    written: Counter[str] = Counter()
    for post in indexes.posts.get_many(bm25.docnos(np.unique(np.concatenate(read)))):
        words, _ = words_and_runs(unescape(_TAG.sub(" ", f"{post.title} {post.html}"[:_EXAMINED])))
        written.update(word for word in words if word[:2].lower() in begins)
    posts_with = {
        word: len(documents_of[stem]) for word in written for stem in word_tokens(word, options) if stem in documents_of
    }
    forms = sorted(posts_with, key=lambda form: (-posts_with[form], -written[form], form))
    nearest: dict[str, str] = {}
    for place in nearest_terms(Texts.of(map(str.lower, forms)), sought, most).tolist():
        form = forms[place].lower()
        if not (form.endswith(sought) or sought.endswith(form)):  # as irrational with rational: opposites
            nearest.setdefault(form, forms[place])
    return list(nearest.values())[:_SUGGESTED]
