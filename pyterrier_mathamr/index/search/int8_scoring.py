"""Scores of the documents of a shard from int8 codes by torch: integer products, block by block.

::

    [D * n, d] @ [d, T]  ->  [D * n, T]  --max over n-->  [D, T]  --factors of each query's rows-->  [queries, D]

A block is one product and a few reductions into memory that a thread reuses. Between calls of torch a thread waits for
Python's lock: with more and shorter calls two threads were only a third faster than one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.index.protocols import Codes, Numbers, Scores

from .int8_coding import CodedQueries
from .int8_product import product_into, product_on, two_rows_pay
from .maxsim import run_bounds
from .queries import QueryBatch

if TYPE_CHECKING:
    from torch import Tensor

PRODUCTS = 1 << 18
"""Products computed before they are reduced: one megabyte, which stays in a cache."""

FEW_PRODUCTS = 1 << 19
"""The same for one query or two, whose products are so fast that each call of torch takes longer than a cache saves."""

BEST = 1 << 17
"""The greatest products of documents that become scores at once, from the same cache."""

ALIGNED = 16
"""An integer product of 117 columns takes longer than one of 128."""

_GPU_PRODUCTS = 1 << 25
_WIDE = 32  # columns from which torch finds the greatest over rows at full speed
_PAIRED = 4  # rows from which it pays to lay two side by side where there are fewer columns


def on_device(codes: Codes, device: str) -> Tensor:
    """Copy codes to a device, padded with zeros: its product takes multiples of 8 columns and at least 17 rows."""
    import torch

    rows, width = codes.shape
    padded = torch.zeros((rows + ALIGNED + 1, width + -width % 8), dtype=torch.int8, device=device)
    padded[:rows, :width] = torch.from_numpy(codes).to(device)
    return padded


class Memory(threading.local):
    """The memory of each scanning thread, reused for every block; earlier contents are overwritten."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._kept: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """Return an uninitialised int32 tensor, one at a time of each name."""
        import torch

        numbers = math.prod(shape)
        if name not in self._kept or len(self._kept[name]) < numbers:
            self._kept[name] = torch.empty(numbers, dtype=torch.int32, device=self.device)
        return self._kept[name][:numbers].view(shape)


class CodeScan:
    """Scores documents of one shard against some queries, within ``coded.errors`` of the true scores."""

    def __init__(
        self,
        codes: Tensor,
        offsets: Numbers,
        coded: CodedQueries,
        queries: QueryBatch,
        memory: Memory,
        *,
        runs: Numbers | None = None,
        padded: bool = False,
    ) -> None:
        import torch

        self.codes, self.offsets, self.memory, self.padded = codes, offsets, memory, padded
        self.runs = run_bounds(offsets) if runs is None else runs
        columns, self.width = len(coded.codes), codes.shape[1]
        self.columns = columns + -columns % (ALIGNED if padded or columns <= ALIGNED else _WIDE)
        asked = np.zeros((self.columns, self.width), dtype=np.int8)
        asked[:columns, : coded.codes.shape[1]] = coded.codes
        self.asked = torch.from_numpy(asked).to(codes.device).T  # [d, T]
        self.asked_twice = None
        if not padded and self.columns <= ALIGNED and two_rows_pay(self.width):
            self.asked_twice = torch.from_numpy(np.kron(np.eye(2, dtype=np.int8), asked)).T  # [2 d, 2 T]
        self.factors = torch.from_numpy(_factors(coded, queries, self.columns)).to(codes.device)
        self.blend = self.last = None
        if queries.document_weights is not None:
            last = queries.offsets[1:] - 1
            blend = (coded.steps[last] * queries.document_weights).astype(np.float32)
            self.blend = torch.from_numpy(blend[:, None]).to(codes.device)  # [queries, 1]
            self.last = torch.from_numpy(last).to(codes.device)
        products = _GPU_PRODUCTS if padded else FEW_PRODUCTS if self.columns <= _WIDE else PRODUCTS
        self.rows = max(1, products // self.columns)
        self.best = BEST // self.columns
        self.product: Callable[..., Tensor] = product_on(str(codes.device), self.width) if padded else product_into

    def fill(self, first: int, last: int, scores: Scores) -> None:
        """Score the documents from ``first`` to the one before ``last`` into their columns of ``scores``."""
        import torch

        out = torch.from_numpy(scores)
        within = slice(*np.searchsorted(self.runs, (first + 1, last)))
        for start, end in pairwise([first, *self.runs[within].tolist(), last]):
            length = int(self.offsets[start + 1] - self.offsets[start])
            block = max(1, self.rows // length)
            step = block if self.padded else max(block, self.best // block * block)
            for at in range(start, end, step):
                documents = min(step, end - at)
                row = int(self.offsets[at])
                out[:, at : at + documents] = self._scores(row, documents, length, block)

    def _scores(self, row: int, documents: int, length: int, block: int) -> Tensor:
        """Score some documents of one length, the first of which begins at ``row``: float32 ``[queries, D]``."""
        import torch

        best = self.memory.take("best", documents, self.columns)
        own = None if self.last is None else self.memory.take("own", documents, len(self.last))
        if length > self.rows:
            for i in range(documents):
                start = row + i * length
                self._long_document(start, start + length, best[i], None if own is None else own[i])
        elif self.padded:
            products = self._products(row, row + documents * length).view(documents, length, self.columns)
            self._reduce(products, best, own)
        else:
            self._in_blocks(row, length, block, best, own)
        numbers = self.memory.take("numbers", documents, self.columns).view(torch.float32).copy_(best)
        scores = self.factors @ numbers.T
        if self.blend is not None and own is not None:
            scores += own.float().T * self.blend
        return scores

    def _in_blocks(self, row: int, length: int, block: int, best: Tensor, own: Tensor | None) -> None:
        """Reduce documents of one length, a block at a time with few calls for each, which are as long as a call."""
        import torch

        codes, asked, rows = self.codes[row : row + len(best) * length], self.asked, block * length
        out = self.memory.take("products", min(rows, len(codes)), self.columns)
        products = out.view(-1, length, self.columns)
        if self.asked_twice is not None and not rows % 2 and not len(codes) % 2:  # two rows side by side as one
            codes, asked, rows = codes.view(-1, 2 * self.width), self.asked_twice, rows // 2
            out = out.view(-1, 2 * self.columns)
        parts = zip(torch.split(codes, rows), torch.split(best, block), strict=True)
        for (some, into), at in zip(parts, range(0, len(best), block), strict=True):
            if len(into) < block:
                out, products = out[: len(some)], products[: len(into)]
            self.product(some, asked, out)
            self._reduce(products, into, None if own is None else own[at : at + block])

    def _reduce(self, products: Tensor, best: Tensor, own: Tensor | None) -> None:
        """Reduce the products of some documents, ``[D, n, T]``, into ``[D, T]`` and ``[D, queries]``."""
        import torch

        greatest(products, best, self.memory)
        if own is not None and self.last is not None:
            torch.index_select(products[:, -1], 1, self.last, out=own)

    def _long_document(self, start: int, end: int, best: Tensor, own: Tensor | None) -> None:
        """Reduce one document of more rows than are multiplied at once, into ``[T]`` and ``[queries]``."""
        import torch

        parts = [self._products(*of).amax(0) for of in pairwise([*range(start, end, self.rows), end])]
        torch.amax(torch.stack(parts), 0, out=best)
        if own is not None:
            own[:] = self._products(end - 1, end)[0, self.last]

    def _products(self, start: int, end: int) -> Tensor:
        """Multiply some rows of codes with all columns: ``[end - start, T]``."""
        if self.padded:  # at least 17 rows; those after the last are dropped
            return self.product(self.codes[start : max(end, start + ALIGNED + 1)], self.asked)[: end - start]
        return self.product(self.codes[start:end], self.asked, self.memory.take("products", end - start, self.columns))


def greatest(products: Tensor, out: Tensor, memory: Memory) -> None:
    """Find the greatest product of each document with each column."""
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
    """Return the weight of each best product for each query: float32 ``[queries, columns]``."""
    factors = np.zeros((len(queries), columns), dtype=np.float32)
    for query, (start, end) in enumerate(pairwise(queries.offsets.tolist())):
        factors[query, start:end] = coded.factors[start:end]
    return factors
