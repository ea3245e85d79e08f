"""The scan over bytes, by torch's integer product; it only chooses, see :mod:`.codes` for how far it can be wrong.

``torch._int_mm`` is private to torch: :func:`usable` tries it once and compares it with numpy, and where it is absent,
wrong or not faster the scan in float32 is used, with the same answers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from .arrays import Codes, Numbers, Scores
from .codes import CodedQueries, encode_queries
from .files import IndexFile
from .scan import BLOCK_ROWS, QueryBatch, blocks, sum_rows
from .shard import Shard

QUERY_ROWS = 128
"""Query rows at once: with more the products leave the processor's caches."""


def scan_shards(shards: Sequence[Shard], queries: QueryBatch) -> Iterator[tuple[Scores, CodedQueries]]:
    """Score all documents of some shards, one shard a thread.

    Args:
        shards: shards of documents.
        queries: the queries.

    Yields:
        For each shard in order, float32 ``[m, queries]``, and the queries as bytes, of which ``errors`` says how far
        these scores can be from the true ones.
    """
    import torch

    def work(shard: Shard) -> tuple[Scores, CodedQueries]:
        coded = encode_queries(queries, shard[IndexFile.SCALES], shard[IndexFile.CODE_BOUNDS])
        return scan_codes(shard[IndexFile.CODES], shard[IndexFile.OFFSETS], coded, queries), coded

    with one_thread(), ThreadPoolExecutor(_cores(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(work, shards)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread for each of ours: more would wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def scan_codes(codes: Codes, offsets: Numbers, coded: CodedQueries, queries: QueryBatch) -> Scores:
    """Score all documents of a shard against some queries, within ``coded.errors`` of the truth.

    Args:
        codes: int8 ``[r, d]``, writable memory (which is not written).
        offsets: int64 ``[m + 1]``; lengths that never fall make the longest runs, but any order is right.
        coded: the queries as bytes.
        queries: the same queries, for their offsets.

    Returns:
        float32 ``[m, queries]``.
    """
    import torch

    transposed = torch.from_numpy(coded.codes).T
    tensor = torch.from_numpy(codes)
    best = np.empty((len(offsets) - 1, len(coded.codes)), dtype=np.float32)
    own = np.empty_like(best) if queries.document_weights is not None else best
    for first, last in blocks(offsets):
        rows = tensor[int(offsets[first]) : int(offsets[last])]
        if len(rows) > 2 * BLOCK_ROWS:  # one long document
            best[first] = torch.stack(
                [torch._int_mm(of, transposed).amax(0) for of in torch.split(rows, BLOCK_ROWS)]
            ).amax(0)
            if queries.document_weights is not None:
                own[first] = torch._int_mm(rows[-1:], transposed)[0]
            continue
        products = torch._int_mm(rows, transposed)
        if queries.document_weights is not None:
            own[first:last] = products[torch.from_numpy(offsets[first + 1 : last + 1] - offsets[first] - 1)]
        starts = offsets[first : last + 1] - offsets[first]
        lengths = np.diff(starts)
        runs = np.flatnonzero(np.diff(lengths, prepend=-1, append=-1))  # where the length changes
        for run, end in zip(runs[:-1].tolist(), runs[1:].tolist(), strict=True):
            of_run = products[int(starts[run]) : int(starts[end])].view(end - run, int(lengths[run]), -1)
            best[first + run : first + end] = of_run.amax(1).numpy()
    if queries.document_weights is not None:
        own *= coded.steps
    best *= coded.factors
    return sum_rows(best, queries, own)


@lru_cache(maxsize=16)
def usable(dimensions: int) -> bool:
    """Whether torch has an integer product here that is right and faster than numpy's in float32; tried once.

    Args:
        dimensions: ``d``; some releases are wrong for some, as torch 2.13 is on a processor with AMX for ``d`` = 1.
    """
    try:
        import torch

        rng = np.random.default_rng(0)
        codes = rng.integers(-127, 128, (BLOCK_ROWS, dimensions)).astype(np.int8)
        query = rng.integers(-127, 128, (QUERY_ROWS, dimensions)).astype(np.int8)
        left, right = torch.from_numpy(codes), torch.from_numpy(query).T
        true = codes.astype(np.float32) @ query.T.astype(np.float32)  # exact: all sums are far below 2²⁴
        for m, q in product((1, 7, BLOCK_ROWS), (1, 2, 13, QUERY_ROWS)):
            if not np.array_equal(torch._int_mm(left[:m], right[:, :q]).numpy(), true[:m, :q]):
                return False
        right, rows, columns = right[:, :16], codes.astype(np.float32), query[:16].T.astype(np.float32)
        with one_thread():
            return _seconds(lambda: torch._int_mm(left, right)) < _seconds(lambda: rows @ columns)
    except (ImportError, AttributeError, RuntimeError, NotImplementedError):
        return False


def _seconds(run: Callable[[], Any]) -> float:
    run()
    best = float("inf")
    for _ in range(30):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def _cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
