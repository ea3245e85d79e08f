"""Work kept on the calling thread, where the threads of numpy or torch would cost more than they save.

The limits hold for the whole process: set them for a piece of work, never across a ``yield``.
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
    """Let numpy's matrix products compute on the calling thread.

    Of several threads that are in here at once, one sets the limit and removes it; otherwise one thread could save the
    limit of another as the previous value and restore it at the end.
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
