"""Arrays of which each expression owns a run, from several pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyterrier_mathamr.store import Rows, ranges


def combined_runs(offsets: Sequence[Rows], numbers: Sequence[Rows], size: int) -> tuple[Rows, Rows]:
    """Lay out the runs of several pieces in the order of a result, as a payload is combined."""
    starts, sizes, base = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), 0
    for ends, number in zip(offsets, numbers, strict=True):
        kept = number >= 0
        starts[number[kept]], sizes[number[kept]] = base + ends[:-1][kept], np.diff(ends)[kept]
        base += int(ends[-1])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), ranges(starts, sizes)
