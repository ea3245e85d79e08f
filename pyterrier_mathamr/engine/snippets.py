"""The part of a post that answers a query best, with the matched words and formulas marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from html import escape
from typing import NamedTuple

from pyterrier_mathamr.explain.rendering import COLORS, formula_span
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost
from pyterrier_mathamr.systems.bm25.tokens import TokenOptions, formula_tokens, word_tokens

_WORD = re.compile(r"[^\W_]+")
_WORDS_AND_REST = re.compile(r"[^\W_]+|[\W_]+")
_LONGEST = 280  # characters; a formula is as long as its LaTeX
_ALIKE = 0.5
Rarity = Callable[[str], float]


class Matcher:
    """Tells which words and formulas of a text a query has, too.

    Args:
        query: its text and formulas.
        options: how the index cuts texts into tokens.
        rarity: the weight of a token.
    """

    def __init__(self, query: MathPost, options: TokenOptions, rarity: Rarity) -> None:
        self._options = TokenOptions(options.stop_words, options.stem, bigrams=False)
        self._rarity = rarity
        text = PLACEHOLDER.sub(" ", query.text)
        self._words = set(word_tokens(text, self._options))
        self._formulas = [set(formula_tokens(formula.latex, options)) for formula in query.formulas]
        self._pairs = options

    def word(self, word: str) -> float:
        """The weight of a word, 0 for one that the query does not have."""
        tokens = word_tokens(word, self._options)
        return max((self._rarity(token) for token in tokens if token in self._words), default=0.0)

    def formula(self, latex: str) -> float:
        """The weight of a formula, 0 for one that shares less than half of its symbols with each of the query."""
        tokens = set(formula_tokens(latex, self._pairs))
        return max((self._shared(tokens, other) for other in self._formulas), default=0.0)

    def like(self, latex: str) -> int | None:
        """The number of the query's formula that a formula is most like, or ``None``."""
        tokens = set(formula_tokens(latex, self._pairs))
        shared = [self._shared(tokens, other) for other in self._formulas]
        return shared.index(max(shared)) if any(shared) else None

    def _shared(self, tokens: Collection[str], other: Collection[str]) -> float:
        common = set(tokens) & set(other)
        if not common or len(common) < _ALIKE * len(set(tokens) | set(other)):
            return 0.0
        return sum(sorted(map(self._rarity, common), reverse=True)[:3])


class Snippet(NamedTuple):
    """Some sentences of a post.

    Attributes:
        text: with placeholders.
        cut: whether the post goes on before or after it.
    """

    text: str
    cut: bool


def best_snippet(post: MathPost, matcher: Matcher) -> Snippet:
    """Choose neighbouring sentences of a post: those with the most matched weight in at most 280 characters."""
    sentences = post.sentences
    if not sentences:
        return Snippet("", False)
    lengths = [_length(sentence, post) for sentence in sentences]
    weights = [_matched(sentence, post, matcher) for sentence in sentences]
    best, where = -1.0, (0, 1)
    for first in range(len(sentences)):
        last, length, seen = first, 0, dict[str, float]()
        while last < len(sentences) and (last == first or length + lengths[last] <= _LONGEST):
            length += lengths[last]
            seen.update(weights[last])
            last += 1
        if (total := sum(seen.values())) > best + 1e-9:
            best, where = total, (first, last)
    return Snippet(" ".join(sentences[where[0] : where[1]]), where != (0, len(sentences)))


def _length(sentence: str, post: MathPost) -> int:
    return len(sentence) + sum(len(post.formulas[int(m[1])].latex) for m in PLACEHOLDER.finditer(sentence))


def _matched(sentence: str, post: MathPost, matcher: Matcher) -> Mapping[str, float]:
    """What of a sentence the query has, too, each word and formula once, with its weight."""
    found = {word.lower(): matcher.word(word) for word in _WORD.findall(PLACEHOLDER.sub(" ", sentence))}
    for match in PLACEHOLDER.finditer(sentence):
        latex = post.formulas[int(match[1])].latex
        found[f"${latex}"] = matcher.formula(latex)
    return {name: weight for name, weight in found.items() if weight > 0}


def marked_text(snippet: Snippet, post: MathPost, matcher: Matcher) -> str:
    """Write a snippet as text: ``**word**`` and ``**$latex$**`` are what the query has, too."""

    def word(text: str, matched: bool) -> str:
        return f"**{text}**" if matched else text

    def formula(latex: str, like: int | None) -> str:
        return word(f"${latex}$", like is not None)

    return _marked(snippet, post, matcher, word, formula)


def marked_html(snippet: Snippet, post: MathPost, matcher: Matcher) -> str:
    """Write a snippet as HTML: words in ``mark``, and each formula in the color of the query's formula it is like."""

    def word(text: str, matched: bool) -> str:
        return f"<mark>{escape(text)}</mark>" if matched else escape(text)

    def formula(latex: str, like: int | None) -> str:
        return formula_span(latex, "" if like is None else f"part-{like % COLORS}")

    return f"<p>{_marked(snippet, post, matcher, word, formula)}</p>"


def _marked(
    snippet: Snippet,
    post: MathPost,
    matcher: Matcher,
    word: Callable[[str, bool], str],
    formula: Callable[[str, int | None], str],
) -> str:
    """Write a snippet piece by piece.

    Args:
        snippet: what is written.
        post: has its formulas.
        matcher: tells what the query has, too.
        word: writes a word or the text between words, and is told whether the query has it.
        formula: writes LaTeX, and is told which formula of the query it is like.
    """
    pieces: list[str] = []
    for i, part in enumerate(PLACEHOLDER.split(snippet.text)):
        if i % 2:
            latex = post.formulas[int(part)].latex
            pieces.append(formula(latex, matcher.like(latex)))
        else:
            pieces += [word(text, matcher.word(text) > 0) for text in _WORDS_AND_REST.findall(part)]
    return "".join(pieces) + (" …" if snippet.cut else "")
