"""From queries to a ranking of numbered documents or formulas: score descending, then name ascending."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import distinct_queries, empty_output
from pyterrier_mathamr._common.transformers import Retriever
from pyterrier_mathamr.explain import Explanation, QueryRow
from pyterrier_mathamr.store import Array, Rows, Snapshot

Names = Callable[[Rows], list[str]]
"""Returns the texts of some numbers."""

Found = tuple[Rows, Array]
"""The numbers and scores of a query's results, best first."""

_REMEMBERED = 1 << 18


class SparseRetriever(Retriever):
    """Searches with each query of a frame, once for each ``qid``."""

    inputs: ClassVar[tuple[tuple[str, ...], ...]]
    """What a query may bring beside ``qid``, one tuple for each way."""
    outputs: ClassVar[tuple[str, ...]]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with each query."""
        with pt.validate.any(inp, context=self) as validation:
            for columns in self.inputs:
                validation.query_frame(extra_columns=list(columns))
        queries = distinct_queries(inp, self.outputs)
        return empty_output(queries, self.outputs) if queries.empty else self.search_all(queries)

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row."""
        raise NotImplementedError

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what contributes to the score of a result."""
        raise NotImplementedError


def best_first(numbers: Rows, scores: Array, count: int, names: Names) -> Found:
    """Rank by score descending, then by name ascending as Python compares texts (the order of their UTF-8 bytes)."""
    if len(numbers) > count:  # keep all that tie with the last: the name decides
        kept = scores >= -np.partition(-scores, count - 1)[count - 1]
        numbers, scores = numbers[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")
    numbers, scores = numbers[order], scores[order]
    _, group, sizes = np.unique(-scores, return_inverse=True, return_counts=True)
    tied = np.flatnonzero(sizes[group] > 1)
    ties = zip(group[tied].tolist(), names(numbers[tied]), numbers[tied].tolist(), strict=True)
    numbers[tied] = [number for _, _, number in sorted(ties)]
    return numbers[:count], scores[:count]


class Remembered:
    """Reads texts by number and caches them, since many queries find the same documents."""

    def __init__(self, snapshot: Snapshot, read: Callable[[Any, Rows], list[str]]) -> None:
        self._snapshot, self._read = weakref.proxy(snapshot), read
        self._known: dict[int, str] = {}

    def __call__(self, numbers: Rows) -> list[str]:
        """Return the texts of some numbers, in their order."""
        wanted, known = numbers.tolist(), self._known
        try:
            return list(map(known.__getitem__, wanted))
        except KeyError:
            if len(known) > _REMEMBERED:
                known = self._known = {}  # another thread may still read the old one
            missing = [number for number in dict.fromkeys(wanted) if number not in known]
            known.update(zip(missing, self._read(self._snapshot, np.asarray(missing, dtype=np.int64)), strict=True))
            return list(map(known.__getitem__, wanted))
