"""Rows stored as float16 become float32 by torch, four times as fast as by numpy."""

from __future__ import annotations

import numpy as np

from .protocols import Array, Rows

_AT_ONCE = 1 << 15  # numbers below which torch computes on the calling thread


def widened(rows: Array, out: Rows) -> Rows:
    """Copy rows into memory of float32."""
    if rows.dtype == np.float32:
        out[:] = rows
        return out
    import torch

    step = max((_AT_ONCE - 1) // max(rows.shape[1], 1), 1)
    parts = (torch.split(torch.from_numpy(of), step) for of in (out, rows))
    for into, some in zip(*parts, strict=True):
        into.copy_(some)
    return out
