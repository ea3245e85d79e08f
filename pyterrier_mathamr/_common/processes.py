"""Work spread over processes, its results in order, as one process would give them.

The processes are started afresh (``spawn``), so nothing of the caller's threads, devices or Java comes along; a script
therefore keeps its own work under ``if __name__ == "__main__":``. Each uses one core. They leave Ctrl-C to the process
that started them, and end by themselves when it dies.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing.connection import wait
from typing import Any, TypeVar

from .errors import ConfigError, MathAMRError
from .interrupts import postponed

Item = TypeVar("Item")
Result = TypeVar("Result")

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_FEW = 8  # items; fewer are done before a process is ready
_AHEAD = 3  # items for each process that are handed out or waiting: busy while the slowest is waited for, and no more
_work: Any = None  # in a worker process: what it does with each item


class WorkerDiedError(MathAMRError):
    """A worker process ended before it gave its result."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.workers = workers

    def __str__(self) -> str:
        return (
            f"one of {self.workers} worker processes died, killed for want of memory perhaps. Run the job again with "
            "fewer workers; a script that uses several needs `if __name__ == '__main__':` around its work."
        )


def usable_cores() -> int:
    """Count the processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_processes(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """Do the same work on each item, in several processes at once.

    Items are taken from the iterable only a few ahead of the results that were taken, so memory is bounded.

    Args:
        work: what is done; with several workers it is pickled once for each.
        items: what it is done on.
        workers: number of processes. With 1, or for fewer items than are worth a process, this process does it.

    Returns:
        The results in the order of the items; an exception of the work is raised in its place. Closing the generator
        ends the processes.

    Raises:
        ConfigError: ``workers`` is less than 1.
        WorkerDiedError: a process was killed.
    """
    if workers < 1:
        raise ConfigError("workers", workers, "a positive number")
    rest = iter(items)
    first = list(islice(rest, _FEW))
    if workers == 1 or len(first) < _FEW:
        return (work(item) for item in chain(first, rest))
    return _mapped(work, chain(first, rest), workers)


def _mapped(work: Callable[[Item], Result], items: Iterator[Item], workers: int) -> Generator[Result, None, None]:
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(pickle.dumps(work),)
    )
    waiting: deque[Future[Result]] = deque()
    try:
        with _one_thread_each(), _without_interrupts():  # a process is started with each of the first items
            waiting.extend(pool.submit(_do, item) for item in islice(items, workers))
        while waiting:
            waiting.extend(pool.submit(_do, item) for item in islice(items, _AHEAD * workers - len(waiting)))
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise WorkerDiedError(workers) from error
    except BaseException:  # nobody waits for what is under way any more
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Have the processes that are started here compute with one thread each, unless the user said otherwise."""
    added = [name for name in _ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Have the processes that are started here hear no Ctrl-C, not even before :func:`_begin`; ours waits for it.

    SIGTERM waits, too, or it would leave a process half started; :func:`_begin` lets it in. They inherit the mask; for
    this process it is not enough, whose other threads take signals, and hand them to the main one.
    """
    with postponed():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(work: bytes) -> None:
    """Make ready one worker process."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _work = pickle.loads(work)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _do(item: Any) -> Any:
    return _work(item)
