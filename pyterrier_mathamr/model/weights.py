"""The file of a model's weights, ``weights.safetensors``, as tensors of torch: reading, checking and writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pyterrier_mathamr._common.errors import ConfigError

from .errors import ModelFileError
from .saving import WEIGHTS, other_shapes, unreadable_weights, weights_data


def read_weights(
    path: Path, digest: str, description: str, layers: int = 0, build: Callable[[], nn.Module] | None = None
) -> dict[str, Tensor]:
    """Read weights as float32; with ``build``, check that they fit the network that it makes."""
    try:
        data = weights_data(path, digest, description)
        weights = {name: tensor.float() for name, tensor in load_tensors(data).items()}
    except SafetensorError as error:
        raise unreadable_weights(path, error) from error
    if build is not None:
        _check_weights(path, weights, description, layers, build)
    return weights


def _check_weights(
    path: Path, weights: Mapping[str, Tensor], description: str, layers: int, build: Callable[[], nn.Module]
) -> None:
    """Compare names and shapes with a network on a device without memory, and refuse numbers that are not finite."""
    wrong = other_shapes(path, description)
    if layers > len(weights):  # each layer has weights, and building even empty layers costs time
        raise wrong
    try:
        with torch.device("meta"), _Unfilled():
            expected = {name: tuple(tensor.shape) for name, tensor in build().state_dict().items()}
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:  # sizes that no tensor can have
        raise wrong from error
    for name in sorted({*weights, *expected}):
        found = tuple(weights[name].shape) if name in weights else None
        if found != expected.get(name):
            raise ModelFileError(path, f"{wrong.problem}: {name!r} has shape {found}, not {expected.get(name)}")
        if not bool(torch.isfinite(weights[name]).all()):
            raise ModelFileError(path, f"{name!r} has values that are not finite numbers")


class _Unfilled(TorchFunctionMode):
    """Skips normal noise, for which a device without memory would import torch's compiler: a second."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func is nn.init.normal_ or func is Tensor.normal_:
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def pack_weights(weights: Mapping[str, Tensor], dtype: str = "float32") -> bytes:
    """Return the bytes of ``weights.safetensors``, the same for the same weights."""
    kinds = {"float32": torch.float32, "float16": torch.float16}
    if dtype not in kinds:
        raise ConfigError("dtype", dtype, "'float32' or 'float16'")
    data: bytes = save_tensors({name: weights[name].to(kinds[dtype]).contiguous() for name in sorted(weights)})
    return data


def stored_dtype(folder: Path | None) -> str:
    """Return the type of the weights in a folder: ``float32``, also without a folder, or ``float16``."""
    if folder is None:
        return "float32"
    with safe_open(folder / WEIGHTS, "pt") as file:
        kinds = {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 - it is not a mapping
    return "float16" if kinds == {"F16"} else "float32"
