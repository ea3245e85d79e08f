"""The threads and the memory of this process.

Work stays on the calling thread where the threads of numpy or torch would cost more than they save. The limits hold
for the whole process: set them for a piece of work, never across a ``yield``.

Free memory is returned to the system before it grows much. Batches have all sizes, and glibc keeps their freed memory
in pieces between used ones, none large enough for a larger batch. So the process would grow from batch to batch: in
training, within minutes to several times the memory that it uses.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .processes import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_held = threading.Lock()


def on_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Work on items side by side, on a thread for each usable core; each multiplies matrices by itself."""
    waiting = list(items)
    threads = min(usable_cores(), len(waiting))
    with one_blas_thread():
        if threads < 2:
            return [work(item) for item in waiting]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, waiting))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy's matrix products compute on the calling thread."""
    if not _held.acquire(blocking=False):
        yield
        return
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _held.release()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch compute on the calling thread."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """The loaded BLAS libraries; finding them costs as much as thousands of products."""
    return ThreadpoolController().select(user_api="blas")


_GROWTH = 1.25  # since the first batch after memory was returned: so much makes it worth returning again
_STATM = Path("/proc/self/statm")


class Heap:
    """Returns free pages to the system between the batches of a long computation, where the C library is glibc."""

    def __init__(self) -> None:
        self._first = 0

    def after_batch(self) -> None:
        """Return free pages if the process has grown since the first batch after the last time."""
        if _malloc_trim() is None:
            return
        held = resident()
        self._first = self._first or held
        if held > _GROWTH * self._first:
            self.trim()

    def trim(self) -> None:
        """Return free pages."""
        return_free_memory()
        self._first = 0


def return_free_memory() -> None:
    """Return free pages to the system, where the C library is glibc."""
    if (trim := _malloc_trim()) is not None:
        trim(0)


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


_LARGEST_MAPPED = (1 << 25) - (1 << 16)  # bytes; glibc adapts to blocks below 32 MiB


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let glibc keep up to 64 MB of freed memory for the next arrays, each of whose pages would cause a fault.

    It keeps twice the largest block that it has mapped and freed; the states of a batch are a few MB each.
    """
    np.empty(_LARGEST_MAPPED, np.uint8)  # freed at once, and never touched


@lru_cache(maxsize=1)
def _malloc_trim() -> Callable[[int], object] | None:
    if sys.platform != "linux" or not _STATM.exists():
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


@contextmanager
def cycles_kept() -> Iterator[None]:
    """Keep unreachable cycles to the end of the block; all other objects are freed as always."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
