"""The signed description in a model's folder, such as ``marf.json``: format, options, and checksums of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.model.errors import ModelFileError
from pyterrier_mathamr.store import file_sum, read_signed

T = TypeVar("T")


def read_description(path: Path, version: int, name: str, read: Callable[[dict[str, Any]], T]) -> T:
    """Read a description that :func:`~pyterrier_mathamr.store.signed` wrote."""
    try:
        content = read_signed(path)
        if content["format"] != version:
            problem = f"model format {content['format']!r}, but this release reads {version}"
            raise ModelFileError(path, problem, "Install the release that wrote it, or a later one.")
        return read(content)
    except ModelFileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MathAMRError) as error:
        raise ModelFileError(path, f"no {name} ({type(error).__name__}: {error})") from error


def read_weights(path: Path, digest: str, description: str) -> dict[str, Tensor]:
    """Read weights as float32."""
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ModelFileError(path, f"the weights are not those that {description} names")
        return {name: tensor.float() for name, tensor in load_tensors(data).items()}
    except (OSError, SafetensorError) as error:
        raise ModelFileError(path, f"it cannot be read ({error})") from error


def sums_of(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file in a folder, by its path in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_sum(path).sha256 for path in files}


def sum_faults(folder: Path, sums: Mapping[str, object]) -> Iterator[ModelFileError]:
    """Compare the files in a folder with what :func:`sums_of` returned, and yield what is wrong."""
    for name, wanted in sums.items():
        try:
            found = file_sum(folder / name).sha256
        except (OSError, ValueError):
            yield ModelFileError(folder / name, "the file is missing")
            continue
        if found != wanted:
            yield ModelFileError(folder / name, "its content was changed since it was written")


def other_shapes(path: Path, description: str) -> ModelFileError:
    """Return the error of weights that are not those of a model's options."""
    return ModelFileError(path, f"the weights are not of the names and shapes that {description} asks for")
