"""A place that is a process of this machine: it stays until the index is closed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.running.processes import limit_cores
from pyterrier_mathamr._common.running.worker import Worker, WorkerDiedError

from .places import PlaceDiedError
from .reader import Readers, Request


class ProcessPlace:
    """Some parts in a process of their own."""

    def __init__(self, paths: Mapping[int, Path], threads: int) -> None:
        self.paths, self._threads = dict(paths), threads
        self._worker = Worker(_answer, one_thread=True)

    @property
    def pid(self) -> int | None:
        """The process, where there is one."""
        return self._worker.pid

    def call(self, request: Request) -> dict[int, Any] | Exception:
        """Send a request to the process, and wait for its answer."""
        try:
            return self._worker(tuple(self.paths.items()), self._threads, request)
        except WorkerDiedError as error:
            raise PlaceDiedError(str(error)) from error

    def stop(self) -> None:
        """Kill the process."""
        self._worker.stop()


def _answer(paths: tuple[tuple[int, Path], ...], threads: int, request: Request) -> dict[int, Any] | Exception:
    """Answer a request, in the process."""
    limit_cores(threads)
    return _readers(paths).answer(request)


@lru_cache(maxsize=1)
def _readers(paths: tuple[tuple[int, Path], ...]) -> Readers:
    return Readers(dict(paths))
