"""The scan over bytes, by an integer product; it only chooses, see :mod:`.codes` for how far it can be wrong.

On the processor the bytes stay memory-mapped and threads share the shards, a piece of one after the other. On a card
(``device="cuda"``) they are copied there once and stay; what the scan leaves is scored from the mapped rows as always,
so that the answers are the same::

    [D * n, d] @ [d, T]  ->  [D * n, T]  --max over n-->  [D, T]  --factors of each query's rows-->  [queries, D]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pyterrier_mathamr._common.processes import usable_cores

from .arrays import Codes, Numbers, Scores
from .codes import CodedQueries, encode_queries
from .files import IndexFile
from .integers import exactly, product_on
from .scan import QueryBatch, blocks
from .shard import Shard

if TYPE_CHECKING:
    from torch import Tensor

QUERY_ROWS = 160
"""Query rows at once: with more the products leave the processor's caches."""

PRODUCTS = 1 << 18
"""Products that are made before they are reduced: one megabyte, which stays in a cache."""

_CARD_PRODUCTS = 1 << 25
_PIECE_ROWS = 1 << 17
_ALIGNED = 16  # an integer product of 117 columns takes longer than one of 128


class CodeScan:
    """Scores documents of one shard against some queries, within ``coded.errors`` of the truth.

    Args:
        codes: int8 ``[r, d]``, or as :func:`on_card` makes them.
        offsets: int64 ``[m + 1]``; lengths that never fall make the longest runs, but any order is right.
        coded: the queries as bytes.
        queries: the same queries, for their offsets.
        card: ``codes`` are those of :func:`on_card`, wherever they are.
    """

    def __init__(
        self, codes: Tensor, offsets: Numbers, coded: CodedQueries, queries: QueryBatch, *, card: bool = False
    ) -> None:
        import torch

        self.codes, self.offsets, self.card = codes, offsets, card
        columns, width = len(coded.codes), codes.shape[1]
        padded = columns + (-columns % _ALIGNED if card or columns > _ALIGNED else 0)
        asked = np.zeros((padded, width), dtype=np.int8)
        asked[:columns, : coded.codes.shape[1]] = coded.codes
        self.asked = torch.from_numpy(asked).to(codes.device).T  # [d, T]
        factors = np.zeros((len(queries), padded), dtype=np.float32)
        for query, (start, end) in enumerate(pairwise(queries.offsets.tolist())):
            factors[query, start:end] = coded.factors[start:end]
        self.factors = torch.from_numpy(factors).to(codes.device)  # [queries, T]
        self.last = torch.from_numpy(queries.offsets[1:] - 1).to(codes.device)
        self.blend: Tensor | None = None
        if queries.document_weights is not None:
            steps = coded.steps[queries.offsets[1:] - 1] * queries.document_weights
            self.blend = torch.from_numpy(steps.astype(np.float32)).to(codes.device)
        self.rows = max(1, (_CARD_PRODUCTS if card else PRODUCTS) // padded)
        self.product: Callable[..., Tensor] = product_on(str(codes.device), width) if card else torch._int_mm

    def fill(self, first: int, last: int, scores: Scores) -> None:
        """Score the documents from ``first`` to the one before ``last`` into their columns of ``scores``.

        Args:
            first: the first document.
            last: the one after the last.
            scores: float32 ``[queries, m]``.
        """
        import torch

        out = torch.from_numpy(scores)
        lengths = np.diff(self.offsets[first : last + 1])
        runs = first + np.flatnonzero(np.diff(lengths, prepend=-1, append=-1))  # where the length changes
        for start, end in pairwise(runs.tolist()):
            row, length = int(self.offsets[start]), int(lengths[start - first])
            step = max(1, self.rows // length)
            for at in range(start, end, step):
                documents = min(step, end - at)
                out[:, at : at + documents] = self._block(row, documents, length)
                row += documents * length

    def _block(self, row: int, documents: int, length: int) -> Tensor:
        """Score some documents of one length, the first of which begins at ``row``: ``[queries, D]``."""
        import torch

        end = row + documents * length
        if length <= self.rows:
            products = self._products(row, end).view(documents, length, -1)
            best, own = products.amax(1), None if self.blend is None else products[:, -1, self.last]
            del products  # so that the next ones are made in the same memory, which is in the cache
        else:  # one long document
            parts = [self._products(*of).amax(0) for of in pairwise([*range(row, end, self.rows), end])]
            best, own = torch.stack(parts).amax(0)[None], self._products(end - 1, end)[:, self.last]
        scores = self.factors @ best.float().T
        if self.blend is not None and own is not None:
            scores += (own.float() * self.blend).T
        return scores

    def _products(self, start: int, end: int) -> Tensor:
        if self.card:  # which takes no fewer than 17 rows; those that follow are thrown away
            return self.product(self.codes[start : max(end, start + _ALIGNED + 1)], self.asked)[: end - start]
        return self.product(self.codes[start:end], self.asked)


def on_card(codes: Codes, device: str) -> Tensor:
    """Copy codes to a card, with zeros around them: its product takes multiples of 8 columns and at least 17 rows."""
    import torch

    rows, width = codes.shape
    padded = torch.zeros((rows + _ALIGNED + 1, width + -width % 8), dtype=torch.int8, device=device)
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
    CodeScan(tensor, offsets, coded, queries, card=bool(card)).fill(0, scores.shape[1], scores)
    return scores


def scan_shards(
    shards: Sequence[Shard], queries: QueryBatch, device: str | None = None
) -> Iterator[tuple[Scores, CodedQueries]]:
    """Score all documents of some shards.

    Args:
        shards: shards of documents.
        queries: the queries.
        device: ``None`` for the processor, by threads; else the card that keeps the codes, as torch names it.

    Yields:
        For each shard in order, float32 ``[queries, m]``, and the queries as bytes, of which ``errors`` says how far
        these scores can be from the true ones.
    """
    import torch

    if device is not None:
        with exactly():
            for shard in shards:
                codes = shard.kept(device, partial(on_card, shard[IndexFile.CODES], device))
                scan, scores, coded = _prepare(shard, queries, codes, card=True)
                scan.fill(0, len(shard), scores)
                yield scores, coded
        return
    cores = usable_cores()
    waiting: deque[tuple[list[Future[None]], Scores, CodedQueries]] = deque()
    with exactly(), ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for shard in shards:
            scan, scores, coded = _prepare(shard, queries, torch.from_numpy(shard[IndexFile.CODES]))
            pieces = blocks(scan.offsets, _PIECE_ROWS)
            waiting.append(([pool.submit(scan.fill, *piece, scores) for piece in pieces], scores, coded))
            if len(waiting) > 2 * cores:  # scores of a few shards, not of all, wait in memory
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())


def _prepare(
    shard: Shard, queries: QueryBatch, codes: Any, *, card: bool = False
) -> tuple[CodeScan, Scores, CodedQueries]:
    coded = encode_queries(queries, shard[IndexFile.SCALES], shard[IndexFile.CODE_BOUNDS])
    scan = CodeScan(codes, shard[IndexFile.OFFSETS], coded, queries, card=card)
    return scan, np.empty((len(queries), len(shard)), dtype=np.float32), coded


def _finished(pieces: list[Future[None]], scores: Scores, coded: CodedQueries) -> tuple[Scores, CodedQueries]:
    for piece in pieces:
        piece.result()
    return scores, coded
