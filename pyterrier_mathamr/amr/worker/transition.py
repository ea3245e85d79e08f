"""`TransitionAmrParser`: IBM's transition-amr-parser, the parser of the paper."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr._common.errors import ConfigError

from .limits import WorkerLimits
from .parser import WorkerParser

TRANSITION_MODEL = "doc-sen-conll-amr-seed42"
PYTHON_VARIABLE = "MATHAMR_TRANSITION_PYTHON"


def transition_python(python: str | Path | None) -> str:
    """Give the interpreter of the parser's environment: the one that is named, or that of the environment variable.

    Raises:
        ConfigError: there is neither.
    """
    found = str(python or os.environ.get(PYTHON_VARIABLE, ""))
    if not found:
        told = f"the interpreter of the parser's environment, here or in {PYTHON_VARIABLE}; see docs/parsers.md"
        raise ConfigError("python", None, told)
    return found


class TransitionAmrParser(WorkerParser):
    """IBM's transition-based neural parser 0.5.4, as a worker in an environment of its own (MathAMR+, section 3.1).

    A post is parsed in passages of at most 500 tokens, each as one document with coreference between its sentences.
    `docs/parsers.md` says how to make the environment; ``mathamr doctor --parser transition`` says what it lacks.

    Example::

        parser = TransitionAmrParser("amr-env/bin/python", devices=["cuda:0", "cuda:1"], cache="parses")
        graphs = mathamr.GraphBuilder(parser=parser)

    Args:
        python: the environment's interpreter; otherwise the environment variable ``MATHAMR_TRANSITION_PYTHON`` says it.
        model: name of a released model, or path of a checkpoint.
        devices: a worker is started on each: ``cuda:0``, ``cpu``, …; without any, one where the parser wants it.
        unit: ``passage`` for documents, ``sentence`` for a model that knows sentences only.
        beam: width of the beam.
        fp16: whether to compute with half precision.
        window: size and overlap of the windows in which a document is decoded, in tokens; the parser's own otherwise.
        cache: folder in which every answer is kept; a job that was stopped goes on from there.
        limits: what workers are given.

    Raises:
        ConfigError: no interpreter is given, or an option has no such value.
    """

    name = "transition"

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
        python = transition_python(python)
        if unit not in ("passage", "sentence"):
            raise ConfigError("unit", unit, "'passage' or 'sentence'")
        if beam < 1:
            raise ConfigError("beam", beam, "a positive number")
        if window is not None and not 0 <= window[1] < window[0]:
            raise ConfigError("window", window, "a size and a smaller overlap")
        super().__init__(python, model, devices, cache, limits)
        self.unit, self.beam, self.fp16 = unit, beam, fp16
        self.window = None if window is None else (window[0], window[1])

    @property
    def options(self) -> Mapping[str, Any]:
        """What the foreign parser is loaded with, beside its model."""
        window = {"window": list(self.window)} if self.window else {}
        return {"beam": self.beam, "fp16": self.fp16, **window}
