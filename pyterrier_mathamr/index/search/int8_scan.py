"""The scan of all documents of some shards by int8 codes, piece by piece on CPU threads or on a GPU.

On the CPU the codes stay memory-mapped and threads share the shards piece by piece. On a GPU they are copied once and
stay there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np

from pyterrier_mathamr._common.running.processes import usable_cores
from pyterrier_mathamr.index.protocols import Scores, Weights
from pyterrier_mathamr.index.snapshot import Shard

from .compiled_scan import Columns, CompiledScan, compiled
from .int8_coding import CodedQueries, encode_queries
from .int8_product import exactly
from .int8_scoring import CodeScan, Memory, on_device
from .maxsim import blocks, run_bounds
from .queries import QueryBatch

_PIECES = 8  # that each of several threads takes, one after the other, so that all end at about the same time
_PIECE_ROWS = 1 << 15, 1 << 19  # of a piece, at least and at most


def scan_codes(
    shards: Sequence[Shard],
    queries: QueryBatch,
    device: str | None,
    take: Callable[[Shard, Scores, Weights], None],
) -> None:
    """Score all documents of some shards."""
    import torch

    memory, cores, columns = Memory(device or "cpu"), usable_cores(), Columns(queries)
    least, most = _PIECE_ROWS
    piece_rows = most
    if cores > 1:
        piece_rows = min(max(sum(len(shard.coding[0]) for shard in shards) // (_PIECES * cores), least), most)
    waiting: deque[tuple[Shard, list[Future[None]], Scores, Weights]] = deque()

    def finish() -> None:
        shard, pieces, scores, errors = waiting.popleft()
        for piece in pieces:
            piece.result()
        take(shard, scores, errors)

    with (
        exactly(),
        ThreadPoolExecutor(1 if device else cores, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        for shard in shards:
            coded = encode_queries(queries, *shard.coding[1:])
            scan = _scan_of(shard, queries, coded, memory, None if device else columns, device)
            scores = np.empty((len(queries), len(shard)), dtype=np.float32)
            pieces = [(0, len(shard))] if device else blocks(shard.field("all")[1], piece_rows)
            waiting.append((shard, [pool.submit(scan.fill, *piece, scores) for piece in pieces], scores, coded.errors))
            if len(waiting) > 2 * cores:  # scores of a few shards, not of all, wait in memory
                finish()
        while waiting:
            finish()


def _scan_of(
    shard: Shard, queries: QueryBatch, coded: CodedQueries, memory: Memory, columns: Columns | None, device: str | None
) -> CompiledScan | CodeScan:
    """Return the scan of one shard: compiled where that is possible, else by torch."""
    import torch

    codes, offsets = shard.coding[0], shard.field("all")[1]
    function = compiled(codes.shape[1]) if columns is not None else None
    if function is not None and columns is not None:
        return CompiledScan(function, codes, offsets, coded, columns)
    tensor = shard.kept(device, partial(on_device, codes, device)) if device else torch.from_numpy(codes)
    runs = shard.kept("runs", partial(run_bounds, offsets))
    return CodeScan(tensor, offsets, coded, queries, memory, runs=runs, padded=device is not None)
