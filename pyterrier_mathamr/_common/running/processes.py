"""Work spread over processes, its results in the order of one process, and neighbours cut into runs of a budget.

The processes are started afresh (``spawn``), so they inherit no threads, devices or Java; a script therefore keeps its
own work under ``if __name__ == "__main__":``. Each uses one core. They leave Ctrl-C to the process that started them,
and end by themselves when it dies.
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
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeVar

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.parameters import COUNT

from .interrupts import postponed

Item = TypeVar("Item")
Result = TypeVar("Result")

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables of the environment that say how many threads numerical libraries start."""

_FEW = 8  # items; fewer are done before a process has started
_AHEAD = 3  # items for each process that are handed out or waiting, so that it is busy while the slowest is waited for
_work: Any = None  # in a worker process: the function that it maps
_cores_left: int | None = None  # the limit of this process, where one was set


class WorkerDiedError(MathAMRError):
    """A worker process ended before it returned its result."""

    workers: int
    template = "one of {workers} worker processes died; it may have run out of memory."
    advice = (
        "Run the job again with fewer workers; a script that uses several needs `if __name__ == '__main__':` around "
        "its work."
    )


def usable_cores() -> int:
    """Count the CPU cores that this process may use, at most as many as :func:`limit_cores` left it."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(found, _cores_left or found)


def limit_cores(cores: int) -> None:
    """Let this process share its work out to so many cores at most, one of several processes of a machine."""
    global _cores_left
    _cores_left = cores


def runs_within(sizes: Iterable[int], budget: int) -> list[range]:
    """Cut neighbours into runs whose sizes add up to at most ``budget``; one that is larger is a run of its own."""
    runs: list[range] = []
    room = 0
    for i, size in enumerate(sizes):
        if not runs or size > room:
            runs.append(range(i, i + 1))
            room = budget
        else:
            runs[-1] = range(runs[-1].start, i + 1)
        room -= size
    return runs


@dataclass(frozen=True)
class Processes:
    """An executor: work spread over processes of this machine.

    Attributes:
        workers: number of processes, ``None`` for all usable cores. With 1, or for few items, this process does the
            work itself.

    Raises:
        ConfigError: ``workers`` is no positive integer.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        COUNT.or_none().check("workers", self.workers)

    @property
    def slots(self) -> int:
        """How many items are worked on at a time."""
        return self.workers or usable_cores()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Map a function over items, in their order, as an ``Executor`` does.

        Args:
            work: the function; with several workers it is pickled once for each.
            items: its arguments.

        Raises:
            WorkerDiedError: a process was killed.
        """
        if self.slots == 1:
            return (work(item) for item in items)
        rest = iter(items)
        first = list(islice(rest, _FEW))
        if len(first) < _FEW:
            return (work(item) for item in chain(first, rest))
        return _mapped(work, chain(first, rest), self.slots)

    def doing(self) -> str:
        """Say nothing: a machine is one node."""
        return ""

    def sees(self, file: Path) -> bool:
        """Return ``True``: processes of one machine share its files."""
        return file.is_file()


def _mapped(work: Callable[[Item], Result], items: Iterator[Item], workers: int) -> Generator[Result, None, None]:
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(pickle.dumps(work),)
    )
    with ending(pool, workers):
        with one_thread_each(), without_interrupts():  # a process is started with each of the first items
            first = [pool.submit(_do, item) for item in islice(items, workers)]
        yield from in_order(first, lambda item: pool.submit(_do, item), items, workers)


def in_order(
    first: Iterable[Future[Result]],
    submit: Callable[[Item], Future[Result]],
    items: Iterator[Item],
    workers: int,
) -> Generator[Result, None, None]:
    """Yield the results of items in their order, and hand out a few items ahead of them."""
    waiting = deque(first)
    while True:
        waiting.extend(submit(item) for item in islice(items, _AHEAD * workers - len(waiting)))
        if not waiting:
            return
        yield waiting.popleft().result()


@contextmanager
def ending(pool: ProcessPoolExecutor, workers: int) -> Iterator[None]:
    """End the processes of a pool after the block, at once where an error ends it."""
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerDiedError(workers) from error
    except BaseException:  # nobody waits for the rest any more
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let the processes that are started here compute with one thread each, unless the user set another number."""
    added = [name for name in ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Block Ctrl-C in the processes started here, even before :func:`begin_worker`, and postpone it in this one."""
    with postponed():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker() -> None:
    """Prepare a process started under :func:`without_interrupts`; it leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _begin(work: bytes) -> None:
    global _work
    begin_worker()
    _work = pickle.loads(work)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _do(item: Any) -> Any:
    return _work(item)
