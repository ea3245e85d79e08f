"""Neural parsers: `TransitionAmrParser`, the parser of the paper, and `AmrlibParser`.

    post ─▶ texts ─▶ texts not in the cache ─▶ workers ─▶ answers ─▶ parts ─▶ one graph

If no worker can parse a text, the embedded parser does. A warning names it, and the metadata of its post's graph
records it: ``# ::parser dependency`` if that parser made the whole graph, ``# ::parser transition, dependency`` if it
made part of it.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal

from pyterrier_mathamr.amr import AmrGraph, DependencyAmrParser, WorkerParser, decode_penman
from pyterrier_mathamr.extending import (
    COUNT,
    ByParameters,
    ConfigError,
    MathAMRWarning,
    MissingExtraError,
    ParsedPart,
    Rule,
    one_of,
    part_of,
)
from pyterrier_mathamr.store import Cache

from .workers import ParserAnswer, ParseUnit, Text, WorkerCommand, WorkerLimits, WorkerPool, batches

_EMBEDDED = DependencyAmrParser.name


class NeuralParser(ByParameters, WorkerParser):
    """A parser whose work is done by worker processes, one on each device.

    The workers start with the first text that is not in the cache, and end with the parser (or `close`). If the
    parser cannot be loaded, or its workers fail repeatedly, ``parse_sentences`` and ``parse_posts`` raise
    `ParserUnavailableError`.

    Args:
        python: the interpreter that has the parser's packages.
        model: the parser's checkpoint.
        devices: a worker for each, such as ``cuda:0`` or ``cpu``.
        cache: a file that keeps parsed texts for further runs; ``None`` for none.
        limits: the time and the restarts that workers have.
    """

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

    def require_package(self) -> None:
        """Check the parser's package where it must be in this interpreter."""

    def parse_units(self, units: Sequence[Sequence[str]], unit: str) -> list[ParsedPart]:
        """Parse ``units``, each a ``sentence`` or a ``passage`` (``unit``), to parts with the name of their parser."""
        mode: ParseUnit = "documents" if unit == "passage" else "sentences"
        command = WorkerCommand(self.name, self.python, self.model, self.options)
        texts = [command.text(sentences, mode) for sentences in units]
        distinct = list(dict.fromkeys(texts))
        answers = self._answers(distinct, mode, command)
        parts = {text.key: self._part(text, answers[text.key]) for text in distinct}
        return [parts[text.key] for text in texts]

    def merge(
        self, parts: Sequence[ParsedPart], formulas: Iterable[int], texts: Sequence[str] | None = None
    ) -> AmrGraph:
        """Merge the parts of a post; the metadata names the parsers where the embedded one made a part.

        Args:
            parts: of the texts of a post or sentence, in order.
            formulas: numbers of the placeholders that the graph must have.
            texts: the text of each root of the parts, kept as the graph's ``texts``.
        """
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

    def __enter__(self) -> NeuralParser:
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

    def _answers(self, texts: Sequence[Text], mode: ParseUnit, command: WorkerCommand) -> dict[str, ParserAnswer]:
        """Look texts up in the cache, and have the workers parse the others."""
        cache = None if self.cache is None else Cache(self.cache)
        kept = {} if cache is None else cache.get([bytes.fromhex(text.key) for text in texts])
        answers_by_key = {key.hex(): ParserAnswer.from_bytes(value) for key, value in kept.items()}

        def settle(answers: Sequence[tuple[str, ParserAnswer]]) -> None:
            if cache is not None:
                cache.add({bytes.fromhex(key): answer.to_bytes() for key, answer in answers})
            answers_by_key.update(answers)

        missing = [text for text in texts if text.key not in answers_by_key]
        if missing:
            self._workers(command).run(batches(missing, self.limits.batch_tokens), mode, settle)
        return answers_by_key

    def _workers(self, command: WorkerCommand) -> WorkerPool:
        if self._pool is None:
            self.require_package()
            self._pool = WorkerPool(command, self.devices or ("",), self.limits)
            self._finalizer = weakref.finalize(self, _close_own, self._pool, os.getpid())
        return self._pool

    def _part(self, text: Text, answer: ParserAnswer) -> ParsedPart:
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
    """End the workers of a pool, unless this process was forked from the one that owns them."""
    if os.getpid() == owner:
        pool.close()


TRANSITION_MODEL = "doc-sen-conll-amr-seed42"
PYTHON_VARIABLE = "MATHAMR_TRANSITION_PYTHON"


class TransitionAmrParser(NeuralParser):
    """IBM's transition-based neural parser 0.5.4, as a worker in a separate environment (MathAMR+, section 3.1).

    A post is parsed in passages of at most 500 tokens, each as one document with coreference between its sentences.
    `docs/install.md` describes the environment; ``mathamr doctor --parser transition`` reports missing parts.

    Example::

        parser = TransitionAmrParser("amr-env/bin/python", devices=["cuda:0", "cuda:1"], cache="parses")
        graphs = mathamr.GraphBuilder(parser=parser)

    Args:
        python: the environment's interpreter; by default the variable ``MATHAMR_TRANSITION_PYTHON``.
        model: name of a released model, or path of a checkpoint.
        devices: start a worker on each: ``cuda:0``, ``cpu``, …; if empty, one on the device that the parser chooses.
        unit: ``passage`` to parse documents, ``sentence`` for models of sentences only.
        beam: width of the beam.
        fp16: whether to compute in half precision.
        window: size and overlap, in tokens, of the windows in which a document is decoded; the parser's own if None.
        cache: file that keeps every answer, so that an interrupted job can continue.
        limits: batch sizes, time limits and restarts.

    Raises:
        ConfigError: no interpreter was given, or an option has an invalid value.
    """

    name = "transition"
    checks: ClassVar[Mapping[str, Rule]] = {
        "unit": one_of("passage", "sentence"),
        "beam": COUNT,
        "window": Rule("a size and a smaller overlap, or None", lambda value: not value or 0 <= value[1] < value[0]),
    }

    def __init__(
        self,
        python: str | Path | None = None,
        model: str | Path = TRANSITION_MODEL,
        devices: Sequence[str] = (),
        *,
        unit: Literal["passage", "sentence"] = "passage",
        beam: int = 1,
        fp16: bool = False,
        window: tuple[int, int] | None = None,
        cache: str | Path | None = None,
        limits: WorkerLimits = WorkerLimits(),  # noqa: B008 - frozen
    ) -> None:
        python = python or os.environ.get(PYTHON_VARIABLE)
        if not python:
            allowed = f"the Python of the parser's environment, here or in {PYTHON_VARIABLE}; see docs/install.md"
            raise ConfigError("python", None, allowed)
        super().__init__(python, model, devices, cache, limits)
        self.unit, self.beam, self.fp16 = unit, beam, fp16
        self.window = None if window is None else (window[0], window[1])

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the options that the foreign parser is loaded with."""
        window = {"window": list(self.window)} if self.window else {}
        return {"beam": self.beam, "fp16": self.fp16, **window}


class AmrlibParser(NeuralParser):
    """A parser of amrlib, 0.8.1 or later, as a worker; it parses sentences, which are merged here.

    It runs in this interpreter (``pip install 'pyterrier-mathamr-systems[amrlib]'``) or in another one;
    `docs/install.md` lists its models.

    Example::

        parser = AmrlibParser(model="model_parse_xfm_bart_large-v0_1_0", devices=["cuda:0"])
        graphs = mathamr.GraphBuilder(parser=parser)

    Args:
        python: the interpreter; this one by default.
        model: folder of a model; amrlib's own ``model_stog`` by default.
        devices: start a worker on each: ``cuda:0``, ``cpu``, …; if empty, one where amrlib chooses.
        num_beams: width of the beam.
        cache: file that keeps every answer, so that an interrupted job can continue.
        limits: batch sizes, time limits and restarts.

    Raises:
        ConfigError: ``num_beams`` is not positive.
        MissingExtraError: on the first parse, in this interpreter: amrlib is not installed.
    """

    name = "amrlib"
    checks: ClassVar[Mapping[str, Rule]] = {"num_beams": COUNT}

    def __init__(
        self,
        python: str | Path = sys.executable,
        model: str | Path = "",
        devices: Sequence[str] = (),
        *,
        num_beams: int = 4,
        cache: str | Path | None = None,
        limits: WorkerLimits = WorkerLimits(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(python, model, devices, cache, limits)
        self.num_beams = num_beams

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the options that amrlib's model is loaded with."""
        return {"num_beams": self.num_beams, "batch_size": 64}

    def require_package(self) -> None:
        """Check that this interpreter, where it is the worker's, has amrlib."""
        if self.python == sys.executable and find_spec("amrlib") is None:
            raise MissingExtraError("amrlib", "amrlib")
