"""Weights of systems that come with the package, for a year without others to fit on.

::

    {"format": 1, "fitted on": "…", "weights": {"Fused": {"Tangent": 0.4, …}, …}}

A run over several years writes the weights of all its years together to ``weights.json`` in this form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.experiments.errors import WeightsFileError
from pyterrier_mathamr.experiments.stages import write_atomically
from pyterrier_mathamr.experiments.tasks.formulas.parts import Weights

_FORMAT = 1
_FILE = "data/fitted/formula-systems.json"


def shipped_weights() -> dict[str, Weights]:
    """Read the weights that come with the package, by system."""
    return read_weights(Path(str(files("pyterrier_mathamr").joinpath(_FILE))))


def read_weights(path: Path) -> dict[str, Weights]:
    """Read a file that :func:`write_weights` wrote."""
    try:
        content: Any = parse_json(path.read_bytes())
        if content["format"] != _FORMAT:
            raise WeightsFileError(path, f"format {content['format']!r}, but this release reads {_FORMAT}")
        found = {
            str(name): {str(of): float(value) for of, value in own.items()} for name, own in content["weights"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsFileError(path, f"no weights of systems ({error})") from error
    if not all(math.isfinite(value) for own in found.values() for value in own.values()):
        raise WeightsFileError(path, "a weight is no finite number")
    return dict(found)


def write_weights(path: Path, weights: Mapping[str, Weights], fitted_on: str) -> None:
    """Write the weights of systems."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"format": _FORMAT, "fitted on": fitted_on, "weights": weights}
    write_atomically(path, json.dumps(content, indent=1) + "\n")
