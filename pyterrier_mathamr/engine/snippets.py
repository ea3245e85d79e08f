"""The part of a post that answers a query best, with the matched words and formulas marked.

Each part of a query, a formula or a word, has a color, which its matches in a post share. There
are :data:`COLORS` colors: the formulas come first, then the rarest words; the other words share a quiet mark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from html import escape
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from pyterrier_mathamr.formula.display.typesetting import formula_span, joined, needs_space
from pyterrier_mathamr.posts import PLACEHOLDER, Document, MathPost, post_from_html
from pyterrier_mathamr.sparse.tokens import (
    TokenOptions,
    characters_of,
    formula_tokens,
    pieces_of,
    word_tokens,
    words_and_runs,
)

_LONGEST = 280  # characters; a formula is as long as its LaTeX
_LONGEST_SENTENCE = 1_000
_LONGEST_FORMULA = 5_000  # characters of LaTeX; a longer one is shown as its beginning
_LONGEST_HEADING = 80  # characters, of a post without a title
_EXAMINED = 300_000  # characters of a post from which snippets are chosen
_ALIKE = 0.5
LONGEST_PIECE = 50_000
"""Characters of a post that are shown at once."""
MATCHED = 50
"""Formulas of a query that are looked for in texts, the first ones."""
COLORS = 8
"""Classes ``part-0`` … of HTML, one for each color; ``part-w`` is the quiet mark."""
_QUIET = "part-w"


_tokens_of = lru_cache(1 << 14)(word_tokens)
"""The tokens of single words; posts repeat a few thousand words."""


class Matcher:
    """Finds the words and formulas that a text shares with a query."""

    def __init__(self, query: MathPost, options: TokenOptions, rarity: Callable[[str], float]) -> None:
        self._options, self._pairs = options.single, options
        self._rarity = rarity = cache(rarity)
        self._shared_tokens, self._shares = cache(self._shared_tokens_of), cache(self._shares_of)
        text = PLACEHOLDER.sub(" ", query.text)
        self._words = dict.fromkeys(word_tokens(text, self._options))
        for run in words_and_runs(text)[1]:  # is found by its pairs: many other words have its characters
            tokens = word_tokens(run, self._options)
            for character in tokens[: len(tokens) // 2 + 1] if len(tokens) > 1 else ():
                self._words.pop(character, None)
        self._formulas = [set(formula_tokens(formula.latex, options)) for formula in query.formulas[:MATCHED]]
        free = range(len(self._formulas), COLORS)
        known = sorted((word for word in self._words if rarity(word) > 0), key=rarity, reverse=True)
        self._colors = {word: f"part-{color}" for word, color in zip(known, free, strict=False)}

    def pieces(self, text: str) -> Iterator[str]:
        """Cut text into words and what lies between; a script without spaces into what the query has, and the rest."""
        for piece, unspaced in pieces_of(text):
            if not unspaced:
                yield piece
                continue
            characters = characters_of(piece)
            hits = [bool(self._shared_tokens(character)) for character in characters]
            for place, pair in enumerate(map("".join, pairwise(characters))):
                if _tokens_of(pair, self._options)[-1] in self._shared_tokens(pair):
                    hits[place : place + 2] = True, True
            for _, some in groupby(zip(hits, characters, strict=True), itemgetter(0)):
                yield "".join(character for _, character in some)

    def word(self, word: str) -> float:
        """The weight of a word, 0 for one that the query does not have."""
        return max(map(self._rarity, self._shared_tokens(word)), default=0.0)

    def color_of_word(self, word: str) -> str:
        """The class of a word of the query, or nothing for any other."""
        return next((self._colors.get(token, _QUIET) for token in self._shared_tokens(word)), "")

    def _shared_tokens_of(self, word: str) -> list[str]:
        """List the tokens of a word that the query has, and some post."""
        tokens = _tokens_of(word, self._options)
        return [token for token in tokens if token in self._words and self._rarity(token) > 0]

    def formula(self, latex: str) -> float:
        """The weight of a formula, 0 for one that shares less than half of its symbols with each of the query."""
        return max(self._shares(latex), default=0.0)

    def like(self, latex: str) -> int | None:
        """The number of the query's formula that a formula is most like, or ``None``."""
        shares = self._shares(latex)
        return shares.index(max(shares)) if any(shares) else None

    def _shares_of(self, latex: str) -> list[float]:
        """List the rarity of what a formula shares with each formula of the query."""
        tokens = set(formula_tokens(latex, self._pairs)) if self._formulas else set()
        shares = []
        for of_query in self._formulas:
            common = tokens & of_query
            alike = common and len(common) >= _ALIKE * len(tokens | of_query)
            shares.append(sum(sorted(map(self._rarity, common), reverse=True)[:3]) if alike else 0.0)
        return shares


def color_of(formula: int) -> str:
    return f"part-{formula}" if formula < COLORS else _QUIET


class Snippet(NamedTuple):
    """Some sentences of a post."""

    text: str  # with placeholders
    cut: bool  # whether the post goes on before or after it


def best_snippet(post: MathPost, matcher: Matcher) -> Snippet:
    """Choose neighboring sentences of a post with the most matched weight in at most 280 characters."""
    examined = piece_of(post, 0, _EXAMINED)
    sentences = MathPost(examined.text, post.formulas).sentences
    first, last = _best_sentences(sentences, post, matcher)
    piece = piece_of(MathPost(" ".join(sentences[first:last]), post.formulas), 0, _LONGEST_SENTENCE)
    whole = (first, last) == (0, len(sentences)) and piece.end == piece.characters
    return Snippet(piece.text, not whole or examined.end < examined.characters)


def _best_sentences(sentences: Sequence[str], post: MathPost, matcher: Matcher) -> tuple[int, int]:
    """Return the first of the sentences that match best, and the one after the last."""
    lengths = [_length(sentence, post) for sentence in sentences]
    weights = list[dict[str, float]]()  # of the matched words and formulas of each sentence
    for sentence in sentences:
        matched = {piece.lower(): matcher.word(piece) for piece in matcher.pieces(PLACEHOLDER.sub(" ", sentence))}
        for mark in PLACEHOLDER.finditer(sentence):
            latex = post.formulas[int(mark[1])].latex
            matched[f"${latex}"] = matcher.formula(latex)
        weights.append({name: weight for name, weight in matched.items() if weight > 0})
    best, where = -1.0, (0, min(1, len(sentences)))
    for first in range(len(sentences)):
        last, length, seen = first, 0, dict[str, float]()
        while last < len(sentences) and (last == first or length + lengths[last] <= _LONGEST):
            length += lengths[last]
            seen.update(weights[last])
            last += 1
        if (total := sum(seen.values())) > best + 1e-9:
            best, where = total, (first, last)
    return where


def _length(sentence: str, post: MathPost) -> int:
    return len(sentence) + sum(len(post.formulas[int(mark[1])].latex) for mark in PLACEHOLDER.finditer(sentence))


class SnippetPiece(NamedTuple):
    """A piece of a post."""

    text: str  # with placeholders
    start: int  # its first character, of the post with its formulas in LaTeX
    end: int  # the character after its last
    characters: int  # of the whole post


def piece_of(post: MathPost, start: int, longest: int | None = None) -> SnippetPiece:
    """Cut a piece of at most :data:`LONGEST_PIECE` characters out of a post, between words."""
    marks, more = [(0, 0)], 0  # begin and end of each formula: place in the text, characters written before it
    for match in PLACEHOLDER.finditer(post.text):
        marks.append((match.start(), match.start() + more))
        more += len(post.formulas[int(match[1])].latex) + 2 - len(match[0])
        marks.append((match.end(), match.end() + more))

    def place(character: int) -> int:
        number = bisect_right(marks, character, key=itemgetter(1)) - 1
        at, before = marks[number]
        return at if number % 2 else min(at + character - before, len(post.text))

    def written(place: int) -> int:
        at, before = marks[bisect_right(marks, place, key=itemgetter(0)) - 1]
        return before + place - at

    first = place(max(start, 0))
    last = place(max(start, 0) + (LONGEST_PIECE if longest is None else longest))
    if last == first < len(post.text):  # a formula that is longer
        last = marks[bisect_right(marks, first, key=itemgetter(0))][0]
    if last < len(post.text):
        blank = max(post.text.rfind(" ", first, last), post.text.rfind("\n", first, last))
        last = blank + 1 if blank > first else last
    return SnippetPiece(post.text[first:last], written(first), written(last), len(post.text) + more)


def heading(document: Document) -> MathPost:
    """Return what a post is called: its title, ``Answer to:`` and that of its question, or its first words."""
    if document.title or document.origin.kind:
        return post_from_html(document.title)
    if document.parent_title:
        question = post_from_html(document.parent_title)
        return MathPost("Answer to: " + " ".join(question.text.split()), question.formulas)
    body = post_from_html(document.html)
    first = piece_of(MathPost(next(iter(body.sentences), ""), body.formulas), 0, _LONGEST_HEADING)
    return MathPost(first.text.rstrip() + " …" * (first.end < first.characters), body.formulas)


def best_piece(post: MathPost, matcher: Matcher, start: int | None = None) -> SnippetPiece:
    """Cut a piece out of a post: the one that begins at a character, or the one with the sentences that match best."""
    if start is not None or len(post.text) + sum(len(each.latex) for each in post.formulas) < LONGEST_PIECE:
        return piece_of(post, start or 0)
    sentences = MathPost(piece_of(post, 0, _EXAMINED).text, post.formulas).sentences
    _, last = _best_sentences(sentences, post, matcher)
    before = sum(_length(sentence, post) for sentence in sentences[:last])
    return piece_of(post, 0 if before < LONGEST_PIECE else before - LONGEST_PIECE // 2)


def marked_text(snippet: Snippet, post: MathPost, matcher: Matcher) -> str:
    """Write a snippet as text, with matches as ``**word**`` and ``**$latex$**``."""

    def word(text: str) -> str:
        return f"**{text}**" if matcher.word(text) > 0 else text

    def formula(number: int) -> str:
        latex = post.formulas[number].latex
        return f"**${latex}$**" if matcher.like(latex) is not None else f"${latex}$"

    return _written(snippet.text, matcher, word, formula) + (" …" if snippet.cut else "")


def marked_html(text: str, post: MathPost, matcher: Matcher, formula_color: Callable[[int], str] | None = None) -> str:
    """Write text with placeholders as HTML, each word and formula in the color of its match in the query."""

    def word(text: str) -> str:
        color = matcher.color_of_word(text)
        return f'<mark class="{color}">{escape(text)}</mark>' if color else escape(text)

    def formula(number: int) -> str:
        latex = post.formulas[number].latex
        like = matcher.like(latex) if formula_color is None else None
        color = formula_color(number) if formula_color else "" if like is None else color_of(like)
        if len(latex) > _LONGEST_FORMULA:
            return f'<code class="tex">{escape(latex[:_LONGEST])} …</code>'
        return formula_span(latex, color, display=one_formula and needs_space(latex))

    one_formula = PLACEHOLDER.fullmatch(text.strip()) is not None
    return joined(_written(text, matcher, word, formula))


def marked_post(
    post: MathPost, matcher: Matcher, formula_color: Callable[[int], str] | None = None, *, titled: bool = False
) -> str:
    """Write a post as HTML, a paragraph for each block, marked as by :func:`marked_html`."""
    blocks = [marked_html(line, post, matcher, formula_color) for line in post.text.split("\n") if line]
    kinds = [' class="title"' if titled and i == 0 else "" for i in range(len(blocks))]
    return "".join(f"<p{kind}>{block}</p>" for kind, block in zip(kinds, blocks, strict=True))


def _written(text: str, matcher: Matcher, word: Callable[[str], str], formula: Callable[[int], str]) -> str:
    pieces: list[str] = []
    for i, part in enumerate(PLACEHOLDER.split(text)):
        if i % 2:
            pieces.append(formula(int(part)))
        else:
            pieces += [word(piece) for piece in matcher.pieces(part)]
    return "".join(pieces)


def substitution_text(substitution: Mapping[str, str]) -> str:
    """Write the values of letters and wildcards of a query in a formula; empty if all keep their names."""
    return ", ".join(f"{name} = {value}" for name, value in substitution.items() if name != value)
