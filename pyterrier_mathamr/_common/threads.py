"""Work kept on the thread that asks for it, where the libraries' own threads wait for each other longer than they save.

Limits on the threads of libraries are those of a process: hold them for a piece of work, never across a ``yield``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

_held = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy's matrix products compute on the thread that calls them.

    Of several threads that are in here at once one sets the limit and takes it away: each by itself, they would take
    the limit of another for what was there before, and leave it behind.
    """
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
    """Let torch compute on the thread that calls it."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """The loaded libraries of matrix products; looking for them takes as long as thousands of products."""
    return ThreadpoolController().select(user_api="blas")
