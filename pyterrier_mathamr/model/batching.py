"""Devices, what they multiply fast, and batches of similar sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.processes import runs_within

if TYPE_CHECKING:
    import torch


def choose_device(name: str | None) -> torch.device:
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError("device", name, f"a device of this machine, or None ({reason})") from error
    return device


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device multiplies matrices faster in bfloat16 than in float32: AVX-512 BF16, AMX, ARM, GPUs."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and cpu_has("avx512_bf16", "amx_bf16", "arm_bf16", "bf16")


def cpu_has(*instructions: str) -> bool:
    """Return whether the processor has one of some sets of instructions.

    Torch 2.6 has no ``torch.cpu.get_capabilities``, and then nothing is known; that of 2.13 has the names in use here.
    """
    import torch

    known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(name, False) for name in instructions)


def batches_by_size(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Group graphs of similar sizes into batches of at most ``budget`` nodes, at least one graph each."""
    order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    return [[order[at] for at in run] for run in runs_within((sizes[i] for i in order), budget)]
