"""`WorkerParser`, the base of the parsers that run in another interpreter.

A text that no worker can parse is parsed by the embedded parser. A warning names it, and the metadata of its post's
graph says so: ``# ::parser dependency`` where that parser made all of it, ``# ::parser transition, dependency`` where
it made a part.
"""

from __future__ import annotations

import os
import warnings
import weakref
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.parameters import ByParameters
from pyterrier_mathamr.amr.dependency import DependencyAmrParser
from pyterrier_mathamr.amr.graph import AmrGraph
from pyterrier_mathamr.amr.merge import Part, part_of
from pyterrier_mathamr.amr.penman import decode_penman
from pyterrier_mathamr.amr.protocol import PartParser
from pyterrier_mathamr.store import Cache

from .messages import Answer, Mode, Text, WorkerCommand, batches
from .pool import WorkerLimits, WorkerPool

_EMBEDDED = DependencyAmrParser.name


class WorkerParser(ByParameters, PartParser):
    """A parser whose work is done by worker processes, one on each device.

    The workers start with the first text that is not in the cache, and end with the parser (or `close`). The
    parameters are those of the subclasses. Where the parser cannot be loaded, or its workers fail repeatedly,
    ``parse_sentences`` and ``parse_posts`` raise `ParserUnavailableError`.
    """

    embedded_count: int
    """Number of texts that the embedded parser has parsed so far."""

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
        """Return the options that the foreign parser is loaded with."""

    @property
    def batch_posts(self) -> int:
        """Return how many posts keep all workers busy when they are parsed together."""
        return 128 * max(1, len(self.devices))

    def require_package(self) -> None:
        """Check the parser's package where it must be in this interpreter."""

    def parse_units(self, units: Sequence[Sequence[str]], unit: str) -> list[Part]:
        """Parse texts to parts, each with the name of the parser that made it."""
        mode: Mode = "documents" if unit == "passage" else "sentences"
        command = WorkerCommand(self.name, self.python, self.model, self.options)
        texts = [command.text(sentences, mode) for sentences in units]
        distinct = list(dict.fromkeys(texts))
        answers = self._answers(distinct, mode, command)
        parts = {text.key: self._part(text, answers[text.key]) for text in distinct}
        return [parts[text.key] for text in texts]

    def merge(self, parts: Sequence[Part], formulas: Iterable[int], texts: Sequence[str] | None = None) -> AmrGraph:
        """Merge the parts of a post; the metadata names the parsers where the embedded one made a part."""
        graph = super().merge(parts, formulas, texts)
        makers = dict.fromkeys(part.parser for part in parts)
        if _EMBEDDED not in makers:
            return graph
        return graph.with_metadata((("parser", ", ".join(sorted(makers, key=_EMBEDDED.__eq__))),))

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
        """Leave out the workers; a copy in another process has its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_pool", "_finalizer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _pool=None)

    def _answers(self, texts: Sequence[Text], mode: Mode, command: WorkerCommand) -> dict[str, Answer]:
        """Look texts up in the cache, and have the workers parse the others."""
        cache = None if self.cache is None else Cache(self.cache)
        kept = {} if cache is None else cache.get([bytes.fromhex(text.key) for text in texts])
        found = {key.hex(): Answer.from_bytes(value) for key, value in kept.items()}

        def settle(answers: Sequence[tuple[str, Answer]]) -> None:
            if cache is not None:
                cache.add({bytes.fromhex(key): answer.to_bytes() for key, answer in answers})
            found.update(answers)

        missing = [text for text in texts if text.key not in found]
        if missing:
            self._workers(command).run(batches(missing, self.limits.batch_tokens), mode, settle)
        return found

    def _workers(self, command: WorkerCommand) -> WorkerPool:
        """Return the pool, created once."""
        if self._pool is None:
            self.require_package()
            self._pool = WorkerPool(command, self.devices or ("",), self.limits)
            self._finalizer = weakref.finalize(self, _close_own, self._pool, os.getpid())
        return self._pool

    def _part(self, text: Text, answer: Answer) -> Part:
        """Convert an answer to a part; a text without a graph is parsed by the embedded parser, with a warning."""
        if answer.error:
            self.embedded_count += 1
            shown = " ".join(text.sentences)[:80]
            message = f"parser {self.name} returned no graph for {shown!r}, the embedded parser is used: "
            warnings.warn(message + answer.error[:300], MathAMRWarning, stacklevel=2)
            [part] = DependencyAmrParser().parse_units([text.sentences])
        else:
            part = part_of(decode_penman(answer.graph))
        part.parser = _EMBEDDED if answer.error else self.name
        return part


def _close_own(pool: WorkerPool, owner: int) -> None:
    """End the workers of a pool, but not those of the process that this one was forked from."""
    if os.getpid() == owner:
        pool.close()
