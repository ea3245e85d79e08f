"""What workers are asked: texts with the key that they are kept by, and batches of texts of similar length."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pyterrier_mathamr.posts import TOKEN

Mode = Literal["documents", "sentences"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that the graph of a text depends on beside the text.

    Attributes:
        parser: name of the parser.
        model: its model.
        options: its options.
        mode: whether a text is parsed as a document or as a sentence.
    """

    parser: str
    model: str
    options: Mapping[str, Any]
    mode: Mode

    def key(self, sentences: Sequence[str]) -> str:
        """Give the key of a text: 32 hexadecimal digits of the hash of recipe and text."""
        whole = [self.parser, self.model, dict(self.options), self.mode, list(sentences)]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode("ascii")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences that are parsed together.

    Attributes:
        key: what the text is known by.
        sentences: its sentences.
        tokens: how many tokens they have.
    """

    key: str
    sentences: tuple[str, ...]
    tokens: int = field(default=0, compare=False)

    @classmethod
    def of(cls, sentences: Sequence[str], recipe: Recipe) -> Text:
        """Make the text of some sentences."""
        tokens = sum(len(TOKEN.findall(sentence)) for sentence in sentences)
        return cls(recipe.key(sentences), tuple(sentences), tokens)


def batches(texts: Sequence[Text], batch_tokens: int) -> Iterator[tuple[Text, ...]]:
    """Cut texts into batches, the longest first, each of at most ``batch_tokens`` tokens when padded to its longest."""
    batch: list[Text] = []
    for text in sorted(texts, key=lambda text: (-text.tokens, text.key)):
        if batch and batch[0].tokens * (len(batch) + 1) > batch_tokens:
            yield tuple(batch)
            batch = []
        batch.append(text)
    if batch:
        yield tuple(batch)
