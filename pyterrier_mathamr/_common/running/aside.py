"""One piece of work that a process of its own does while this one goes on with another."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from pyterrier_mathamr._common.progress import progress

from .processes import begin_worker, ending, one_thread_each, without_interrupts

Result = TypeVar("Result")
Tick = Callable[[], None]

_POLL = 0.2  # seconds between two looks at how far the other process is
_done: Any = None  # in the other process: the items that it has done


class Aside(Generic[Result]):
    """Work that is being done in another process."""

    def __init__(self, future: Future[Result], done: Any) -> None:
        self._future, self._done = future, done

    def result(self, desc: str, unit: str, *, total: int, verbose: bool) -> Result:
        """Wait for the result, with a bar if there is something to wait for.

        Args:
            desc: what is done, shown before the bar.
            unit: what the items are.
            total: the number of items.
            verbose: show the bar.

        Raises:
            BrokenProcessPool: the process was killed, of which :func:`aside` makes a WorkerDiedError. An exception of
                the work is raised in its place.
        """
        if not self._future.done():
            for _ in progress(self._steps(), desc, unit, verbose=verbose, total=total):
                pass
        return self._future.result()

    def _steps(self) -> Iterator[None]:
        """Yield once for each item that is done, until the work is."""
        seen = 0
        ended = False
        while not ended:
            ended = bool(wait([self._future], _POLL).done)
            yield from [None] * (self._done.value - seen)
            seen = self._done.value


@contextmanager
def aside(work: Callable[[Tick], Result]) -> Iterator[Aside[Result]]:
    """Do work in a process of its own, with one thread, while the body runs; an error in the body ends the process.

    Args:
        work: a function that can be pickled; it calls what it is given after each item.

    Yields:
        The work; ask it for its result before the body ends.

    Raises:
        WorkerDiedError: the process was killed.
    """
    context = multiprocessing.get_context("spawn")
    done = context.Value("q", 0)
    pool = ProcessPoolExecutor(1, context, initializer=_begin, initargs=(done,))
    with ending(pool, 1):
        with one_thread_each(), without_interrupts():
            future = pool.submit(_do, work)
        yield Aside(future, done)


def _begin(done: Any) -> None:
    global _done
    begin_worker()
    _done = done


def _do(work: Callable[[Tick], Result]) -> Result:
    return work(_tick)


def _tick() -> None:
    _done.value += 1  # only this process writes
