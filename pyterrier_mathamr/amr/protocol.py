"""`AmrParser`, the interface of a parser of text to AMR, and bases that parse posts with one."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, runtime_checkable

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost

from .errors import AmrError, PenmanError
from .graph import AmrGraph
from .merge import Part, merged, part_of, passages, texts_of_roots
from .penman import decode_penman, encode_penman


@runtime_checkable
class AmrParser(Protocol):
    """A parser of English text with formula placeholders to AMR.

    The ``texts`` of a post's graph may contain the text of each sentence.

    Attributes:
        name: the name in `get_parser`.
    """

    name: str

    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse each sentence on its own to one Penman text."""
        ...

    def parse_post(self, post: MathPost) -> AmrGraph:
        """Parse a post to one graph in which each of its formulas is exactly one node."""
        ...

    def parse_posts(self, posts: Sequence[MathPost]) -> list[AmrGraph]:
        """Parse posts to the graphs that `parse_post` returns."""
        ...


class TextParser(ABC):
    """A parser that only defines how text becomes Penman; this class cuts posts, and merges and repairs the graphs.

    Attributes:
        name: the name in `get_parser`.
        unit: what is parsed at once: a sentence, or a passage of sentences of at most 500 tokens.
    """

    name: str
    unit: Literal["sentence", "passage"] = "sentence"

    @abstractmethod
    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse each sentence (or passage) on its own to one Penman text."""

    def parse_post(self, post: MathPost) -> AmrGraph:
        """Parse a post to one graph in which each of its formulas is exactly one node."""
        return self.parse_posts([post])[0]

    def parse_posts(self, posts: Sequence[MathPost]) -> list[AmrGraph]:
        """Parse posts.

        Args:
            posts: the posts.

        Returns:
            One graph for each post: its sentences under ``multi-sentence``, a single sentence by itself, ``amr-empty``
            for none. The graph's ``texts`` are the text of each sentence.
        """
        units = [self._units(post) for post in posts]
        parsed = iter(self.parse_units([unit for own in units for unit in own], self.unit))
        graphs = []
        for post, own in zip(posts, units, strict=True):
            parts = [next(parsed) for _ in own]
            texts = [text for part, unit in zip(parts, own, strict=True) for text in texts_of_roots(part, unit)]
            graphs.append(self.merge(parts, range(len(post.formulas)), texts))
        return graphs

    def _units(self, post: MathPost) -> list[list[str]]:
        """Return the sentences of each text that is parsed at once."""
        return [[text] for text in post.sentences] if self.unit == "sentence" else list(passages(post.sentences))

    def parse_units(self, units: Sequence[Sequence[str]], unit: str) -> list[Part]:
        """Parse texts, each given as its sentences; a text without a valid graph is reported and is an empty part."""
        texts = [" ".join(sentences) for sentences in units]
        answers = self.parse_sentences(texts)
        if len(answers) != len(texts):
            raise AmrError(f"parser {self.name} returned {len(answers)} graphs for {len(texts)} texts.")
        parts = []
        for text, answer in zip(texts, answers, strict=True):
            try:
                parts.append(part_of(decode_penman(answer)))
            except PenmanError as error:
                message = f"parser {self.name} returned no graph for {text[:80]!r}, its formulas are kept: {error}"
                warnings.warn(message, MathAMRWarning, stacklevel=2)
                parts.append(Part())
        return parts

    def merge(self, parts: Sequence[Part], formulas: Iterable[int], texts: Sequence[str] | None = None) -> AmrGraph:
        """Merge the parts of a post or sentence into its graph."""
        return merged(parts, formulas, texts)


class PartParser(TextParser):
    """A `TextParser` whose subclasses define `parse_units`, and with it how sentences are parsed."""

    @abstractmethod
    def parse_units(self, units: Sequence[Sequence[str]], unit: str) -> list[Part]:
        """Parse texts, each given as its sentences, as a ``passage`` or as a ``sentence``."""

    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse sentences."""
        parts = self.parse_units([[sentence] for sentence in sentences], "sentence")
        numbers = ({int(number) for number in PLACEHOLDER.findall(sentence)} for sentence in sentences)
        return [encode_penman(self.merge([part], own)) for part, own in zip(parts, numbers, strict=True)]
