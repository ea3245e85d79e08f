"""Asking all parts at once, each where it is searched: a place that dies is started again, one that hangs is ended.

::

    ask ──▶ a thread for each place ──▶ Place.call ──▶ Readers.answer      in a process, or in an actor
                      ▲                     │ PlaceDiedError: started again, at most twice
                      │                     ▼
             time limit: every place that still works is stopped, and a named error raised
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol

from .errors import PartDiedError, PartTimeoutError
from .reader import Readers, Request

TRIES = 3
"""How often a place is asked, started again before each further time."""


class PlaceDiedError(Exception):
    """What searches the parts of a place has ended, or cannot be started; the text says how."""


class Place(Protocol):
    """Where some parts are searched: a process or an actor, started by the first request."""

    @property
    def paths(self) -> Mapping[int, Path]:
        """Its parts, by number."""

    def call(self, request: Request) -> dict[int, Any] | Exception:
        """Start what is not started, and wait for the answer."""

    def stop(self) -> None:
        """End it, whatever it does; the next request starts it again."""


class HerePlace:
    """Some parts in this process: a request has no time limit."""

    def __init__(self, paths: Mapping[int, Path]) -> None:
        self.paths, self._readers = dict(paths), Readers(paths)

    def call(self, request: Request) -> dict[int, Any] | Exception:
        """Answer a request."""
        return self._readers.answer(request)

    def stop(self) -> None:
        """Nothing runs between requests."""


class Places:
    """All places of an index."""

    def __init__(self, places: Sequence[Place], seconds: float) -> None:
        self.places, self.seconds = list(places), seconds
        self._threads = ThreadPoolExecutor(max(1, len(self.places)), thread_name_prefix="parts")
        self._lock = threading.Lock()

    def ask(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask some parts at once."""
        with self._lock:
            over = threading.Event()
            asked: dict[Future[dict[int, Any] | Exception], Place] = {}
            for place in self.places:
                if of_place := {number: arguments[number] for number in place.paths if number in arguments}:
                    future = self._threads.submit(_answer, place, Request(method, of_place), over)
                    asked[future] = place
            try:
                _, late = wait(asked, self.seconds)
            except BaseException:
                _end(asked, over)
                raise
            if late:
                places = [asked[future] for future in late]
                _end({future: asked[future] for future in late}, over)
                raise PartTimeoutError([path for place in places for path in place.paths.values()], self.seconds)
            answers: dict[int, Any] = {}
            for future in asked:
                answer = future.result()
                if isinstance(answer, Exception):
                    raise answer
                answers |= answer
            return answers

    def close(self) -> None:
        """End all places; the next request starts them again."""
        for place in self.places:
            place.stop()

    def end(self) -> None:
        """End all places for good."""
        self.close()
        self._threads.shutdown(wait=False)


def _answer(place: Place, request: Request, over: threading.Event) -> dict[int, Any] | Exception:
    """Ask one place, again where it died."""
    reason = ""
    for _ in range(TRIES):
        if over.is_set():
            break
        try:
            return place.call(request)
        except PlaceDiedError as died:
            reason = str(died)
            place.stop()
    return PartDiedError(list(place.paths.values()), TRIES, reason)


def _end(asked: Mapping[Future[Any], Place], over: threading.Event) -> None:
    """End the places that still work, and wait for their threads: no late answer is taken for that of a later one."""
    over.set()
    waiting = set(asked)
    while waiting:  # a thread may start its place just now
        for future in waiting:
            asked[future].stop()
        _, waiting = wait(waiting, 0.1)
