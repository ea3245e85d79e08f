"""Worker processes that start before their work is known, so that they load what they need while it is prepared."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from .processes import (
    Processes,
    WorkerDiedError,
    begin_worker,
    ending,
    in_order,
    one_thread_each,
    without_interrupts,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

_known: tuple[bytes, Any] = (b"", None)  # in a worker process: the function that it maps, and its pickle


class StartedProcesses:
    """An executor as :class:`Processes`, whose processes :meth:`start` starts for the next call of :meth:`map`."""

    def __init__(self, processes: Processes, prepare: Callable[[], object]) -> None:
        self._processes, self._prepare = processes, prepare
        self._pool: ProcessPoolExecutor | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, traceback)

    @property
    def slots(self) -> int:
        """How many items are worked on at a time."""
        return self._processes.slots

    def start(self) -> None:
        """Start the processes, once; without this they start with the first items of :meth:`map`, if there are many."""
        if self._pool is not None:
            return
        self._pool = ProcessPoolExecutor(
            self.slots, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(self._prepare,)
        )
        self._stack.enter_context(ending(self._pool, self.slots))
        with one_thread_each(), without_interrupts():
            for _ in range(self.slots):  # each starts a process
                self._pool.submit(_nothing)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Map a function over items, in their order, as an ``Executor`` does."""
        if self._pool is None:
            return self._processes.map(work, items)
        return self._mapped(self._pool, work, items)

    def _mapped(
        self, pool: ProcessPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[Result, None, None]:
        packed = pickle.dumps(work)
        self._pool = None
        try:
            yield from in_order((), lambda item: pool.submit(_do, packed, item), iter(items), self.slots)
        except BrokenProcessPool as error:
            raise WorkerDiedError(self.slots) from error
        pool.shutdown(wait=False)  # ending takes them a moment, which nobody need wait for

    def doing(self) -> str:
        """Say nothing: a machine is one node."""
        return self._processes.doing()

    def sees(self, file: Path) -> bool:
        """Return ``True``: processes of one machine share its files."""
        return self._processes.sees(file)


def _begin(prepare: Callable[[], object]) -> None:
    begin_worker()
    prepare()


def _nothing() -> None:
    """Be a task with which a process starts."""


def _do(packed: bytes, item: Any) -> Any:
    global _known
    if _known[0] != packed:
        _known = packed, pickle.loads(packed)
    return _known[1](item)
