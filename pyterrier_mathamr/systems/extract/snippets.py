"""Snippets of a post: runs of whole sentences, formulas printed as ``$latex$``.

::

    7 sentences, sizes 5 to 10     middle       (0,5) (0,6) (0,7) (1,5) (1,6) (2,5)      start and size
                                   beginning    (0,5) (0,6) (0,7)
    4 sentences                    both         (0,4)

A snippet is refused if it has fewer words than the shortest that is asked for, more characters than the limit, or an
odd number of dollars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Literal, NamedTuple

from pyterrier_mathamr.posts import MathPost, plain_text

Start = Literal["beginning", "middle"]


class Snippet(NamedTuple):
    """A run of sentences of a post.

    Attributes:
        start: the number of its first sentence, from 0.
        size: the number of its sentences; 0 for a part of one.
        text: what it says.
    """

    start: int
    size: int
    text: str


def windows(count: int, start: Start, sizes: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """List the runs of sentences that are candidates, by start and size."""
    least, most = sizes
    if 0 < count < least:
        yield 0, count
    elif start == "beginning":
        yield from ((0, size) for size in range(least, count + 1))
    else:
        for first in range(count - least + 1):
            yield from ((first, size) for size in range(least, min(most, count - first) + 1))


def snippets_of(
    post: MathPost, start: Start, sizes: tuple[int, int], *, shortest: int = 20, limit: int = 1200
) -> list[Snippet]:
    """Cut a post into snippets, without those that are refused.

    Args:
        post: the post.
        start: see :func:`windows`.
        sizes: see :func:`windows`.
        shortest: the fewest words, split at white space.
        limit: the most Unicode characters.
    """
    sentences = printed_sentences(post)
    lengths = [len(sentence) for sentence in sentences]
    found = []
    for first, size in windows(len(sentences), start, sizes):
        if sum(lengths[first : first + size]) + size - 1 > limit:
            continue
        text = " ".join(sentences[first : first + size])
        if not text.count("$") % 2 and len(text.split()) >= shortest:
            found.append(Snippet(first, size, text))
    return found


def longest_prefix(post: MathPost, limit: int = 1200) -> Snippet | None:
    """Return the longest beginning of a post within a limit, for a post whose snippets are all refused.

    The paper, whose authors chose by hand, is silent: whole sentences, without those before the first that fits; where
    none fits, whole words and formulas of the first sentence. An even number of dollars is preferred.

    Args:
        post: the post.
        limit: the most Unicode characters.

    Returns:
        The snippet; ``None`` for a post that has nothing within the limit.
    """
    sentences = printed_sentences(post)
    first = next((i for i, sentence in enumerate(sentences) if len(sentence) <= limit), None)
    if first is not None:
        return _prefix(sentences[first:], limit)._replace(start=first)
    for i, sentence in enumerate(post.sentences):
        words = [plain_text(replace(post, text=word)) for word in sentence.split()]
        if words and len(words[0]) <= limit:
            return _prefix(words, limit)._replace(start=i, size=0)
    return None


def printed_sentences(post: MathPost) -> list[str]:
    """Return the sentences of a post with formulas as ``$latex$``."""
    return [plain_text(replace(post, text=sentence)) for sentence in post.sentences]


def _prefix(parts: Sequence[str], limit: int) -> Snippet:
    """Join as many parts as fit, the first at least; one with an even number of dollars if there is any."""
    length, fitting = -1, 0
    for part in parts:
        length += len(part) + 1
        if length > limit:
            break
        fitting += 1
    dollars = accumulate(part.count("$") for part in parts[:fitting])
    even = [size for size, count in enumerate(dollars, start=1) if not count % 2]
    size = even[-1] if even else fitting
    return Snippet(0, size, " ".join(parts[:size]))
