"""Neighbours that are handled together, as many as a budget allows."""

from __future__ import annotations

from collections.abc import Iterable


def runs_within(sizes: Iterable[int], budget: int) -> list[range]:
    """Cut a row of things into runs of neighbours whose sizes add up to at most ``budget``, one thing at the least.

    Args:
        sizes: of the things, in order.
        budget: most that a run of several holds.

    Returns:
        The numbers of the things of each run; together all of them in order.
    """
    runs: list[range] = []
    room = 0
    for i, size in enumerate(sizes):
        if not runs or size > room:
            runs.append(range(i, i + 1))
            room = budget
        else:
            runs[-1] = range(runs[-1].start, i + 1)
        room -= size
    return runs
