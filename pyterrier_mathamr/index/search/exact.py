"""From scores to the best documents: provably the true ones, in a documented order.

A scan rounds, so it only chooses. Its greatest possible error is known; every document that can be among the best ``k``
by it is left. Of those the most promising are scored from their rows, then all others that can still be better, and the
best of these in double precision. Equal scores (as float32) are in ascending order of docno; see docs/exactness.md.
"""

from __future__ import annotations

import numpy as np

from pyterrier_mathamr._common.threads import one_blas_thread
from pyterrier_mathamr.index.protocols import Field, Numbers, Scores, Weights
from pyterrier_mathamr.index.snapshot import Shard, Snapshot

from .int8_product import exactly, usable
from .int8_scoring import QUERY_ROWS, scan_shards
from .maxsim import QueryBatch, scan
from .ranking import Hits, rank, score

BYTES_PAY = 64
"""Documents for each result above which the scan over bytes pays."""


def search_exact(
    snapshot: Snapshot, queries: QueryBatch, k: int, field: Field, device: str | None = None
) -> list[Hits]:
    """The best ``k`` documents of each query, over every document; all queries in one pass over the data.

    Args:
        snapshot: the index.
        queries: their rows have the index's dimensions.
        k: how many, at least 1.
        field: which vectors are searched; with ``doc`` the queries' last rows are used.
        device: the card that scans all vectors of the documents, as torch names it; ``None`` for the processor, which
            scans ``doc`` always.
    """
    asked = queries.last_rows() if field == "doc" else queries
    hits: list[Hits] = []
    for group in asked.groups(QUERY_ROWS):
        if field == "all" and (device or _bytes_pay(snapshot, k)):
            found = _scan_codes(snapshot, group, k, device)
            left = [_settle(snapshot, group.one(i), best, k) for i, best in enumerate(found)]
        else:
            left = [best.left()[0] for best in _scan_rows(snapshot, group, k, field)]
        hits += [rank(snapshot, group.one(i), numbers, k, field) for i, numbers in enumerate(left)]
    return hits


def _bytes_pay(snapshot: Snapshot, k: int) -> bool:
    """Whether the scan over bytes is the faster: it saves on each document, but leaves more to settle."""
    return len(snapshot) >= BYTES_PAY * k and usable(snapshot.meta.dimensions)


def _scan_rows(snapshot: Snapshot, queries: QueryBatch, k: int, field: Field) -> list[_Best]:
    """For each query, the documents among which its best ``k`` are, by a scan in float32."""
    errors = float32_error(queries, snapshot.max_norm, snapshot.meta.dimensions).tolist()
    best = [_Best(k) for _ in errors]
    for base, shard in zip(snapshot.bases.tolist(), snapshot.shards, strict=False):
        rows, offsets = shard.field(field)
        scores = np.empty((len(queries), len(shard)), dtype=np.float32)
        with one_blas_thread():  # once for all blocks: setting it takes as long as a small product
            for first, block in scan(rows, offsets, queries):
                scores[:, first : first + len(block)] = block.T
        for of_query, found, error in zip(best, scores, errors, strict=True):
            of_query.add(base, shard, found, error)
    return best


def _scan_codes(snapshot: Snapshot, queries: QueryBatch, k: int, device: str | None) -> list[_Best]:
    """For each query, the documents among which its best ``k`` are, by a scan over bytes."""
    best = [_Best(k) for _ in range(len(queries))]
    bases = snapshot.bases.tolist()
    with exactly():
        scanned = scan_shards(snapshot.shards, queries, device)
        for base, shard, (scores, coded) in zip(bases, snapshot.shards, scanned, strict=False):
            for of_query, found, error in zip(best, scores, coded.errors.tolist(), strict=True):
                of_query.add(base, shard, found, error)
    return best


def _settle(snapshot: Snapshot, query: QueryBatch, left: _Best, k: int) -> Numbers:
    """Score the most promising of what is left in float32, then all others that can be among the best ``k``."""
    numbers, most = left.left()
    if len(numbers) <= k:
        return numbers
    error = float(float32_error(query, snapshot.max_norm, snapshot.meta.dimensions)[0])
    scores = np.full(len(numbers), -np.inf, dtype=np.float32)
    promising = min(len(numbers), k + k // 4 + 16)
    first = most >= np.partition(most, -promising)[-promising]
    scores[first] = score(snapshot, query, numbers[first], precise=False)
    then = ~first & (most >= _floor(scores, k) - 2 * error)
    scores[then] = score(snapshot, query, numbers[then], precise=False)
    kept: Numbers = numbers[scores >= _floor(scores, k) - 2 * error]
    return kept


def _floor(scores: Scores, k: int) -> float:
    """The ``k``-th best score."""
    return float(np.partition(scores, -k)[-k])


def float32_error(queries: QueryBatch, max_norm: float, dimensions: int) -> Weights:
    """How far a score computed in float32, in any order of summation, can be from the true one.

    A product of ``d`` terms is within ``d u |q| |d|`` of the truth (``u`` = 2⁻²⁴), and summing ``q`` of them adds at
    most ``q u`` of their sum; both are doubled, which covers the higher-order terms.

    Args:
        queries: the queries.
        max_norm: the length of the longest row of the index.
        dimensions: ``d``.

    Returns:
        float64 ``[queries]``.
    """
    steps = dimensions + np.diff(queries.offsets) + 2  # the greatest sum has a term for each row and one more
    return 2 * steps * 2.0**-24 * queries.weighted_lengths() * max_norm


class _Best:
    """The documents of one query that can still be among the best ``k``, and the most that each can score.

    The scan knows each score within an error; the floor is the ``k``-th best of the least that scores can be, and a
    document is left while the most that it can score reaches the floor.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self._numbers: list[Numbers] = [np.empty(0, dtype=np.int64)]
        self._most: list[Weights] = [np.empty(0)]
        self._least: Weights = np.empty(0)  # the best k of them; the rest can no longer become the floor
        self._floor = -np.inf

    def add(self, base: int, shard: Shard, scores: Scores, error: float) -> None:
        """Take the scores of a whole shard whose first document is ``base``, each within ``error`` of the truth."""
        reach = np.nextafter(np.float32(self._floor - error), np.float32(-np.inf))  # in float32, and not too high
        local = np.flatnonzero(scores >= reach)
        if len(shard.part.deleted):
            local = local[shard.part.alive[local]]
        exact = scores[local].astype(np.float64)
        self._numbers.append(local + base)
        self._most.append(exact + error)
        least = exact - error
        self._least = np.concatenate([self._least, least[least > self._floor]])
        if len(self._least) >= self.k:
            place = len(self._least) - self.k
            self._least = np.partition(self._least, place)[place:]
            self._floor = float(self._least[0])

    def left(self) -> tuple[Numbers, Weights]:
        """The numbers of the documents that are left, rising, and the most that each can score."""
        numbers, most = np.concatenate(self._numbers), np.concatenate(self._most)
        keep = most >= self._floor
        return numbers[keep], most[keep]
