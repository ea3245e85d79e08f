"""`TransitionAmrParser`, the parser of the paper, and `AmrlibParser`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr._common.parameters import COUNT, Rule, one_of

from .parser import WorkerParser
from .pool import WorkerLimits

TRANSITION_MODEL = "doc-sen-conll-amr-seed42"
PYTHON_VARIABLE = "MATHAMR_TRANSITION_PYTHON"


class TransitionAmrParser(WorkerParser):
    """IBM's transition-based neural parser 0.5.4, as a worker in an environment of its own (MathAMR+, section 3.1).

    A post is parsed in passages of at most 500 tokens, each as one document with coreference between its sentences.
    `docs/parsers.md` describes the environment; ``mathamr doctor --parser transition`` reports what is missing.

    Example::

        parser = TransitionAmrParser("amr-env/bin/python", devices=["cuda:0", "cuda:1"], cache="parses")
        graphs = mathamr.GraphBuilder(parser=parser)

    Args:
        python: the environment's interpreter; by default that of the variable ``MATHAMR_TRANSITION_PYTHON``.
        model: name of a released model, or path of a checkpoint.
        devices: start a worker on each: ``cuda:0``, ``cpu``, …; if empty, one where the parser chooses.
        unit: ``passage`` to parse documents, ``sentence`` for models of sentences only.
        beam: width of the beam.
        fp16: whether to compute in half precision.
        window: size and overlap, in tokens, of the windows in which a document is decoded; the parser's own if None.
        cache: file that keeps every answer, so that an interrupted job can continue.
        limits: batch sizes, time limits and restarts.

    Raises:
        ConfigError: no interpreter is given, or an option has an invalid value.
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
            allowed = f"the interpreter of the parser's environment, here or in {PYTHON_VARIABLE}; see docs/parsers.md"
            raise ConfigError("python", None, allowed)
        super().__init__(python, model, devices, cache, limits)
        self.unit, self.beam, self.fp16 = unit, beam, fp16
        self.window = None if window is None else (window[0], window[1])

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the options that the foreign parser is loaded with."""
        window = {"window": list(self.window)} if self.window else {}
        return {"beam": self.beam, "fp16": self.fp16, **window}


class AmrlibParser(WorkerParser):
    """A parser of amrlib, 0.8.1 or later, as a worker; it parses sentences, which are merged here.

    It runs in this interpreter (``pip install 'pyterrier-mathamr[amrlib]'``) or in another one; `docs/parsers.md`
    lists its models.

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
