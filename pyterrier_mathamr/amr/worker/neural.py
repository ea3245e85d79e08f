"""`TransitionAmrParser`: IBM's transition-amr-parser, the parser of the paper."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr._common.errors import ConfigError

from .parser import WorkerParser
from .pool import WorkerLimits

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


class AmrlibParser(WorkerParser):
    """amrlib from 0.8.1 on, as a worker; sentences are parsed each for itself and merged here.

    It runs in this interpreter's environment (``pip install 'pyterrier-mathamr[amrlib]'``) or in any other;
    `docs/parsers.md` says where its models come from.

    Example::

        parser = AmrlibParser(model="model_parse_xfm_bart_large-v0_1_0", devices=["cuda:0"])
        graphs = mathamr.GraphBuilder(parser=parser)

    Args:
        python: the interpreter; this one by default.
        model: folder of a model; amrlib's own ``model_stog`` by default.
        devices: a worker is started on each: ``cuda:0``, ``cpu``, …; without any, one where amrlib wants it.
        num_beams: width of the beam.
        cache: folder in which every answer is kept; a job that was stopped goes on from there.
        limits: what workers are given.

    Raises:
        ConfigError: ``num_beams`` is not positive.
    """

    name = "amrlib"

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
        if num_beams < 1:
            raise ConfigError("num_beams", num_beams, "a positive number")
        super().__init__(python, model, devices, cache, limits)
        self.num_beams = num_beams

    @property
    def options(self) -> Mapping[str, Any]:
        """What amrlib's model is loaded with."""
        return {"num_beams": self.num_beams, "batch_size": 64}
