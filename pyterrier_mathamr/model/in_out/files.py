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

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.model.errors import ModelFileError, ModelNotFoundError
from pyterrier_mathamr.model.files import WEIGHTS, pack_weights
from pyterrier_mathamr.model.places import BUNDLED
from pyterrier_mathamr.store import new_folder, read_signed, signed, write_file

from .graphs import Labels
from .network import encoders
from .options import InOutOptions
from .pairings import kinds_of

FORMAT_VERSION = 1
DESCRIPTION = "in_out.json"

Loaded = tuple[InOutOptions, dict[Packed, Labels], dict[str, Tensor]]


def find(name: str | Path) -> Path:
    """Find a model's folder by path or bundled name.

    Raises:
        ModelNotFoundError: there is no such model.
    """
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
    """Read a model and check every byte.

    Raises:
        ModelFileError: a file is missing, damaged or of a format that this release does not read.
    """
    path = folder / DESCRIPTION
    try:
        content = read_signed(path)
        if content["format"] != FORMAT_VERSION:
            problem = f"model format {content['format']!r}, but this release reads {FORMAT_VERSION}"
            raise ModelFileError(path, problem, "Install the release that wrote it, or a later one.")
        options = InOutOptions.from_dict(content["options"])
        labels = {kind: Labels(content["labels"][kind]) for kind in kinds_of(options.condition)}
        wanted = str(content["weights"])
    except ModelFileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, MathAMRError) as error:
        raise ModelFileError(path, f"no In+Out model ({type(error).__name__}: {error})") from error
    return options, labels, _weights(folder / WEIGHTS, wanted, options, labels)


def _weights(path: Path, wanted: str, options: InOutOptions, labels: Mapping[Packed, Labels]) -> dict[str, Tensor]:
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != wanted:
            raise ModelFileError(path, f"the weights are not those that {DESCRIPTION} names")
        weights = {name: tensor.float() for name, tensor in load_tensors(data).items()}
    except (OSError, SafetensorError) as error:
        raise ModelFileError(path, f"it cannot be read ({error})") from error
    with torch.device("meta"):
        made = encoders(options, {kind: len(those) for kind, those in labels.items()})
    if {name: tensor.shape for name, tensor in weights.items()} != {
        name: tensor.shape for name, tensor in made.state_dict().items()
    }:
        raise ModelFileError(path, f"the weights are not of the names and shapes that {DESCRIPTION} asks for")
    return weights
