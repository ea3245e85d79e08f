"""Turns: many requests of one client do not keep the others waiting.

A client uses the seconds that its answers take. The next turn goes to the client that will have used the least after
it, if its answer takes as long as the last one::

    client A   used 7.2 s   200 requests wait
    client B   used 0.4 s     1 request waits     ──▶ next

A client that comes, or comes back, starts with what the client with the last turn had used: it neither waits for
everybody who came before, nor saves up turns. One place is kept from slow requests, and from each client that has all
others. The questions of a client take turns, too: a program that repeats one does not delay a person at the same
address.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

WAITING = 200
"""Requests of a client that may wait, half of them with the same question; further ones get status 503."""

_REMEMBERED = 60.0  # seconds for which the use of a client counts
_SLOW = 1.0  # seconds
_LEAST = 0.02  # seconds that a turn counts at least, or a stream of newcomers would keep the others waiting
_SECONDS_FOR_CHARACTER = 1e-4  # expected of the first answer, which takes time linear in the length of its question


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
