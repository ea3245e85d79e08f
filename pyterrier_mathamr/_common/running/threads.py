"""Work kept on the calling thread, where the threads of numpy or torch would cost more than they save.

The limits hold for the whole process: set them for a piece of work, never across a ``yield``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from .processes import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_held = threading.Lock()


def on_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Work on items side by side, a thread for each usable core, of which each multiplies matrices by itself."""
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
    """The loaded BLAS libraries; finding them takes as long as thousands of products."""
    return ThreadpoolController().select(user_api="blas")
