"""Connections that cannot be held open: a slow or silent client loses its own and nobody else's.

A connection has 15 seconds to send a whole request, body included, from its opening or from the last answer, and two
minutes to read the answer. When the maximum number is open, one is closed for the new one::

    strangers   have sent no request yet, or none with the token   ──▶ first, if they are more than a quarter
    idle        have sent no whole request since the last answer   ──▶ then
    busy        wait for an answer, or read it                     ──▶ last

In each group the client with the most connections loses its oldest. Strangers keep a quarter, so that clients who come
have the time to ask: until as many others have come, a few in each round of the loop.
"""

from __future__ import annotations

import asyncio
import math
import resource
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_TO_ASK = 15.0
SECONDS_TO_ANSWER = 120.0
SECONDS_TO_END = 0.3
MOST = 400
"""Open connections; fewer where the process may not have that many files."""

_RESERVED = 64  # files that are not connections
_FEWEST = 8
_WAITING = 1_024  # connections that the kernel keeps until they are accepted


class TimedConnection(H11Protocol):
    """A connection of uvicorn with deadlines."""

    _deadline: asyncio.TimerHandle | None = None
    _since = 0.0
    _known = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._close_after(SECONDS_TO_ASK)
        if len(self.connections) > most_connections():
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read a piece of a request; one that has wholly arrived gets time for its answer."""
        was_busy = self._busy()
        super().data_received(data)
        if self._busy() and not was_busy:
            self._close_after(SECONDS_TO_ANSWER)

    def on_response_complete(self) -> None:
        """Wait for the next request, or answer it where it is there already."""
        self._since = self.loop.time()
        self._client()  # before the next request takes the place of this one
        super().on_response_complete()
        self._close_after(SECONDS_TO_ANSWER if self._busy() else SECONDS_TO_ASK)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _client(self) -> str:
        """Name the client of the last request that may be answered; empty for a stranger."""
        if self.scope is not None:
            self._known = self.scope["state"].get("client", self._known)
        return self._known

    def _make_room(self) -> None:
        """Close a connection, for which the new one has come."""
        clients = {each: each._client() for each in self.connections if isinstance(each, TimedConnection)}
        strangers = [each for each, client in clients.items() if not client]
        idle = [each for each, client in clients.items() if client and not each._busy()]
        closable = strangers if len(strangers) > most_connections() // 4 else idle or list(clients)
        owners = {each: clients[each] or (each.client or ("",))[0] for each in closable}
        number = Counter(owners.values())
        min(closable, key=lambda each: (-number[owners[each]], each._since))._abort()

    def _close_after(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        if self._busy() and not self.cycle.response_started:  # the client waits for its turn, not we for the client
            self._close_after(SECONDS_TO_ANSWER)
        else:
            self._abort()

    def _abort(self) -> None:
        self.connections.discard(self)  # now: it is lost only in the next round of the loop, after a burst of new ones
        self.transport.abort()


def most_connections() -> int:
    """Count the connections that may be open: half of the files, since others are accepted before these are closed."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if files == resource.RLIM_INFINITY else max(_FEWEST, min(MOST, (files - _RESERVED) // 2))


class PageServer(uvicorn.Server):
    """A server in which a burst of connections waits in the kernel, and few are accepted in one round of the loop."""

    def __init__(self, config: uvicorn.Config, end_requests: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._end_requests = end_requests

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(_WAITING)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(SECONDS_TO_END, self._end_requests)
        await super().shutdown(sockets)


def limits() -> dict[str, Any]:
    """The options of uvicorn that belong to this."""
    at_once = max(1, most_connections() // 32)
    return {"http": TimedConnection, "ws": "none", "timeout_keep_alive": math.ceil(SECONDS_TO_ASK), "backlog": at_once}
