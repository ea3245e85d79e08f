"""What a parser of text to AMR is, and all that does not depend on which one it is."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost

from .errors import AmrError, PenmanError
from .graph import AmrGraph
from .merge import Part, chunked, merged, part_of
from .penman_io import decode_penman


@runtime_checkable
class AmrParser(Protocol):
    """A parser of English text with formula placeholders to AMR.

    Attributes:
        name: what `get_parser` knows it by.
    """

    name: str

    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse sentences, each for itself, to one Penman text each."""
        ...

    def parse_post(self, post: MathPost) -> AmrGraph:
        """Parse a post to one graph in which each of its formulas is exactly one node."""
        ...

    def parse_posts(self, posts: Sequence[MathPost]) -> list[AmrGraph]:
        """Parse posts; the graphs are those of `parse_post`."""
        ...


class TextParser(ABC):
    """A parser that needs only say how texts become Penman; posts are cut, merged and repaired here.

    Attributes:
        name: what `get_parser` knows it by.
        unit: what of a post is one text: a sentence, or a passage of sentences of at most 500 tokens.
    """

    name: str
    unit: Literal["sentence", "passage"] = "sentence"

    @abstractmethod
    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse texts, each for itself, to one Penman text each."""

    def parse_post(self, post: MathPost) -> AmrGraph:
        """Parse a post to one graph in which each of its formulas is exactly one node."""
        return self.parse_posts([post])[0]

    def parse_posts(self, posts: Sequence[MathPost]) -> list[AmrGraph]:
        """Parse posts.

        Args:
            posts: the posts.

        Returns:
            For each post its graph: sentences under ``multi-sentence``, a single one by itself, ``amr-empty`` for none.
        """
        texts = [post.sentences if self.unit == "sentence" else tuple(chunked(post.sentences)) for post in posts]
        parts = iter(self.parts_of([text for own in texts for text in own]))
        return [
            merged([next(parts) for _ in own], range(len(post.formulas)))
            for post, own in zip(posts, texts, strict=True)
        ]

    def parts_of(self, texts: Sequence[str]) -> list[Part]:
        """Parse texts to parts; what does not decode is reported and counts as an empty part."""
        answers = self.parse_sentences(texts)
        if len(answers) != len(texts):
            raise AmrError(f"parser {self.name} gave {len(answers)} graphs for {len(texts)} texts.")
        parts = []
        for text, answer in zip(texts, answers, strict=True):
            try:
                parts.append(part_of(decode_penman(answer)))
            except PenmanError as error:
                told = f"parser {self.name} gave no graph for {text[:80]!r}, its formulas are kept: {error}"
                warnings.warn(told, MathAMRWarning, stacklevel=2)
                parts.append(Part())
        return parts


def placeholders_in(text: str) -> set[int]:
    """The numbers of the placeholders in a text."""
    return {int(number) for number in PLACEHOLDER.findall(text)}
