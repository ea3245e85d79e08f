"""The scan of int8 codes by torch: a quarter of the memory to read, and an error whose bound is known and stored.

A row ``x`` becomes integers ``c = round(x / s)`` with a scale ``s`` for each dimension, fitted to the shard so that its
greatest number becomes 127. A query row ``q`` becomes ``u = round((q s) / t)`` in the same way. Then::

    q · x  =  t (u · c)  +  (q s) · e  +  ((q s) - t u) · c          with e = x / s - c, and so
    |q · x - t (u · c)|  <=  ‖q s‖ max‖e‖  +  ‖(q s) - t u‖ max‖c‖

Rows that are stored as int8 have a scale ``r`` each, ``x = r c``, and only the query is rounded: ``s = 1``, and::

    |q · x - r t (u · c)|  <=  ‖q - t u‖ max‖x‖

Rows that are stored as int4 are the same, but each ``c`` is a multiple of 16. They are unpacked to int8, a block at a
time.

Codes are multiplied block by block, by a private function of torch that is tested before it is used::

    [D * n, d] @ [d, T]  ->  [D * n, T]  --max over n-->  [D, T]  --factors of each query's rows-->  [queries, D]

A block is one product and a few reductions into memory that a thread reuses. Between calls of torch a thread waits for
Python's lock: with more and shorter calls two threads were only a third faster than one.
"""

from __future__ import annotations

import math
import threading
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.private import int8_product
from pyterrier_mathamr._common.running.resources import one_torch_thread
from pyterrier_mathamr._common.running.settings import shared
from pyterrier_mathamr.index.backend import (
    STEP,
    Codes,
    Numbers,
    PackedCodes,
    QueryBatch,
    Rows,
    ScaledRows,
    Scores,
    Weights,
    pack_codes,
    unpack_codes,
)

from .maxsim import BLOCK_ROWS, run_bounds

if TYPE_CHECKING:
    from torch import Tensor


_GREATEST = 127
_PIECE = 1 << 16
_SLACK = 1 + 1e-5  # covers that the norms themselves are computed in floating point


class Coding(NamedTuple):
    """The rows of a shard as codes."""

    codes: Codes | PackedCodes  # [r, d], or [r, d / 2]
    scales: npt.NDArray[np.float32]  # [d]
    bounds: Weights  # the greatest lengths of e and of c; with row scales, 0 and that of x
    row_scales: npt.NDArray[np.float32] | None = None  # [r]

    @property
    def packed(self) -> bool:
        return self.codes.dtype == np.uint8


def encode_rows(rows: Rows) -> tuple[Codes, npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    greatest = np.abs(rows).max(axis=0)
    scales = np.where(greatest > _GREATEST * 1e-38, greatest / _GREATEST, 1).astype(np.float32)
    codes = np.empty(rows.shape, dtype=np.int8)
    bounds = np.zeros(2)
    for start in range(0, len(rows), _PIECE):
        scaled = rows[start : start + _PIECE] / scales
        rounded = np.clip(np.rint(scaled), -_GREATEST, _GREATEST)
        codes[start : start + _PIECE] = rounded
        scaled -= rounded
        squares = [float(np.einsum("ij,ij->i", rest, rest).max()) for rest in (scaled, rounded)]
        bounds = np.maximum(bounds, np.sqrt(squares) + 1e-4)  # x / s is itself rounded, by less than 127 · 2⁻²⁴ each
    return codes, scales, bounds * _SLACK


_LOW_BITS = 7


def scaled_rows(rows: Rows) -> ScaledRows:
    """Quantize each row to int8 with a separate scale: its greatest number becomes 127 or -127."""
    scales = _rounded(np.abs(rows).max(axis=1) / np.float32(_GREATEST))
    codes = np.empty(rows.shape, dtype=np.int8)
    for start in range(0, len(rows), _PIECE):
        some = slice(start, start + _PIECE)
        codes[some] = np.clip(np.rint(rows[some] / scales[some, None]), -_GREATEST, _GREATEST)
    return ScaledRows(codes, scales)


_GREATEST_PACKED = 7
_CLIPPED = 0.8
"""The share of a row's greatest number that becomes 7 where that leaves a smaller error, as for most rows."""


def packed_rows(rows: Rows) -> ScaledRows:
    """Quantize each row to four bits with a separate scale, the better of two, fitted to the codes by least squares.

    Rows that were quantized before keep their codes and scales, since the first scale has no error for them.
    """
    codes, scales = np.empty((len(rows), rows.shape[1] // 2), dtype=np.uint8), np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        some = slice(start, start + BLOCK_ROWS)
        steps = np.abs(rows[some]).max(axis=1) / np.float32(_GREATEST_PACKED)
        scaled = rows[some] / steps[:, None]
        whole, clipped = (
            np.clip(np.rint(scaled / step), -_GREATEST_PACKED, _GREATEST_PACKED) for step in (1, _CLIPPED)
        )
        fits = [(np.einsum("ij,ij->i", scaled, fit), np.einsum("ij,ij->i", fit, fit)) for fit in (whole, clipped)]
        better = fits[1][0] ** 2 / fits[1][1] > fits[0][0] ** 2 / fits[0][1]
        chosen = np.where(better[:, None], clipped, whole)
        along, squares = np.where(better, fits[1], fits[0])
        codes[some] = pack_codes((STEP * chosen).astype(np.int8))
        scales[some] = steps * (along / squares) / STEP
    return ScaledRows(codes, _rounded(scales))


def _rounded(scales: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Round scales to 17 significant bits, so that a product with a code is exact."""
    bits = scales.view(np.uint32)
    bits += np.uint32(1 << _LOW_BITS - 1)
    bits &= np.uint32(2**32 - (1 << _LOW_BITS))
    return scales


class CodedQueries(NamedTuple):
    """Query rows as codes for one shard."""

    codes: Codes  # u, [q, d]
    factors: npt.NDArray[np.float32]  # t times the weight, [q]
    steps: npt.NDArray[np.float32]  # t, [q]
    errors: Weights  # of each query's score, [queries]


def encode_queries(queries: QueryBatch, scales: npt.NDArray[np.float32], bounds: Weights) -> CodedQueries:
    """Quantize query rows for a shard of the given scales."""
    scaled = queries.rows.astype(np.float64) * scales
    steps = np.maximum(np.abs(scaled).max(axis=1), 1e-300) / _GREATEST
    codes = np.rint(scaled / steps[:, None])
    rest = scaled - steps[:, None] * codes
    weights, totals = np.ones(len(scaled)) if queries.weights is None else queries.weights, queries.row_weights()
    lengths = np.linalg.norm(scaled, axis=1), np.linalg.norm(rest, axis=1)
    errors = (lengths[0] * bounds[0] + lengths[1] * bounds[1]) * totals * _SLACK
    # factors, row scales and the sum are in float32, and each score has at most the length of q s times that of c
    rounding = (np.diff(queries.offsets) + 5) * 2.0**-23 * queries.sums(lengths[0] * totals) * bounds[1]
    factors = (steps * weights).astype(np.float32)
    return CodedQueries(codes.astype(np.int8), factors, steps.astype(np.float32), queries.sums(errors) + rounding)


_COLUMNS = 128
_HALF_TILE = 32  # numbers of a row up to which some processors multiply two rows as fast as one
_EXACT = 1 << 24  # the integers up to here are exact in float32


@lru_cache(maxsize=16)
def usable(dimensions: int) -> bool:
    """Test, once, whether torch has an integer product that is correct and faster than numpy's in float32."""
    try:
        import torch

        def multiply(left: Tensor, right: Tensor) -> Tensor:
            return int8_product(left, right, out=torch.empty((len(left), right.shape[1]), dtype=torch.int32))

        sizes = (1, 7, BLOCK_ROWS), (16, 32, _COLUMNS)
        if not all(_right(multiply, width, "cpu", *sizes) for width in (dimensions, 2 * dimensions)):
            return False
        codes, query = _example(dimensions)
        left, right = torch.from_numpy(codes), torch.from_numpy(query).T[:, :16]
        numbers, asked = codes.astype(np.float32), query[:16].T.astype(np.float32)
        with exactly():
            return _seconds(lambda: int8_product(left, right)) < _seconds(lambda: numbers @ asked)
    except (ImportError, AttributeError, RuntimeError, NotImplementedError, TypeError):
        return False


@lru_cache(maxsize=16)
def two_rows_pay(dimensions: int) -> bool:
    """Test, once, whether two rows side by side take less time than two rows, as on a processor with wide tiles."""
    import torch

    if dimensions > _HALF_TILE:
        return False
    codes, query = _example(dimensions)
    left, right = torch.from_numpy(codes), torch.from_numpy(query[:16]).T
    pairs, twice = left.view(-1, 2 * dimensions), torch.from_numpy(np.kron(np.eye(2, dtype=np.int8), query[:16])).T
    out = torch.empty((len(codes), 16), dtype=torch.int32)
    with exactly():
        single = _seconds(lambda: int8_product(left, right, out=out))
        return _seconds(lambda: int8_product(pairs, twice, out=out.view(-1, 32))) < single


@lru_cache(maxsize=16)
def product_on(device: str, dimensions: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the product of codes on a GPU."""
    import torch

    try:
        if _right(int8_product, dimensions, device, (17, BLOCK_ROWS), (16, _COLUMNS)):
            return int8_product
    except (AttributeError, RuntimeError, NotImplementedError):
        pass
    exact = torch.float32 if dimensions * 127 * 127 < _EXACT else torch.float64
    return lambda left, right: (left.to(exact) @ right.to(exact)).to(torch.int32)


def _example(dimensions: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    sizes = (BLOCK_ROWS, dimensions), (_COLUMNS, dimensions)
    codes, query = (rng.integers(-127, 128, size).astype(np.int8) for size in sizes)
    return codes, query


def _right(
    multiply: Callable[[Tensor, Tensor], Tensor],
    dimensions: int,
    device: str,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
) -> bool:
    import torch

    codes, query = _example(dimensions)
    left, right = torch.from_numpy(codes).to(device), torch.from_numpy(query).to(device).T
    true = codes.astype(np.float64) @ query.T.astype(np.float64)
    return all(
        np.array_equal(multiply(left[:m], right[:, :q]).cpu().numpy(), true[:m, :q]) for m, q in product(rows, columns)
    )


def _seconds(run: Callable[[], Any]) -> float:
    run()
    return min(timeit.repeat(run, number=1, repeat=30))


@contextmanager
def exactly() -> Iterator[None]:
    """Let torch compute on one thread for each of ours (more would wait for each other), in full float32 precision."""
    with _full_precision(), one_torch_thread():
        yield


@shared
@contextmanager
def _full_precision() -> Iterator[None]:
    import torch

    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)


PRODUCTS = 1 << 18  # products computed before they are reduced: one megabyte, which stays in a cache

FEW_PRODUCTS = 1 << 19
"""The same for one query or two, whose products are so fast that a call of torch costs more than a cache saves."""

BEST = 1 << 17  # the greatest products of documents that become scores at once, from the same cache
_ALIGNED = 16  # an integer product of 117 columns is slower than one of 128
_GPU_PRODUCTS = 1 << 25
_WIDE = 32  # columns from which torch finds maxima over rows at full speed
_PAIRED = 4  # rows from which it pays to lay two side by side if there are fewer columns


class Memory(threading.local):
    """The memory of each scanning thread, reused for every block; earlier contents are overwritten."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._kept: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """Return an uninitialized int32 tensor, one at a time of each name."""
        import torch

        numbers = math.prod(shape)
        if name not in self._kept or len(self._kept[name]) < numbers:
            self._kept[name] = torch.empty(numbers, dtype=torch.int32, device=self.device)
        return self._kept[name][:numbers].view(shape)


class CodeScan:
    """Scores documents of one shard against some queries, within ``coded.errors`` of the true scores.

    On a GPU, ``codes`` are those of :func:`on_device`.
    """

    def __init__(
        self,
        codes: Tensor,
        row_scales: Tensor | None,
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
        self.row_scales = None if row_scales is None else row_scales.unsqueeze(1)  # [r, 1]
        self.kept = torch.int32 if row_scales is None else torch.float32  # the type of the maxima
        self.runs = run_bounds(offsets) if runs is None else runs
        columns, width = len(coded.codes), codes.shape[1] * (1 if codes.dtype == torch.int8 else 2)
        self.columns = columns + -columns % (_ALIGNED if padded or columns <= _ALIGNED else _WIDE)
        asked = np.zeros((self.columns, width), dtype=np.int8)
        asked[:columns, : coded.codes.shape[1]] = coded.codes
        self.asked = torch.from_numpy(asked).to(codes.device).T  # [d, T]
        self.asked_twice = None
        whole = codes.dtype == torch.int8  # of packed rows side by side, the halves would not be side by side
        if whole and not padded and self.columns <= _ALIGNED and two_rows_pay(width):
            self.asked_twice = torch.from_numpy(np.kron(np.eye(2, dtype=np.int8), asked)).T  # [2 d, 2 T]
        factors = np.zeros((len(queries), self.columns), dtype=np.float32)
        for query, (start, end) in enumerate(pairwise(queries.offsets.tolist())):
            factors[query, start:end] = coded.factors[start:end]
        self.factors = torch.from_numpy(factors).to(codes.device)
        self.blend = self.last = None
        if queries.document_weights is not None:
            last = queries.offsets[1:] - 1
            blend = (coded.steps[last] * queries.document_weights).astype(np.float32)
            self.blend = torch.from_numpy(blend[:, None]).to(codes.device)  # [queries, 1]
            self.last = torch.from_numpy(last).to(codes.device)
        products = _GPU_PRODUCTS if padded else FEW_PRODUCTS if self.columns <= _WIDE else PRODUCTS
        self.rows = max(1, products // self.columns)
        self.best = BEST // self.columns
        self.product = product_on(str(codes.device), width) if padded else None

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
        """Score some documents of one length, beginning at ``row``: float32 ``[queries, D]``."""
        import torch

        best = self._take("best", documents, self.columns)
        last_products = None if self.last is None else self._take("own", documents, len(self.last))
        if length > self.rows:  # than are multiplied at once
            for i, start in enumerate(range(row, row + documents * length, length)):
                cuts = pairwise([*range(start, start + length, self.rows), start + length])
                torch.amax(torch.stack([self._products(*cut).amax(0) for cut in cuts]), 0, out=best[i])
                if last_products is not None:
                    last_products[i] = self._products(start + length - 1, start + length)[0, self.last]
        elif self.padded:
            products = self._products(row, row + documents * length).view(documents, length, self.columns)
            self._reduce(products, best, last_products)
        else:
            self._in_blocks(row, length, block, best, last_products)
        numbers = self.memory.take("numbers", documents, self.columns).view(torch.float32).copy_(best)
        scores = self.factors @ numbers.T
        if self.blend is not None and last_products is not None:
            scores += last_products.float().T * self.blend
        return scores

    def _in_blocks(self, row: int, length: int, block: int, best: Tensor, last_products: Tensor | None) -> None:
        """Reduce documents of one length, a block at a time with few calls for each, which are as long as a call."""
        import torch

        codes, asked, rows = self.codes[row : row + len(best) * length], self.asked, block * length
        out = self.memory.take("products", min(rows, len(codes)), self.columns)
        products = out.view(-1, length, self.columns)
        if self.asked_twice is not None and not rows % 2 and not len(codes) % 2:  # two rows side by side as one
            codes, asked, rows = codes.view(-1, 2 * codes.shape[1]), self.asked_twice, rows // 2
            out = out.view(-1, 2 * self.columns)
        parts = zip(torch.split(codes, rows), torch.split(best, block), strict=True)
        for (some, into), at in zip(parts, range(0, len(best), block), strict=True):
            if len(into) < block:
                out, products = out[: len(some)], products[: len(into)]
            int8_product(_unpacked(some), asked, out=out)
            scaled = self._scaled(products.view(-1, self.columns), row + at * length).view_as(products)
            self._reduce(scaled, into, None if last_products is None else last_products[at : at + block])

    def _reduce(self, products: Tensor, best: Tensor, last_products: Tensor | None) -> None:
        """Reduce the products of some documents, ``[D, n, T]``, into ``[D, T]`` and ``[D, queries]``."""
        import torch

        greatest(products, best, self.memory)
        if last_products is not None and self.last is not None:
            torch.index_select(products[:, -1], 1, self.last, out=last_products)

    def _products(self, start: int, end: int) -> Tensor:
        """Multiply some rows of codes with all columns: ``[end - start, T]``."""
        if self.product is not None:  # at least 17 rows; those after the last are dropped
            products = self.product(self.codes[start : max(end, start + _ALIGNED + 1)], self.asked)[: end - start]
        else:
            products = self.memory.take("products", end - start, self.columns)
            int8_product(_unpacked(self.codes[start:end]), self.asked, out=products)
        return self._scaled(products, start)

    def _scaled(self, products: Tensor, start: int) -> Tensor:
        """Multiply products, ``[r, T]``, by the scales of their rows, if they have any."""
        if self.row_scales is None:
            return products
        scaled = self._take("scaled", *products.shape).copy_(products)
        return scaled.mul_(self.row_scales[start : start + len(products)])

    def _take(self, name: str, *shape: int) -> Tensor:
        return self.memory.take(name, *shape).view(self.kept)


def on_device(codes: Codes | PackedCodes, device: str) -> Tensor:
    """Copy codes to a device as int8, padded with zeros: its product needs multiples of 8 columns, at least 17 rows."""
    import torch

    whole = unpack_codes(codes)
    rows, width = whole.shape
    padded = torch.zeros((rows + _ALIGNED + 1, width + -width % 8), dtype=torch.int8, device=device)
    padded[:rows, :width] = torch.from_numpy(whole).to(device)
    return padded


def _unpacked(codes: Tensor) -> Tensor:
    import torch

    return codes if codes.dtype == torch.int8 else torch.from_numpy(unpack_codes(codes.numpy()))


def greatest(products: Tensor, out: Tensor, memory: Memory) -> None:
    """Find the greatest product of each document with each column: ``[D, n, T]`` to ``[D, T]``."""
    import torch

    documents, length, columns = products.shape
    if columns >= _WIDE or length < _PAIRED:
        torch.amax(products, 1, out=out)
        return
    flat = products.view(documents, length * columns)
    pairs = flat[:, : length // 2 * 2 * columns].view(documents, -1, 2 * columns)
    paired = torch.amax(pairs, 1, out=memory.take("pairs", documents, 2 * columns).view(products.dtype))
    torch.maximum(paired[:, :columns], paired[:, columns:], out=out)
    if length % 2:
        torch.maximum(out, products[:, -1], out=out)
