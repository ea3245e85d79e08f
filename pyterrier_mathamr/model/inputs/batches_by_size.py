"""Batches of graphs of similar sizes, so that no batch is larger than the memory that it may take."""

from __future__ import annotations

from collections.abc import Sequence

from pyterrier_mathamr._common.running.processes import runs_within


def batches_by_size(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Group graphs of similar sizes into batches of at most ``budget`` nodes, at least one graph each."""
    order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    return [[order[at] for at in run] for run in runs_within((sizes[i] for i in order), budget)]
