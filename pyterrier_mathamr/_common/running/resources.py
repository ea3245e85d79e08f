"""The threads and the memory of this process.

Work stays on the calling thread where the threads of numpy or torch would cost more than they save. Numpy's limit holds
for the whole process until the last thread that needs it has ended its piece of work; torch's holds for the thread that
sets it. Neither may be held across a ``yield``.

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
from threadpoolctl import LibController, ThreadpoolController

from .processes import usable_cores
from .settings import shared

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    with _one_in_pools(), _blas()[1].limit(limits=1):
        yield


@shared
@contextmanager
def _one_in_pools() -> Iterator[None]:
    """Limit the pools that all threads share. threadpoolctl does so on one thread only, and elsewhere nothing."""
    pools, _ = _blas()
    resize = [getattr(pool, "_real_set_num_threads", pool.set_num_threads) for pool in pools]
    before = [pool.get_num_threads() for pool in pools]
    try:
        for set_threads in resize:
            set_threads(1)
        yield
    finally:
        for set_threads, threads in zip(resize, before, strict=True):
            set_threads(threads)


@lru_cache(maxsize=1)
def _blas() -> tuple[list[LibController], ThreadpoolController]:
    """The loaded BLAS libraries with a pool of threads for the process, and those with OpenMP, a pool for each thread.

    Finding them costs as much as thousands of products.
    """
    blas = ThreadpoolController().select(user_api="blas")
    openmp = blas.select(threading_layer="openmp")
    return [library for library in blas.lib_controllers if library not in openmp.lib_controllers], openmp


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch compute on the calling thread; other threads keep their number, as OpenMP and MKL have one for each.

    ``torch.set_num_threads`` would also change the number of every thread that uses torch later for the first time.
    """
    import torch

    torch.get_num_threads()  # otherwise the first operation of a thread would set its number
    set_mkl_threads = _mkl_threads_of(Path(torch.__file__).parent / "lib")
    before = set_mkl_threads(1)
    try:
        with _openmp().limit(limits=1):
            yield
    finally:
        set_mkl_threads(before)


@lru_cache(maxsize=1)
def _mkl_threads_of(libraries: Path) -> Callable[[int], int]:
    """Return the function of torch's MKL that sets the calling thread's number and returns the one before."""
    for path in libraries.glob("libtorch_cpu.*"):
        function: Callable[[int], int] | None = getattr(ctypes.CDLL(str(path)), "MKL_Set_Num_Threads_Local", None)
        if function is not None:
            return function
    return lambda threads: 0


@lru_cache(maxsize=1)
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")


_drawing = threading.RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from a seed on the CPU, one thread at a time; the process's generator stays where it was."""
    import torch

    with _drawing, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


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


@shared
@contextmanager
def cycles_kept() -> Iterator[None]:
    """Keep unreachable cycles to the end of the block; all other objects are freed as always."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()
