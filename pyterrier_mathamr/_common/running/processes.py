"""Where long builds run: processes of this machine, or a cluster. The results come in the order of one process.

::

    items, read a few ahead ──▶ worker: work(item) ──▶ results in the order of the items ──▶ the caller writes them

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
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Self, TypeVar

from pyterrier_mathamr._common.parameters import COUNT

from .settings import one_thread_each, postponed
from .worker import WorkerDiedError

Item = TypeVar("Item")
Result = TypeVar("Result")

_FEW = 8  # items; fewer are done before a process has started
_AHEAD = 3  # items for each process that are handed out or waiting, so that it is busy while the slowest is waited for
_work: Any = None  # in a worker process: the function that it maps
_cores_left: int | None = None  # the limit of this process, where one was set


class Executor(ABC):
    """Does pieces of work at the same time: :class:`Processes` or :class:`~.ray_cluster.RayCluster`."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many items are worked on at a time."""

    @abstractmethod
    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Map a function over items; the results come in their order."""

    def doing(self) -> str:
        """Describe how much each node has done, for a progress bar; empty on one machine."""
        return ""

    def sees(self, file: Path) -> bool:
        """Whether all workers read the same bytes at the path of a small file as this process."""
        return file.is_file()


def usable_cores() -> int:
    """Count the CPU cores that this process may use, at most as many as :func:`limit_cores` left it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _cores_left or cores)


def limit_cores(cores: int) -> None:
    """Limit the cores that this process, one of several on a machine, shares its work out to."""
    global _cores_left
    _cores_left = cores


def runs_within(sizes: Iterable[int], budget: int) -> list[range]:
    """Cut neighbors into runs whose sizes add up to at most ``budget``; a larger one gets a separate run."""
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
class Processes(Executor):
    """An executor: work spread over processes of this machine.

    Attributes:
        workers: number of processes, ``None`` for all usable cores. With 1, or for few items, this process does the
            work itself.

    Raises:
        ConfigError: ``workers`` is not a positive integer.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        COUNT.or_none().check("workers", self.workers)

    @property
    def slots(self) -> int:
        return self.workers or usable_cores()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Map ``work`` over ``items``, in their order; with several workers it is pickled once for each.

        Raises:
            WorkerDiedError: a process was killed.
        """
        rest = iter(items)
        first = list(islice(rest, _FEW)) if self.slots > 1 else []
        if len(first) < _FEW:
            yield from map(work, chain(first, rest))
            return
        with _pool(work, self.slots) as pool:
            yield from _in_order(pool, self.slots, chain(first, rest))


@contextmanager
def _pool(work: Callable[[Any], Any], workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that map one function; they end with the block, at once where an error ends it."""
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(pickle.dumps(work),)
    )
    try:
        yield pool
    except BaseException:  # nobody waits for the rest any more
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, workers: int, items: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield the results of items in their order, and hand out a few items ahead of them."""
    rest = iter(items)
    try:
        with _starting():  # a process is started with each of the first items
            waiting = deque(pool.submit(_do, item) for item in islice(rest, workers))
        while True:
            waiting.extend(pool.submit(_do, item) for item in islice(rest, _AHEAD * workers - len(waiting)))
            if not waiting:
                break
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise WorkerDiedError(
            f"one of {workers} worker processes died; it may have run out of memory. Run the job again with fewer "
            "workers; a script that uses several needs `if __name__ == '__main__':` around its work."
        ) from error


class StartedProcesses(Executor):
    """Like :class:`Processes`, but :meth:`start` launches the workers before the next :meth:`map`."""

    def __init__(self, processes: Processes, prepare: Callable[[], object]) -> None:
        self._processes, self._prepare = processes, prepare
        self._ends = ExitStack()
        self._pool: ProcessPoolExecutor | None = None
        self._waiting = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._ends.__exit__(*raised)

    @property
    def slots(self) -> int:
        return self._processes.slots

    def start(self) -> None:
        """Start the processes, once; without this they start with the first items of :meth:`map`, if there are many."""
        if self._pool is None:
            self._pool = self._ends.enter_context(_pool(_Later(self._prepare), self.slots))
            with _starting():
                for _ in range(self.slots):  # one process is started for each of as many tasks
                    self._pool.submit(os.getpid)
            self._waiting = True

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        if self._pool is None or not self._waiting:
            yield from self._processes.map(work, items)
            return
        self._waiting = False
        packed = pickle.dumps(work)
        yield from _in_order(self._pool, self.slots, ((packed, item) for item in items))
        self._pool.shutdown(wait=False)  # the processes need a moment to end, and nobody has to wait for it


class _Later:
    """Work that comes with each item; a process is prepared where this is unpickled."""

    def __init__(self, prepare: Callable[[], object]) -> None:
        self._prepare = prepare
        self._known: tuple[bytes, Any] = (b"", None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def __call__(self, packed_and_item: tuple[bytes, Any]) -> Any:
        packed, item = packed_and_item
        if self._known[0] != packed:
            self._known = packed, pickle.loads(packed)
        return self._known[1](item)


@contextmanager
def _starting() -> Iterator[None]:
    """Spawn single-threaded workers with SIGINT blocked from the start; defer it here meanwhile."""
    with one_thread_each(), postponed():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(work: bytes) -> None:
    """Prepare a worker process; it leaves Ctrl-C to its parent, and ends with it."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def end_with_parent() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    _work = pickle.loads(work)


def _do(item: Any) -> Any:
    return _work(item)
