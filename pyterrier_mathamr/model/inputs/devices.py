"""The device that computes."""

from __future__ import annotations

import torch

from pyterrier_mathamr._common.errors import ConfigError


def choose_device(name: str | None) -> torch.device:
    """Return the device of a name."""
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


def has_bfloat16(device: torch.device) -> bool:
    """Tell whether a device multiplies matrices in bfloat16, faster than in float32: AVX-512 BF16, AMX, ARM, GPUs."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)() if device.type == "cpu" else {}
    return any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16"))
