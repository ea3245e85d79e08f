"""Where the scan computes: the processor, or a card that is there."""

from __future__ import annotations

import re

from pyterrier_mathamr._common.errors import ConfigError


def check_device(device: object) -> str | None:
    """Read the option ``device``.

    Args:
        device: ``None`` or ``cpu`` for the processor; ``cuda`` or ``cuda:1`` for a card.

    Returns:
        The card, or ``None`` for the processor.

    Raises:
        ConfigError: it is something else, or torch finds no such card.
    """
    if device in (None, "cpu"):
        return None
    if not isinstance(device, str) or not re.fullmatch(r"cuda(:\d+)?", device):
        raise ConfigError("device", device, "None, 'cpu' or 'cuda'")
    import torch

    cards = torch.cuda.device_count()
    if int(device.partition(":")[2] or 0) >= cards:
        raise ConfigError("device", device, f"None or 'cpu': torch finds {cards} CUDA devices here")
    return device
