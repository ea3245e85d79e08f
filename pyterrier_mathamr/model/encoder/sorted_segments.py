"""Sorted integers and their segments of equal ones, from which the plan of a batch is computed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_BITS = 63  # of an integer that is not negative


def in_order(keys: Tensor, bound: int) -> tuple[Tensor, Tensor]:
    """Sort integers; the sort is stable."""
    bits = keys.numel().bit_length()
    if keys.device.type != "cpu" or bound.bit_length() + bits > _BITS:
        numbers, order = torch.sort(keys, stable=True)
        return numbers, order
    both = torch.from_numpy(np.sort(((keys << bits) | torch.arange(keys.numel())).numpy()))
    return both >> bits, both & ((1 << bits) - 1)


def firsts(keys: Tensor) -> Tensor:
    """Mark the first number of each segment: int64 ``[e]`` to bool ``[e]``."""
    first = torch.ones_like(keys, dtype=torch.bool)
    torch.ne(keys[1:], keys[:-1], out=first[1:])
    return first


def shares(keys: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute 1 / (the length of its segment) for each number: int64 ``[e]`` to float ``[e]``."""
    _, run, counts = torch.unique_consecutive(keys, return_inverse=True, return_counts=True)
    return pick(counts.to(dtype).reciprocal(), run)


def starts(counts: Tensor) -> Tensor:
    """Turn the sizes of consecutive groups into their boundaries: int64 ``[g]`` to int64 ``[g + 1]``."""
    found = counts.new_zeros(counts.numel() + 1)
    torch.cumsum(counts, 0, out=found[1:])
    return found


def pick(values: Tensor, at: Tensor) -> Tensor:
    """Return ``values[at]`` for integers ``at``, four times faster."""
    return values.index_select(0, at)


def places(marks: Tensor) -> Tensor:
    """List where marks are set: bool ``[e]`` to int64."""
    return torch.nonzero(marks).squeeze(1)
