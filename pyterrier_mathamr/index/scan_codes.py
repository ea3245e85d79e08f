"""The scan over bytes, by an integer product; it only chooses, see :mod:`.codes` for how far it can be wrong.

On the processor the bytes stay memory-mapped and threads share the shards, a piece of one after the other. On a card
(``device="cuda"``) they are copied there once and stay; what the scan leaves is scored from the mapped rows as always,
so that the answers are the same. How a piece is scored: :mod:`.products`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyterrier_mathamr._common.processes import usable_cores

from .arrays import Codes, Numbers, Scores
from .codes import CodedQueries, encode_queries
from .products import ALIGNED, CodeScan, Memory
from .scan import QueryBatch, blocks
from .shard import Shard

if TYPE_CHECKING:
    from torch import Tensor

QUERY_ROWS = 160
"""Query rows at once: with more the products leave the processor's caches."""

_PIECE_ROWS = 1 << 17


def on_card(codes: Codes, device: str) -> Tensor:
    """Copy codes to a card, with zeros around them: its product takes multiples of 8 columns and at least 17 rows."""
    import torch

    rows, width = codes.shape
    padded = torch.zeros((rows + ALIGNED + 1, width + -width % 8), dtype=torch.int8, device=device)
    padded[:rows, :width] = torch.from_numpy(codes).to(device)
    return padded


def scan_codes(
    codes: Codes, offsets: Numbers, coded: CodedQueries, queries: QueryBatch, *, card: str | None = None
) -> Scores:
    """Score all documents of one shard: float32 ``[queries, m]``; see :class:`CodeScan`.

    Args:
        codes: int8 ``[r, d]``, writable memory (which is not written).
        offsets: int64 ``[m + 1]``.
        coded: the queries as bytes.
        queries: the same queries.
        card: where to copy the codes first, as torch names it.
    """
    import torch

    tensor = on_card(codes, card) if card else torch.from_numpy(codes)
    scores = np.empty((len(queries), len(offsets) - 1), dtype=np.float32)
    scan = CodeScan(tensor, offsets, coded, queries, Memory(card or "cpu"), card=bool(card))
    scan.fill(0, scores.shape[1], scores)
    return scores


def scan_shards(
    shards: Sequence[Shard], queries: QueryBatch, device: str | None = None
) -> Iterator[tuple[Scores, CodedQueries]]:
    """Score all documents of some shards; the caller holds :func:`.integers.exactly` until it has taken them all.

    Args:
        shards: shards of documents.
        queries: the queries.
        device: ``None`` for the processor, by threads; else the card that keeps the codes, as torch names it.

    Yields:
        For each shard in order, float32 ``[queries, m]``, and the queries as bytes, of which ``errors`` says how far
        these scores can be from the true ones.
    """
    import torch

    memory = Memory(device or "cpu")
    if device is not None:
        for shard in shards:
            codes = shard.kept(device, partial(on_card, shard.coding[0], device))
            scan, scores, coded = _prepare(shard, queries, codes, memory, card=True)
            scan.fill(0, len(shard), scores)
            yield scores, coded
        return
    cores = usable_cores()
    waiting: deque[tuple[list[Future[None]], Scores, CodedQueries]] = deque()
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for shard in shards:
            scan, scores, coded = _prepare(shard, queries, torch.from_numpy(shard.coding[0]), memory)
            pieces = blocks(scan.offsets, _PIECE_ROWS)
            waiting.append(([pool.submit(scan.fill, *piece, scores) for piece in pieces], scores, coded))
            if len(waiting) > 2 * cores:  # scores of a few shards, not of all, wait in memory
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())


def _prepare(
    shard: Shard, queries: QueryBatch, codes: Any, memory: Memory, *, card: bool = False
) -> tuple[CodeScan, Scores, CodedQueries]:
    coded = encode_queries(queries, *shard.coding[1:])
    scan = CodeScan(codes, shard.field("all")[1], coded, queries, memory, card=card)
    return scan, np.empty((len(queries), len(shard)), dtype=np.float32), coded


def _finished(pieces: list[Future[None]], scores: Scores, coded: CodedQueries) -> tuple[Scores, CodedQueries]:
    for piece in pieces:
        piece.result()
    return scores, coded
