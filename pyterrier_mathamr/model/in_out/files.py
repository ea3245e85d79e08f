"""The files of an In+Out model. Nothing is unpickled.

::

    in_out.json           {"format": 1, "options": {…}, "labels": {"slt": […], "opt": […]},
                           "weights": <sha256 of the file>, "checksum": <of all of the above>}
    weights.safetensors   the parameters, float32 or float16
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.model.errors import ModelNotFoundError
from pyterrier_mathamr.model.saving.description import other_shapes, read_description, read_weights
from pyterrier_mathamr.model.saving.files import WEIGHTS, pack_weights
from pyterrier_mathamr.model.saving.places import BUNDLED
from pyterrier_mathamr.store import new_folder, signed, write_file

from .graphs import Labels
from .network import encoders
from .options import InOutOptions
from .pairings import kinds_of

FORMAT_VERSION = 1
DESCRIPTION = "in_out.json"

Loaded = tuple[InOutOptions, dict[Packed, Labels], dict[str, Tensor]]


def find(name: str | Path) -> Path:
    """Find a model's folder by path or bundled name."""
    for folder in (Path(name), BUNDLED / name):
        if (folder / DESCRIPTION).is_file():
            return folder
    bundled = ", ".join(sorted(path.parent.name for path in BUNDLED.glob(f"*/{DESCRIPTION}"))) or "none is installed"
    known = f"it is neither a folder with a {DESCRIPTION} nor one of the bundled models ({bundled})"
    raise ModelNotFoundError(str(name), f"{known}. Give a bundled name or the path that save() wrote")


def write(
    path: Path, options: InOutOptions, labels: Mapping[Packed, Labels], weights: Mapping[str, Tensor], dtype: str
) -> None:
    """Write a model to a new folder, atomically."""
    packed = pack_weights(weights, dtype)
    content = {
        "format": FORMAT_VERSION,
        "options": dataclasses.asdict(options),
        "labels": {kind: list(those.names) for kind, those in labels.items()},
        "weights": hashlib.sha256(packed).hexdigest(),
    }
    with new_folder(path) as folder:
        write_file(folder / WEIGHTS, (packed,))
        write_file(folder / DESCRIPTION, (signed(content),))


def read(folder: Path) -> Loaded:
    """Read a model and check every byte."""
    description = read_description(folder / DESCRIPTION, FORMAT_VERSION, "In+Out model", _read)
    weights = read_weights(folder / WEIGHTS, description.weights, DESCRIPTION)
    if description.options.layers > len(weights):  # each layer has weights, and building even empty ones takes time
        raise other_shapes(folder / WEIGHTS, DESCRIPTION)
    try:
        with torch.device("meta"):
            made = encoders(description.options, {kind: len(those) for kind, those in description.labels.items()})
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:  # sizes beyond those of any tensor
        raise other_shapes(folder / WEIGHTS, DESCRIPTION) from error
    if {name: tensor.shape for name, tensor in weights.items()} != {
        name: tensor.shape for name, tensor in made.state_dict().items()
    }:
        raise other_shapes(folder / WEIGHTS, DESCRIPTION)
    return description.options, description.labels, weights


class _Description(NamedTuple):
    """What ``in_out.json`` says; ``weights`` is a digest."""

    options: InOutOptions
    labels: dict[Packed, Labels]
    weights: str


def _read(content: dict[str, Any]) -> _Description:
    options = InOutOptions.from_dict(content["options"])
    labels = {kind: Labels(content["labels"][kind]) for kind in kinds_of(options.condition)}
    return _Description(options, labels, str(content["weights"]))
