"""The scan over bytes, by an integer product; it only chooses, see :mod:`.codes` for how far it can be wrong.

On the processor the bytes stay memory-mapped and threads share the shards, a piece of one after the other. On a card
(``device="cuda"``) they are copied there once and stay; what the scan leaves is scored from the mapped rows as always,
so that the answers are the same::

    [D * n, d] @ [d, T]  ->  [D * n, T]  --max over n-->  [D, T]  --factors of each query's rows-->  [queries, D]

Memory is used again and again by a thread: to be given fresh memory takes as long as to make the products in it.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.processes import usable_cores

from .arrays import Codes, Numbers, Scores
from .codes import CodedQueries, encode_queries
from .files import IndexFile
from .integers import exactly, product_into, product_on
from .scan import QueryBatch, blocks
from .shard import Shard

if TYPE_CHECKING:
    from torch import Tensor

QUERY_ROWS = 160
"""Query rows at once: with more the products leave the processor's caches."""

PRODUCTS = 1 << 18
"""Products that are made before they are reduced: one megabyte, which stays in a cache."""

_BEST = 1 << 16  # the best products that are kept before scores are made of them
_CARD_PRODUCTS = 1 << 25
_PIECE_ROWS = 1 << 17
_ALIGNED = 16  # an integer product of 117 columns takes longer than one of 128
_WIDE = 32  # columns from which torch finds the greatest over rows at full speed


class Memory(threading.local):
    """The memory of each thread that scans, used again for every block; what was taken before is overwritten.

    Args:
        device: where it is, as torch names it.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._kept: dict[Any, Tensor] = {}

    def take(self, dtype: Any, *shape: int) -> Tensor:
        """A tensor of any numbers, one at a time of each ``dtype``."""
        import torch

        numbers = math.prod(shape)
        if dtype not in self._kept or len(self._kept[dtype]) < numbers:
            self._kept[dtype] = torch.empty(numbers, dtype=dtype, device=self.device)
        return self._kept[dtype][:numbers].view(shape)


class CodeScan:
    """Scores documents of one shard against some queries, within ``coded.errors`` of the truth.

    Args:
        codes: int8 ``[r, d]``, or as :func:`on_card` makes them.
        offsets: int64 ``[m + 1]``; lengths that never fall make the longest runs, but any order is right.
        coded: the queries as bytes.
        queries: the same queries, for their offsets.
        memory: where products are made.
        card: ``codes`` are those of :func:`on_card`, wherever they are.
    """

    def __init__(
        self,
        codes: Tensor,
        offsets: Numbers,
        coded: CodedQueries,
        queries: QueryBatch,
        memory: Memory,
        *,
        card: bool = False,
    ) -> None:
        import torch

        self.codes, self.offsets, self.memory, self.card = codes, offsets, memory, card
        columns, width = len(coded.codes), codes.shape[1]
        padded = columns + -columns % (_ALIGNED if card or columns <= _ALIGNED else _WIDE)
        asked = np.zeros((padded, width), dtype=np.int8)
        asked[:columns, : coded.codes.shape[1]] = coded.codes
        self.asked = torch.from_numpy(asked).to(codes.device).T  # [d, T]
        self.factors = torch.from_numpy(_factors(coded, queries, padded)).to(codes.device)
        blended = queries.offsets[1:] - 1 if queries.document_weights is not None else queries.offsets[:0]
        self.last = torch.from_numpy(blended).to(codes.device)
        self.rows = max(1, (_CARD_PRODUCTS if card else PRODUCTS) // padded)
        self.product: Callable[..., Tensor] = product_on(str(codes.device), width) if card else product_into

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
            block = max(1, self.rows // length)
            step = max(block, _BEST // len(self.asked.T) // block * block)
            for at in range(start, end, step):
                documents = min(step, end - at)
                out[:, at : at + documents] = self.factors @ self._best(row, documents, length, block).T
                row += documents * length

    def _best(self, row: int, documents: int, length: int, block: int) -> Tensor:
        """The greatest products of some documents of one length, the first of which begins at ``row``.

        Returns:
            float32 ``[D, T]``, and further columns with the products of the documents' last rows where they count.
        """
        import torch

        columns = len(self.asked.T)
        best = self.memory.take(torch.float32, documents, columns + len(self.last))
        for first in range(0, documents, block):
            last = min(first + block, documents)
            start, end = row + first * length, row + last * length
            if length <= self.rows:
                products = self._products(start, end).view(last - first, length, columns)
                best[first:last, :columns] = greatest(products)
                own = products[:, -1]
            else:  # one long document
                parts = [self._products(*of).amax(0) for of in pairwise([*range(start, end, self.rows), end])]
                best[first, :columns] = torch.stack(parts).amax(0)
                own = self._products(end - 1, end)
            if len(self.last):
                best[first:last, columns:] = own[:, self.last]
        return best

    def _products(self, start: int, end: int) -> Tensor:
        import torch

        if self.card:  # which takes no fewer than 17 rows; those that follow are thrown away
            return self.product(self.codes[start : max(end, start + _ALIGNED + 1)], self.asked)[: end - start]
        out = self.memory.take(torch.int32, end - start, len(self.asked.T))
        return self.product(self.codes[start:end], self.asked, out)


def greatest(products: Tensor) -> Tensor:
    """The greatest product of each document with each column: ``[D, n, T]``, without gaps, to ``[D, T]``.

    Where there are few columns, those of two rows lie side by side as one.
    """
    import torch

    documents, length, columns = products.shape
    if columns >= _WIDE or length == 1:
        return products.amax(1)
    flat = products.view(documents, length * columns)
    pairs = flat[:, : length // 2 * 2 * columns].view(documents, -1, 2 * columns)
    paired = pairs.amax(1)
    best = torch.maximum(paired[:, :columns], paired[:, columns:])
    return torch.maximum(best, products[:, -1]) if length % 2 else best


def _factors(coded: CodedQueries, queries: QueryBatch, columns: int) -> npt.NDArray[np.float32]:
    """What each best product counts for each query; one more column for each query that counts the last rows.

    Returns:
        float32 ``[queries, columns]``, or ``[queries, columns + queries]``.
    """
    factors = np.zeros((len(queries), columns), dtype=np.float32)
    for query, (start, end) in enumerate(pairwise(queries.offsets.tolist())):
        factors[query, start:end] = coded.factors[start:end]
    if queries.document_weights is None:
        return factors
    own = coded.steps[queries.offsets[1:] - 1] * queries.document_weights
    return np.hstack([factors, np.diag(own.astype(np.float32))])


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
    scan = CodeScan(tensor, offsets, coded, queries, Memory(card or "cpu"), card=bool(card))
    scan.fill(0, scores.shape[1], scores)
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

    memory = Memory(device or "cpu")
    if device is not None:
        with exactly():
            for shard in shards:
                codes = shard.kept(device, partial(on_card, shard[IndexFile.CODES], device))
                scan, scores, coded = _prepare(shard, queries, codes, memory, card=True)
                scan.fill(0, len(shard), scores)
                yield scores, coded
        return
    cores = usable_cores()
    waiting: deque[tuple[list[Future[None]], Scores, CodedQueries]] = deque()
    with exactly(), ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for shard in shards:
            scan, scores, coded = _prepare(shard, queries, torch.from_numpy(shard[IndexFile.CODES]), memory)
            pieces = blocks(scan.offsets, _PIECE_ROWS)
            waiting.append(([pool.submit(scan.fill, *piece, scores) for piece in pieces], scores, coded))
            if len(waiting) > 2 * cores:  # scores of a few shards, not of all, wait in memory
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())


def _prepare(
    shard: Shard, queries: QueryBatch, codes: Any, memory: Memory, *, card: bool = False
) -> tuple[CodeScan, Scores, CodedQueries]:
    coded = encode_queries(queries, shard[IndexFile.SCALES], shard[IndexFile.CODE_BOUNDS])
    scan = CodeScan(codes, shard[IndexFile.OFFSETS], coded, queries, memory, card=card)
    return scan, np.empty((len(queries), len(shard)), dtype=np.float32), coded


def _finished(pieces: list[Future[None]], scores: Scores, coded: CodedQueries) -> tuple[Scores, CodedQueries]:
    for piece in pieces:
        piece.result()
    return scores, coded
