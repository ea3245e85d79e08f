"""`AmrlibParser`: the sequence-to-sequence parsers of amrlib."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError

from .limits import WorkerLimits
from .parser import WorkerParser


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
