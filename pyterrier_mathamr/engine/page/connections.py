"""Connections that cannot be held open: a client that is slow, or says nothing, loses its own and nobody else's.

A connection has 15 seconds to send a request, from its opening or from the last answer, whatever it sends in between,
and two minutes to wait for the answer and take it. When as many are open as are allowed, the one that has been idle for
the longest is closed for the new one.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_TO_ASK = 15.0
SECONDS_TO_ANSWER = 120.0
MOST = 400
"""Open connections; a process usually may have 1,024 files."""


class Connection(H11Protocol):
    """A connection of uvicorn with deadlines."""

    _deadline: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._close_after(SECONDS_TO_ASK)
        if len(self.connections) > MOST:
            idle = [each for each in self.connections if isinstance(each, Connection) and not each._busy()]
            min(idle, key=lambda each: each._since, default=self).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read a piece of a request; a request that is complete gets time for its answer."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before and self._busy():
            self._close_after(SECONDS_TO_ANSWER)

    def on_response_complete(self) -> None:
        """Wait for the next request, or answer it where it is there already."""
        self._since = self.loop.time()
        super().on_response_complete()
        self._close_after(SECONDS_TO_ANSWER if self._busy() else SECONDS_TO_ASK)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waiting."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_after(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        self.transport.abort()


def limits() -> dict[str, Any]:
    """The options of uvicorn that belong to this."""
    return {"http": Connection, "ws": "none", "timeout_keep_alive": math.ceil(SECONDS_TO_ASK), "backlog": MOST}
