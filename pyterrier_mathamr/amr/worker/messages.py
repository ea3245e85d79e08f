"""The texts that workers are sent, keyed for the cache and batched by length, and their answers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pyterrier_mathamr.amr.errors import AmrError, ParserUnavailableError
from pyterrier_mathamr.amr.graph import AmrGraph
from pyterrier_mathamr.amr.penman import decode_penman, encode_penman
from pyterrier_mathamr.amr.penman.atoms import spell
from pyterrier_mathamr.posts import TOKEN

Mode = Literal["documents", "sentences"]

EMPTY = "(a / amr-empty)"
_ALIGNMENT = re.compile(r"~(?:[a-z]\.)?\d+(?:,\d+)*$")
_PLACEHOLDER = re.compile(r"formula_(\d+)(?:-\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """What the workers of a parser are started with.

    Attributes:
        parser: name of the parser.
        python: its interpreter.
        model: its model.
        options: options that the parser is loaded with.
    """

    parser: str
    python: str
    model: str
    options: Mapping[str, Any]

    def text(self, sentences: Sequence[str], mode: Mode) -> Text:
        """Key a text by all that its graph depends on: 32 hexadecimal digits of the hash of parser and text."""
        whole = [self.parser, self.model, dict(self.options), mode, list(sentences)]
        key = hashlib.sha256(json.dumps(whole, sort_keys=True).encode("ascii")).hexdigest()[:32]
        return Text(key, tuple(sentences), sum(len(TOKEN.findall(sentence)) for sentence in sentences))

    def not_loaded(self, reason: str) -> ParserUnavailableError:
        """Return the error of a parser that its interpreter cannot load."""
        remedy = f"See what is missing with: mathamr doctor --parser {self.parser} --python {self.python}"
        return ParserUnavailableError(f"cannot be loaded by {self.python}: {reason}", self.parser, remedy)


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences that are parsed together.

    Attributes:
        key: identifies the text in the cache and in messages.
        sentences: its sentences.
        tokens: their number of tokens.
    """

    key: str
    sentences: tuple[str, ...]
    tokens: int = field(default=0, compare=False)


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


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of parsing a text.

    Attributes:
        graph: its Penman text on one line; empty where there is none.
        error: why there is no graph.
    """

    graph: str = ""
    error: str = ""

    def to_bytes(self) -> bytes:
        """Write the answer for the cache: ``graph:`` or ``error:``, and the text."""
        text = f"error:{self.error}" if self.error else f"graph:{self.graph}"
        return text.encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """Read what :meth:`to_bytes` wrote."""
        kind, _, text = data.decode("utf-8", "surrogatepass").partition(":")
        return cls(**{kind: text})


def read_answer(annotation: object) -> Answer:
    """Read a parser's output for one text."""
    if not isinstance(annotation, str):
        return Answer(error="no graph")
    if not annotation.strip():
        return Answer(EMPTY)
    try:
        return Answer(encode_penman(_cleaned(decode_penman(annotation))))
    except AmrError as error:
        return Answer(error=str(error).partition("\n")[0])


def _cleaned(graph: AmrGraph) -> AmrGraph:
    """Remove metadata and alignments, and restore placeholders."""
    labels = tuple(_PLACEHOLDER.sub(r"FORMULA_\1", label) if _PLACEHOLDER.fullmatch(label) else label
                   for label in graph.labels)  # fmt: skip
    names = set(filter(None, graph.variables))
    spellings = []
    for node, atom in graph.spellings:
        bare = _ALIGNMENT.sub("", atom)
        if labels[node] == graph.labels[node] and bare != spell(labels[node], () if graph.variables[node] else names):
            spellings.append((node, bare))
    return replace(graph, labels=labels, metadata=(), spellings=tuple(spellings), alignments=())
