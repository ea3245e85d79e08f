"""The scores of documents of one shard by integer products of bytes, block by block.

::

    [D * n, d] @ [d, T]  ->  [D * n, T]  --max over n-->  [D, T]  --factors of each query's rows-->  [queries, D]

A block is one product and a few reductions into memory that a thread uses again and again. Between calls of torch a
thread waits for Python's lock: with more and shorter calls two threads were only a third faster than one.
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
from pyterrier_mathamr.index.protocols import Codes, Numbers, Scores
from pyterrier_mathamr.index.snapshot import Shard

from .int8_coding import CodedQueries, encode_queries
from .int8_product import product_into, product_on
from .maxsim import QueryBatch, blocks

if TYPE_CHECKING:
    from torch import Tensor

PRODUCTS = 1 << 18
"""Products that are made before they are reduced: one megabyte, which stays in a cache."""

NARROW_PRODUCTS = 1 << 21
"""The same for a query or two: their calls are so short that fewer of them matter more than caches."""

ALIGNED = 16
"""An integer product of 117 columns takes longer than one of 128."""

_BEST = 1 << 20  # the best products that are kept before scores are made of them
_CARD_PRODUCTS = 1 << 25
_WIDE = 32  # columns from which torch finds the greatest over rows at full speed
_PAIRED = 4  # rows from which it pays to lay two side by side where there are fewer columns


class Memory(threading.local):
    """The memory of each thread that scans, used again for every block; what was taken before is overwritten.

    Args:
        device: where it is, as torch names it.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._kept: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """An int32 tensor of any numbers, one at a time of each name."""
        import torch

        numbers = math.prod(shape)
        if name not in self._kept or len(self._kept[name]) < numbers:
            self._kept[name] = torch.empty(numbers, dtype=torch.int32, device=self.device)
        return self._kept[name][:numbers].view(shape)


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
        padded = columns + -columns % (ALIGNED if card or columns <= ALIGNED else _WIDE)
        asked = np.zeros((padded, width), dtype=np.int8)
        asked[:columns, : coded.codes.shape[1]] = coded.codes
        self.asked = torch.from_numpy(asked).to(codes.device).T  # [d, T]
        self.factors = torch.from_numpy(_factors(coded, queries, padded)).to(codes.device)
        self.blend = self.last = None
        if queries.document_weights is not None:
            last = queries.offsets[1:] - 1
            blend = (coded.steps[last] * queries.document_weights).astype(np.float32)
            self.blend = torch.from_numpy(blend[:, None]).to(codes.device)  # [queries, 1]
            self.last = torch.from_numpy(last).to(codes.device)
        products = _CARD_PRODUCTS if card else PRODUCTS if padded > _WIDE else NARROW_PRODUCTS
        self.rows = max(1, products // padded)
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
                out[:, at : at + documents] = self._scores(row, documents, length, block)
                row += documents * length

    def _scores(self, row: int, documents: int, length: int, block: int) -> Tensor:
        """Score some documents of one length, the first of which begins at ``row``: float32 ``[queries, D]``."""
        import torch

        columns = len(self.asked.T)
        best = self.memory.take("best", documents, columns)
        own = None if self.last is None else self.memory.take("own", documents, len(self.last))
        for first in range(0, documents, block):
            last = min(first + block, documents)
            start, end = row + first * length, row + last * length
            if length > self.rows:
                self._long_document(start, end, best[first], None if own is None else own[first])
                continue
            products = self._products(start, end).view(last - first, length, columns)
            greatest(products, best[first:last], self.memory)
            if own is not None and self.last is not None:
                torch.index_select(products[:, -1], 1, self.last, out=own[first:last])
        scores = self.factors @ best.float().T
        if self.blend is not None and own is not None:
            scores += own.float().T * self.blend
        return scores

    def _long_document(self, start: int, end: int, best: Tensor, own: Tensor | None) -> None:
        """The same for one document with more rows than are multiplied at once: into ``[T]`` and ``[queries]``."""
        import torch

        parts = [self._products(*of).amax(0) for of in pairwise([*range(start, end, self.rows), end])]
        torch.amax(torch.stack(parts), 0, out=best)
        if own is not None:
            own[:] = self._products(end - 1, end)[0, self.last]

    def _products(self, start: int, end: int) -> Tensor:
        if self.card:  # which takes no fewer than 17 rows; those that follow are thrown away
            return self.product(self.codes[start : max(end, start + ALIGNED + 1)], self.asked)[: end - start]
        out = self.memory.take("products", end - start, len(self.asked.T))
        return self.product(self.codes[start:end], self.asked, out)


def greatest(products: Tensor, out: Tensor, memory: Memory) -> None:
    """The greatest product of each document with each column.

    Where there are few columns, those of two rows lie side by side as one.

    Args:
        products: int32 ``[D, n, T]`` without gaps.
        out: int32 ``[D, T]``, which becomes the greatest over n.
        memory: where the greatest of pairs are made.
    """
    import torch

    documents, length, columns = products.shape
    if columns >= _WIDE or length < _PAIRED:
        torch.amax(products, 1, out=out)
        return
    flat = products.view(documents, length * columns)
    pairs = flat[:, : length // 2 * 2 * columns].view(documents, -1, 2 * columns)
    paired = torch.amax(pairs, 1, out=memory.take("pairs", documents, 2 * columns))
    torch.maximum(paired[:, :columns], paired[:, columns:], out=out)
    if length % 2:
        torch.maximum(out, products[:, -1], out=out)


def _factors(coded: CodedQueries, queries: QueryBatch, columns: int) -> npt.NDArray[np.float32]:
    """What each best product counts for each query: float32 ``[queries, columns]``."""
    factors = np.zeros((len(queries), columns), dtype=np.float32)
    for query, (start, end) in enumerate(pairwise(queries.offsets.tolist())):
        factors[query, start:end] = coded.factors[start:end]
    return factors


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
    """Score all documents of some shards; the caller holds :func:`.int8_product.exactly` until it has taken them all.

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
