"""The files of a MaRF model. Nothing is unpickled.

::

    marf.json             {"format": 1, "config": {…}, "training": {…}, "vocabulary": […], "backbone": name or "",
                           "weights": <sha256 of the file>, "context": {file: sha256}, "checksum": …}
    weights.safetensors   the trained parameters
    context/              the context encoder, where it has no name
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.model.errors import ModelFileError, ModelNotFoundError
from pyterrier_mathamr.model.saving.description import read_description, read_weights
from pyterrier_mathamr.model.saving.files import WEIGHTS, pack_weights
from pyterrier_mathamr.model.saving.places import HUB
from pyterrier_mathamr.model.variants.text_loading import BUNDLED_MODELS, without_bars
from pyterrier_mathamr.store import file_sum, new_folder, signed, write_file
from pyterrier_mathamr.systems.math_vocabulary import MathVocabulary

from .config import MaRFConfig, MaRFTraining
from .context import ContextEncoder

DESCRIPTION = "marf.json"
CONTEXT = "context"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Saved:
    """What is kept of a model.

    Attributes:
        config: what it is.
        training: how it is trained.
        vocabulary: of the formula encoder.
        backbone: name or folder of the context encoder.
        weights: the trained parameters by name.
    """

    config: MaRFConfig
    training: MaRFTraining
    vocabulary: MathVocabulary
    backbone: str
    weights: dict[str, Tensor]


def write(path: Path, saved: Saved, context: ContextEncoder) -> None:
    """Write a model to a new folder, atomically."""
    packed = pack_weights(saved.weights)
    named = saved.backbone.startswith(HUB) or saved.backbone in BUNDLED_MODELS
    with new_folder(path) as folder:
        if not named:
            with without_bars():
                context.network.save_pretrained(folder / CONTEXT)
            context.tokenizer.save_pretrained(folder / CONTEXT)
        parts = sorted(file for file in (folder / CONTEXT).rglob("*") if file.is_file())
        content = {
            "format": FORMAT_VERSION,
            "config": saved.config.to_dict(),
            "training": saved.training.to_dict(),
            "vocabulary": list(saved.vocabulary.tokens),
            "backbone": saved.backbone if named else "",
            "weights": hashlib.sha256(packed).hexdigest(),
            "context": {file.relative_to(folder / CONTEXT).as_posix(): file_sum(file).sha256 for file in parts},
        }
        write_file(folder / WEIGHTS, (packed,))
        write_file(folder / DESCRIPTION, (signed(content),))


def read(folder: Path) -> Saved:
    """Read a model and check every byte."""
    path = folder / DESCRIPTION
    if not path.is_file():
        raise ModelNotFoundError(str(folder), f"it has no {DESCRIPTION}. Give the path that MaRF.save() wrote")

    def saved(content: dict[str, Any]) -> Saved:
        for name, wanted in content["context"].items():
            _check(folder / CONTEXT / name, wanted)
        return Saved(
            MaRFConfig.from_dict(content["config"]),
            MaRFTraining.from_dict(content["training"]),
            MathVocabulary(tuple(map(str, content["vocabulary"]))),
            str(content["backbone"]) or str(folder / CONTEXT),
            read_weights(folder / WEIGHTS, str(content["weights"]), DESCRIPTION),
        )

    return read_description(path, FORMAT_VERSION, "MaRF model", saved)


def marf_faults(folder: Path) -> Iterator[MathAMRError]:
    """Read a model's files, compare every checksum, and yield what is wrong."""
    try:
        read(folder)
    except MathAMRError as error:
        yield error


def _check(path: Path, wanted: str) -> None:
    if not path.is_file():
        raise ModelFileError(path, "the file is missing")
    if file_sum(path).sha256 != wanted:
        raise ModelFileError(path, "its content was changed since it was written")
