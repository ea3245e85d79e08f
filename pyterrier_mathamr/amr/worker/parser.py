"""`WorkerParser`: what the parsers that run in another interpreter have in common.

    posts -> texts (a passage or a sentence each) -> those not kept yet -> workers -> kept answers -> parts -> one graph

A text that no worker can parse is parsed by the embedded parser; a warning names it, and the graph of its post says so
in its metadata: ``# ::parser dependency`` where that parser made all of it, ``# ::parser transition, dependency`` where
it made some.
"""

from __future__ import annotations

import os
import warnings
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.parameters import ByParameters
from pyterrier_mathamr.amr.dependency import DependencyAmrParser
from pyterrier_mathamr.amr.graph import AmrGraph
from pyterrier_mathamr.amr.merge import Part, merged, part_of, texts_of_roots
from pyterrier_mathamr.amr.penman import decode_penman, encode_penman
from pyterrier_mathamr.amr.protocol import TextParser, placeholders_in
from pyterrier_mathamr.posts import MathPost
from pyterrier_mathamr.store import Cache

from .messages import Answer, Mode, Recipe, Text, batches
from .pool import WorkerCommand, WorkerLimits, WorkerPool

_KEPT_IN_MEMORY = ("_pool", "_finalizer")


class WorkerParser(ByParameters, TextParser):
    """A parser whose work is done by worker processes, one on each device.

    The workers are started with the first text that is not kept yet and end with the parser (or `close`). The
    parameters are those of the subclasses.
    """

    name: str
    unit: Literal["sentence", "passage"] = "sentence"
    embedded_count: int
    """How many texts the embedded parser had to parse so far."""

    def __init__(
        self,
        python: str | Path,
        model: str | Path,
        devices: Sequence[str],
        cache: str | Path | None,
        limits: WorkerLimits,
    ) -> None:
        self.python = str(python)
        self.model = str(model)
        self.devices = (devices,) if isinstance(devices, str) else (*devices,)
        self.cache = None if cache is None else Path(cache)
        self.limits = limits
        self.embedded_count = 0
        self._pool: WorkerPool | None = None

    @property
    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """What the foreign parser is loaded with, beside its model."""

    @property
    def batch_posts(self) -> int:
        """How many posts keep all workers busy when they are parsed together."""
        return 128 * max(1, len(self.devices))

    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse sentences, each for itself.

        Args:
            sentences: English text, formulas as ``FORMULA_0``.

        Returns:
            For each a Penman text on one line, with each of its placeholders as one node.

        Raises:
            ParserUnavailableError: the parser cannot be loaded, or breaks again and again.
        """
        parts = self._parts([(sentence,) for sentence in sentences], "sentences")
        return [
            encode_penman(_recorded(merged([part], placeholders_in(sentence)), [by]))
            for (part, by), sentence in zip(parts, sentences, strict=True)
        ]

    def parse_posts(self, posts: Sequence[MathPost]) -> list[AmrGraph]:
        """Parse posts, cut into passages of at most 500 tokens or into sentences (MathAMR+, section 3.1).

        Args:
            posts: the posts.

        Returns:
            For each post its graph; its metadata says where the embedded parser took part.

        Raises:
            ParserUnavailableError: the parser cannot be loaded, or breaks again and again.
        """
        units = [self._units(post) for post in posts]
        mode: Mode = "documents" if self.unit == "passage" else "sentences"
        found = iter(self._parts([tuple(unit) for own in units for unit in own], mode))
        graphs = []
        for post, own in zip(posts, units, strict=True):
            made = [next(found) for _ in own]
            texts = [text for (part, _), unit in zip(made, own, strict=True) for text in texts_of_roots(part, unit)]
            graph = merged([part for part, _ in made], range(len(post.formulas)), texts)
            graphs.append(_recorded(graph, [by for _, by in made]))
        return graphs

    def close(self) -> None:
        """End the workers; the next text starts new ones."""
        if self._pool:
            self._finalizer()
            self._pool = None

    def __enter__(self) -> WorkerParser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Leave processes and files where they are; a copy in another process has its own."""
        return {name: value for name, value in self.__dict__.items() if name not in _KEPT_IN_MEMORY}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pool = None

    def _parts(self, texts: Sequence[tuple[str, ...]], mode: Mode) -> list[tuple[Part, str]]:
        """Parse texts to parts, each with the name of the parser that made it."""
        recipe = Recipe(self.name, self.model, self.options, mode)
        asked = [Text.of(sentences, recipe) for sentences in texts]
        answers = self._answers(list(dict.fromkeys(asked)), mode)
        failed = [text for text in dict.fromkeys(asked) if answers[text.key].error]
        self.embedded_count += len(failed)
        instead = {text.key: self._embedded(text, answers[text.key].error) for text in failed}
        return [
            (_copied(instead[text.key]), DependencyAmrParser.name)
            if text.key in instead
            else (part_of(decode_penman(answers[text.key].graph)), self.name)
            for text in asked
        ]

    def _answers(self, texts: Sequence[Text], mode: Mode) -> dict[str, Answer]:
        """Look up what is kept, have the workers parse the rest."""
        cache = None if self.cache is None else Cache(self.cache)
        kept = {} if cache is None else cache.get([bytes.fromhex(text.key) for text in texts])
        found = {key.hex(): Answer.from_bytes(value) for key, value in kept.items()}

        def settle(answers: Sequence[tuple[str, Answer]]) -> None:
            if cache is not None:
                cache.add({bytes.fromhex(key): answer.to_bytes() for key, answer in answers})
            found.update(answers)

        missing = [text for text in texts if text.key not in found]
        if missing:
            self._workers().run(batches(missing, self.limits.batch_tokens), mode, settle)
        return found

    def _workers(self) -> WorkerPool:
        """Give the pool, which is made once."""
        if self._pool is None:
            command = WorkerCommand(self.name, self.python, self.model, dict(self.options))
            self._pool = WorkerPool(command, self.devices or ("",), self.limits)
            self._finalizer = weakref.finalize(self, _close_own, self._pool, os.getpid())
        return self._pool

    def _embedded(self, text: Text, reason: str) -> Part:
        """Parse a text that the workers cannot parse, and say so."""
        shown = " ".join(text.sentences)[:80]
        told = f"parser {self.name} gave no graph for {shown!r}, the embedded parser's is taken: {reason[:300]}"
        warnings.warn(told, MathAMRWarning, stacklevel=2)
        part = Part()
        for own in DependencyAmrParser().parts_of(text.sentences):
            part.extend(own)
        return part


def _close_own(pool: WorkerPool, owner: int) -> None:
    """End the workers of a pool, but not those of the process that this one was forked from."""
    if os.getpid() == owner:
        pool.close()


def _copied(part: Part) -> Part:
    """Copy a part, since two posts may have the same text."""
    copy = Part()
    copy.extend(part)
    return copy


def _recorded(graph: AmrGraph, makers: Sequence[str]) -> AmrGraph:
    """Note in the metadata which parsers made a graph, if the embedded one took part."""
    names = ", ".join(sorted(dict.fromkeys(makers), key=DependencyAmrParser.name.__eq__))
    return graph.with_metadata((("parser", names),)) if DependencyAmrParser.name in makers else graph
