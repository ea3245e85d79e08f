"""Exact search: for each query, few documents that are proven to contain its best ``k``.

A scan of all documents is fast and approximate, and its greatest possible error is known: every document that can be
among the best ``k`` is kept. Which of two scans is used depends on what is faster; the answer does not. See
docs/exactness.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pyterrier_mathamr._common.running.resources import on_threads
from pyterrier_mathamr.index.protocols import Field, Numbers, Scores, Weights
from pyterrier_mathamr.index.snapshot import Shard, Snapshot

from .compiled_scan import compiled
from .int8_product import usable
from .int8_scan import scan_codes
from .maxsim import float32_error, scan
from .queries import QueryBatch
from .ranking import pieces

QUERY_ROWS = 160
"""Query rows scanned at once: with more the products leave the CPU's caches."""

_FEW = 1 << 14
"""Documents of one query from which those that fell behind are dropped, which bounds the memory."""

Each = Callable[[Callable[[Numbers], Scores], Iterable[Numbers]], list[Scores]]

CODES_PAY = 64
"""Documents for each result above which the scan of codes is faster."""


def select(snapshot: Snapshot, queries: QueryBatch, k: int, field: Field, device: str | None = None) -> list[Numbers]:
    """Select the documents among which the best ``k`` of each query are, by a scan of all documents."""
    asked = queries.last_rows() if field == "doc" else queries
    selected: list[Numbers] = []
    for group in asked.of_rows(QUERY_ROWS):
        best = [_Best(k) for _ in range(len(group))]
        if field == "all" and (device or _codes_pay(snapshot, k)):
            scan_codes(snapshot.shards, group, device, lambda *of, best=best: _add(best, *of))
            if len(group) == 1:
                selected.append(_narrow(snapshot, group, best[0], k, on_threads))
            else:  # a thread takes a query, which needs fewer threads than if all took pieces of each

                def narrowed(i: int, group: QueryBatch = group, best: list[_Best] = best) -> Numbers:
                    return _narrow(snapshot, group.one(i), best[i], k, _one_by_one)

                selected += on_threads(narrowed, range(len(group)))
        else:
            errors = float32_error(group, snapshot.max_norm, snapshot.meta.dimensions)
            for shard in snapshot.shards:
                _add(best, shard, scan(*shard.field(field), group), errors)
            selected += [of.left()[0] for of in best]
    return selected


def _codes_pay(snapshot: Snapshot, k: int) -> bool:
    """Decide whether the scan of codes is faster: it saves on each document, but leaves more to rescore."""
    width = snapshot.meta.dimensions
    return len(snapshot) >= CODES_PAY * k and (compiled(width) is not None or usable(width))


def _add(best: list[_Best], shard: Shard, scores: Scores, errors: Weights) -> None:
    """Add the scores of the next shard, float32 ``[queries, m]``, each within its query's error."""
    for of_query, found, error in zip(best, scores, errors.tolist(), strict=True):
        of_query.add(shard, found, error)


def _narrow(snapshot: Snapshot, query: QueryBatch, best: _Best, k: int, each: Each) -> Numbers:
    """Rescore candidates in float32, the most promising first, and drop those that cannot be among the best ``k``."""
    numbers, most = best.left()
    if len(numbers) <= k:
        return numbers
    error = float(float32_error(query, snapshot.max_norm, snapshot.meta.dimensions)[0])
    promising = min(len(numbers), k + k // 4 + 16)
    first = most >= np.partition(most, -promising)[-promising]
    some, scores = numbers[first], _rescored(snapshot, query, numbers[first], each)
    then = numbers[~first & (most >= _floor(scores, k) - 2 * error)]
    some, scores = np.concatenate([some, then]), np.concatenate([scores, _rescored(snapshot, query, then, each)])
    kept: Numbers = np.sort(some[scores >= _floor(scores, k) - 2 * error])
    return kept


def _one_by_one(work: Callable[[Numbers], Scores], items: Iterable[Numbers]) -> list[Scores]:
    return [work(item) for item in items]


def _rescored(snapshot: Snapshot, query: QueryBatch, numbers: Numbers, each: Each) -> Scores:
    """Score documents in float32, read and multiplied a few at a time."""

    def score(some: Numbers) -> Scores:
        found: Scores = scan(*snapshot.rows(some), query)[0]
        return found

    parts = each(score, pieces(snapshot, numbers, "all"))
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


def _floor(scores: Scores, k: int) -> float:
    """Return the ``k``-th best score."""
    return float(np.partition(scores, -k)[-k])


class _Best:
    """The documents of one query that can be among the best ``k``, and the upper bound of each score."""

    def __init__(self, k: int) -> None:
        self.k = k
        self._base = 0
        self._numbers: list[Numbers] = [np.empty(0, dtype=np.int64)]
        self._most: list[Weights] = [np.empty(0)]
        self._least: Weights = np.empty(0)  # the best k of them; the rest can no longer become the floor
        self._floor = -np.inf
        self._full = _FEW

    def add(self, shard: Shard, scores: Scores, error: float) -> None:
        """Add the scores of the next shard, float32 ``[m]``, each within ``error`` of the true one."""
        reach = np.nextafter(np.float32(self._floor - error), np.float32(-np.inf))  # in float32, and not too high
        local = np.flatnonzero(scores >= reach)
        if len(shard.part.deleted):
            local = local[shard.part.alive[local]]
        exact = scores[local].astype(np.float64)
        higher = exact[exact > self._floor + error] - error
        exact += error
        local += self._base
        self._base += len(shard)
        self._numbers.append(local)
        self._most.append(exact)
        self._least = np.concatenate([self._least, higher])
        if len(higher) and len(self._least) >= self.k:
            place = len(self._least) - self.k
            self._least = np.partition(self._least, place)[place:]
            self._floor = float(self._least[0])
        if sum(map(len, self._numbers)) > self._full:
            numbers, most = self.left()
            self._numbers, self._most, self._full = [numbers], [most], 2 * len(numbers) + _FEW

    def left(self) -> tuple[Numbers, Weights]:
        """Return the numbers of the remaining documents, ascending, and their upper bounds."""
        numbers, most = np.concatenate(self._numbers), np.concatenate(self._most)
        keep = most >= self._floor
        return numbers[keep], most[keep]
