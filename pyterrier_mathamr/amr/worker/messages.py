"""What workers are asked: texts with the key that they are kept by, and batches of texts of similar length."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pyterrier_mathamr.amr.errors import AmrError
from pyterrier_mathamr.amr.graph import AmrGraph
from pyterrier_mathamr.amr.penman import decode_penman, encode_penman
from pyterrier_mathamr.amr.penman.atoms import spell
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


EMPTY = "(a / amr-empty)"
_ALIGNMENT = re.compile(r"~(?:[a-z]\.)?\d+(?:,\d+)*$")
_PLACEHOLDER = re.compile(r"formula_(\d+)(?:-\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a text.

    Attributes:
        graph: its Penman text on one line; empty where there is none.
        error: why there is none.
    """

    graph: str = ""
    error: str = ""

    def to_bytes(self) -> bytes:
        """Write the answer as the cache keeps it: ``graph:`` or ``error:``, and the text."""
        text = f"error:{self.error}" if self.error else f"graph:{self.graph}"
        return text.encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """Read what :meth:`to_bytes` wrote."""
        kind, _, text = data.decode("utf-8", "surrogatepass").partition(":")
        return cls(**{kind: text})


def read_answer(annotation: object) -> Answer:
    """Read what a parser wrote for one text.

    Args:
        annotation: Penman notation with comments and alignment marks, blank for an empty parse, or nothing.

    Returns:
        The graph without comments and marks, placeholders written as such whatever the parser made of them; a blank
        annotation is ``(a / amr-empty)``.
    """
    if not isinstance(annotation, str):
        return Answer(error="no graph")
    if not annotation.strip():
        return Answer(EMPTY)
    try:
        return Answer(encode_penman(_cleaned(decode_penman(annotation))))
    except AmrError as error:
        return Answer(error=str(error).partition("\n")[0])


def _cleaned(graph: AmrGraph) -> AmrGraph:
    """Leave out metadata and alignments, and give placeholders back their form."""
    labels = tuple(_PLACEHOLDER.sub(r"FORMULA_\1", label) if _PLACEHOLDER.fullmatch(label) else label
                   for label in graph.labels)  # fmt: skip
    names = set(filter(None, graph.variables))
    spellings = []
    for node, atom in graph.spellings:
        bare = _ALIGNMENT.sub("", atom)
        if labels[node] == graph.labels[node] and bare != spell(labels[node], () if graph.variables[node] else names):
            spellings.append((node, bare))
    return replace(graph, labels=labels, metadata=(), spellings=tuple(spellings), alignments=())
