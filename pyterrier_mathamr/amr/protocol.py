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
from .merge import Part, merged, part_of, passages, texts_of_roots
from .penman import decode_penman


@runtime_checkable
class AmrParser(Protocol):
    """A parser of English text with formula placeholders to AMR.

    The graph of a post may say in its ``texts`` what each sentence was parsed from.

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
            Its ``texts`` say what each of them was parsed from.
        """
        units = [self._units(post) for post in posts]
        found = iter(self.parts_of([" ".join(unit) for own in units for unit in own]))
        graphs = []
        for post, own in zip(posts, units, strict=True):
            parts = [next(found) for _ in own]
            texts = [text for part, unit in zip(parts, own, strict=True) for text in texts_of_roots(part, unit)]
            graphs.append(merged(parts, range(len(post.formulas)), texts))
        return graphs

    def _units(self, post: MathPost) -> list[list[str]]:
        """Give the sentences of each text that is parsed at once."""
        return [[text] for text in post.sentences] if self.unit == "sentence" else list(passages(post.sentences))

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
