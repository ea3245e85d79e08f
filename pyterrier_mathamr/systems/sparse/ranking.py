"""Rankings of numbered documents or formulas: score descending, then name ascending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from pyterrier_mathamr.store import Array, Rows

Names = Callable[[Rows], list[str]]
"""Gives a text for each of some numbers."""

_REMEMBERED = 1 << 18


def best_first(numbers: Rows, scores: Array, count: int, names: Names) -> tuple[Rows, Array]:
    """Rank by score descending, then by name ascending as Python compares texts (the order of their UTF-8 bytes).

    Args:
        numbers: int64 ``[n]``, what is ranked.
        scores: float ``[n]``.
        count: at most so many are kept.
        names: asked only of those whose scores are equal.

    Returns:
        The numbers and scores of the best.
    """
    if len(numbers) > count:  # keep all that tie with the last, so that the name decides, not chance
        kept = scores >= -np.partition(-scores, count - 1)[count - 1]
        numbers, scores = numbers[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")
    numbers, scores = numbers[order], scores[order]
    _, group, sizes = np.unique(-scores, return_inverse=True, return_counts=True)
    tied = np.flatnonzero(sizes[group] > 1)
    ties = zip(group[tied].tolist(), names(numbers[tied]), numbers[tied].tolist(), strict=True)
    numbers[tied] = [number for _, _, number in sorted(ties)]
    return numbers[:count], scores[:count]


def ranking_frame(queries: pd.DataFrame, found: Sequence[tuple[Rows, Array]], **columns: Names) -> pd.DataFrame:
    """Repeat each query's row for each of its results.

    Args:
        queries: at least one.
        found: the numbers and scores of each query's results, best first.
        columns: what is said of a result besides ``score`` and ``rank``.
    """
    lengths = [len(numbers) for numbers, _ in found]
    numbers = np.concatenate([numbers for numbers, _ in found])
    repeated = queries.iloc[np.repeat(np.arange(len(queries)), lengths)].reset_index(drop=True)
    frame: pd.DataFrame = repeated.assign(
        **{column: texts(numbers) for column, texts in columns.items()},
        score=np.concatenate([scores for _, scores in found]).astype(np.float64),
        rank=np.concatenate([np.arange(length) for length in lengths]),
    )
    return frame


class Remembered:
    """Reads texts by number and remembers them, since the same documents are found by many queries."""

    def __init__(self, read: Names) -> None:
        self._read = read
        self._known: dict[int, str] = {}

    def __call__(self, numbers: Rows) -> list[str]:
        """Give the texts of some numbers, in their order."""
        wanted = numbers.tolist()
        try:
            return list(map(self._known.__getitem__, wanted))
        except KeyError:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            missing = [number for number in dict.fromkeys(wanted) if number not in self._known]
            self._known.update(zip(missing, self._read(np.asarray(missing, dtype=np.int64)), strict=True))
            return list(map(self._known.__getitem__, wanted))
