"""The device that computes."""

from __future__ import annotations

import torch

from pyterrier_mathamr._common.errors import ConfigError


def choose_device(name: str | None) -> torch.device:
    """Return the device of a name.

    Args:
        name: such as ``cpu``, ``cuda`` or ``cuda:1``; ``None`` for CUDA if there is a GPU, else the CPU.

    Raises:
        ConfigError: torch knows no such device, or this machine has none.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            "device", name, f"a device of this machine, or None ({str(error).splitlines()[0]})"
        ) from error
    return device
