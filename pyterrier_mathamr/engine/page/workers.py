"""The answers of the page, computed in processes in which clients take turns.

::

    server ──▶ SeparateAnswers ──┬── searches   processes for search, explain and graph  ──▶ Answers ──▶ SearchEngine
                                 └── small      processes for preview, post and settings ──▶ Answers ──▶ SearchEngine

The process of the server opens no index and loads no model. Whatever a question does to a library, the server answers
others meanwhile, and ends on request: a process is ended when a request is too slow.

Many requests of one client do not keep the others waiting. A client uses the seconds that its answers take. The next
turn goes to the client that will have used the least after it, if its answer takes as long as the last one::

    client A   used 7.2 s   200 requests wait
    client B   used 0.4 s     1 request waits     ──▶ next

A client that comes, or comes back, starts with what the client with the last turn had used: it neither waits for
everybody who came before, nor saves up turns. One place is kept from slow requests, and from each client that has all
others. The questions of a client take turns, too: a program that repeats one does not delay a person at the same
address.
"""

from __future__ import annotations

import asyncio
import queue
import traceback
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.feedback import gathered, ignored_warnings
from pyterrier_mathamr._common.running.processes import usable_cores
from pyterrier_mathamr._common.running.worker import OverLimitError, Worker

from .interface import SECONDS, WAITING

if TYPE_CHECKING:
    from .answers import Answers

QUICK = frozenset({"preview", "post", "settings"})
"""Requests that need milliseconds."""

SEARCHES, SMALL = max(2, min(4, usable_cores())), 2
"""Processes of each kind; they start when they are needed, and each has the model and the opened indexes."""

_REMEMBERED = 60.0  # seconds for which the use of a client counts
_SLOW = 1.0  # seconds
_LEAST = 0.02  # seconds that a turn counts at least, or a stream of newcomers would keep the others waiting
_SECONDS_FOR_CHARACTER = 1e-4  # expected of the first answer, which takes time linear in the length of its question


class SeparateAnswers:
    """The requests of :class:`~.answers.Answers`, answered by it in other processes.

    Args:
        path: the folder of the engine.
        options: the other arguments of ``Answers``, in order.
    """

    def __init__(self, path: Path, *options: Any) -> None:
        served: _Served = str(path.absolute()), *options
        self._searches = _Processes(SEARCHES, served, "search", "$x$")
        self._small = _Processes(SMALL, served, "preview", "$x$")

    def __call__(self, request: str, *args: object) -> Any:
        """Answer a request, named as the method of ``Answers``."""
        return (self._small if request in QUICK else self._searches)(request, *args)

    def warm_up(self) -> None:
        """Start the processes, and open everything that a first request would wait for.

        One process of each kind starts first, and the others after it, so that the first question does not share the
        cores with them.
        """
        with ThreadPoolExecutor(1) as pool:
            small = [pool.submit(self._small.open, 1, *request) for request in (("settings",), ("preview", "$x$"))]
            self._searches.open(SEARCHES, "search", "$x$")
            self._searches.open(SEARCHES, "search", "$x$", "formulas")
            self._searches.open(SEARCHES, "search", "$x$")  # now by codes
            for answered in small:
                answered.result()

    def close(self) -> None:
        """End the processes; requests that wait raise :class:`OverLimitError`."""
        self._searches.close()
        self._small.close()


_Served = tuple[Any, ...]
"""The path and the other arguments of :class:`~.answers.Answers`; they are hashed."""


class _Processes:
    """Some processes; each request uses a free one, the most recently used first.

    A process that was ended starts again before its request is refused.
    """

    def __init__(self, count: int, served: _Served, *opening: str) -> None:
        self._served, self._opening = served, opening
        self._all = [Worker(answer, seconds=SECONDS) for _ in range(count)]
        self._free: queue.LifoQueue[Worker[..., Any]] = queue.LifoQueue()
        self._closed = False
        for process in self._all:
            self._free.put(process)

    def __call__(self, request: str, *args: object) -> Any:
        process = self._free.get()
        try:
            if self._closed:
                raise OverLimitError("the server ends")
            return process(self._served, request, *args)
        except OverLimitError:
            if not self._closed:
                with suppress(MathAMRError):
                    process(self._served, *self._opening)  # or the next request would wait for a new process
            raise
        finally:
            self._free.put(process)

    def open(self, count: int, request: str, *args: object) -> None:
        """Send a request to some processes, one after the other, in the order in which requests use them.

        They stay free for others, which wait for the process that is being opened: it answers sooner than another.
        """
        for process in list(reversed(self._all))[:count]:
            if self._closed:
                raise OverLimitError("the server ends")
            process(self._served, request, *args)

    def close(self) -> None:
        self._closed = True
        for process in self._all:
            process.stop()


def answer(served: _Served, request: str, *args: object) -> Any:
    from pyterrier_mathamr.formula import one_text  # not for the process of the server

    try:
        # faults of a typed query do not belong into a server's log
        with one_text(), gathered(), ignored_warnings(MathAMRWarning):
            return _answers(*served)(request, *args)
    except MathAMRError:
        raise
    except Exception as error:
        error.add_note(traceback.format_exc())  # for the log of the server
        raise


@lru_cache(maxsize=1)
def _answers(path: str, *options: Any) -> Answers:
    from pyterrier_mathamr.engine.search_engine import SearchEngine

    from .answers import Answers

    return Answers(SearchEngine(path), *options)


class Turns:
    """Some places, in which the requests of clients take turns."""

    def __init__(self, places: int) -> None:
        self._free, self._of_each, self._quick = places, max(1, places - 1), int(places > 1)
        self._clients: dict[str, _Client] = {}
        self._used = 0.0

    def full(self, name: str, question: str) -> bool:
        """Return whether no further request of a client may wait."""
        lines = self._clients.get(name, _Client()).waiting
        return len(lines.get(question, ())) >= WAITING // 2 or sum(map(len, lines.values())) >= WAITING

    @asynccontextmanager
    async def turn(self, name: str, question: str) -> AsyncIterator[None]:
        """Wait for a place, and have it for the block."""
        loop = asyncio.get_running_loop()
        recent = loop.time() - _REMEMBERED
        self._clients = {
            each: client for each, client in self._clients.items() if client.active or client.last > recent
        }
        client = self._clients.setdefault(name, _Client())
        if not client.active:
            client.used = max(client.used, self._used + _LEAST)
        turn: asyncio.Future[float] = loop.create_future()
        client.waiting.setdefault(question, deque()).append(turn)
        self._next()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled():
                self._free += 1
                client.running -= 1
                client.last = loop.time()
                client.took = client.last - turn.result()
                client.used += client.took
                self._next()

    def _next(self) -> None:
        """Give the free places to clients that wait."""
        while self._free:
            ready = [
                each
                for each in self._clients.values()
                if each.waiting and each.running < self._of_each and (self._free > self._quick or each.cost() < _SLOW)
            ]
            if not ready:
                return
            client = min(ready, key=lambda each: each.used + each.cost())
            turn = client.pop()
            if not turn.cancelled():
                turn.set_result(asyncio.get_running_loop().time())
                self._used = max(self._used, client.used)
                self._free -= 1
                client.running += 1


@dataclass(eq=False)
class _Client:
    """The requests of a client that wait, by their questions, and the seconds that its answers took."""

    used: float = 0.0
    took: float | None = None
    last: float = 0.0
    running: int = 0
    waiting: dict[str, deque[asyncio.Future[float]]] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        return bool(self.running or self.waiting)

    def cost(self) -> float:
        """Return the seconds that the next answer is expected to take: as many as the last one."""
        return _SECONDS_FOR_CHARACTER * len(next(iter(self.waiting))) if self.took is None else self.took

    def pop(self) -> asyncio.Future[float]:
        """Take the first request of the next question, and put the others of this question behind the other lines."""
        question, line = next(iter(self.waiting.items()))
        turn = line.popleft()
        del self.waiting[question]
        if line:
            self.waiting[question] = line
        return turn
