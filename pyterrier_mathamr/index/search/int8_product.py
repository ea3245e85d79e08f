"""The product of int8 matrices by torch, a private function of it (``_int_mm``) that is tested before it is used.

On the CPU it is used where it is correct and faster than numpy's product in float32. On a GPU it is used where it is
correct; otherwise codes are multiplied as floating-point numbers, which is exact, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pyterrier_mathamr._common.running.resources import one_torch_thread

from .maxsim import BLOCK_ROWS

if TYPE_CHECKING:
    from torch import Tensor

COLUMNS = 128
_HALF_TILE = 32
"""Numbers of a row up to which some processors multiply two rows as fast as one."""

_EXACT = 1 << 24
"""The integers up to here are exact in float32."""


@lru_cache(maxsize=16)
def usable(dimensions: int) -> bool:
    """Test, once, whether torch has an integer product that is correct and faster than numpy's in float32."""
    try:
        import torch

        rows, columns = (1, 7, BLOCK_ROWS), (16, 32, COLUMNS)
        if not all(_right(width, "cpu", rows, columns, _in_memory) for width in (dimensions, 2 * dimensions)):
            return False
        codes, query = _example(dimensions)
        left, right = torch.from_numpy(codes), torch.from_numpy(query).T[:, :16]
        numbers, asked = codes.astype(np.float32), query[:16].T.astype(np.float32)
        with exactly():
            return _seconds(lambda: torch._int_mm(left, right)) < _seconds(lambda: numbers @ asked)
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
        single = _seconds(lambda: product_into(left, right, out))
        return _seconds(lambda: product_into(pairs, twice, out.view(-1, 32))) < single


def product_into(left: Tensor, right: Tensor, out: Tensor) -> Tensor:
    """Compute the product of codes on the CPU, where it is :func:`usable`."""
    import torch

    product: Tensor = torch._int_mm(left, right, out=out)
    return product


@lru_cache(maxsize=16)
def product_on(device: str, dimensions: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the product of codes on a GPU."""
    import torch

    try:
        if _right(dimensions, device, (17, BLOCK_ROWS), (16, COLUMNS), torch._int_mm):
            return torch._int_mm
    except (AttributeError, RuntimeError, NotImplementedError):
        pass
    exact = torch.float32 if dimensions * 127 * 127 < _EXACT else torch.float64
    return lambda left, right: left.to(exact) @ right.to(exact)


@contextmanager
def exactly() -> Iterator[None]:
    """Let torch compute on one thread for each of ours (more would wait for each other), in full float32 precision."""
    import torch

    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with one_torch_thread():
            yield
    finally:
        torch.set_float32_matmul_precision(precision)


def _example(dimensions: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    sizes = (BLOCK_ROWS, dimensions), (COLUMNS, dimensions)
    codes, query = (rng.integers(-127, 128, size).astype(np.int8) for size in sizes)
    return codes, query


def _right(
    dimensions: int,
    device: str,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    multiply: Callable[[Tensor, Tensor], Tensor],
) -> bool:
    """Test the integer product of some sizes."""
    import torch

    codes, query = _example(dimensions)
    left, right = torch.from_numpy(codes).to(device), torch.from_numpy(query).to(device).T
    true = codes.astype(np.float64) @ query.T.astype(np.float64)
    return all(
        np.array_equal(multiply(left[:m], right[:, :q]).cpu().numpy(), true[:m, :q]) for m, q in product(rows, columns)
    )


def _in_memory(left: Tensor, right: Tensor) -> Tensor:
    import torch

    return product_into(left, right, torch.empty((len(left), right.shape[1]), dtype=torch.int32))


def _seconds(run: Callable[[], Any]) -> float:
    run()
    best = float("inf")
    for _ in range(30):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
