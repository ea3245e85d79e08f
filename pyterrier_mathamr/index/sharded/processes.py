"""A place that is a process of this machine: started afresh, it stays until the index is closed."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.running.processes import begin_worker, limit_cores, one_thread_each, without_interrupts

from .places import PlaceDiedError
from .reader import Readers, Request

_starting = threading.Lock()  # starting changes the environment for a moment, and places are started by threads


class ProcessPlace:
    """Some parts in a process of their own.

    Args:
        paths: the parts, by number.
        threads: that the process computes with.
    """

    def __init__(self, paths: Mapping[int, Path], threads: int) -> None:
        self.paths, self._threads = dict(paths), threads
        self._running: tuple[BaseProcess, Connection[Any, Any]] | None = None

    @property
    def pid(self) -> int | None:
        """The process, where there is one."""
        running = self._running
        return running[0].pid if running else None

    def call(self, request: Request) -> dict[int, Any] | Exception:
        """Send a request to the process, and wait for its answer."""
        running = self._running or self._start()
        try:
            running[1].send(request)
            answer: dict[int, Any] | Exception = running[1].recv()
        except (EOFError, OSError) as error:
            running[0].join(1)
            raise PlaceDiedError(f"exit code {running[0].exitcode}") from error
        return answer

    def stop(self) -> None:
        """Kill the process."""
        running, self._running = self._running, None
        if running:
            running[0].kill()
            running[0].join()  # a thread that waits for its answer holds the connection, which closes with it

    def _start(self) -> tuple[BaseProcess, Connection[Any, Any]]:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self.paths, self._threads), daemon=True)
        with _starting, one_thread_each(), without_interrupts():
            process.start()
        theirs.close()
        self._running = process, ours
        return self._running


def _serve(connection: Connection[Any, Any], paths: Mapping[int, Path], threads: int) -> None:
    """Answer requests until the connection is closed; the work of the process."""
    begin_worker()
    limit_cores(threads)
    readers = Readers(paths)
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(readers.answer(request))
