"""A place that is a process of this machine: started afresh, it stays until the index is closed."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.running.processes import begin_worker, limit_cores, one_thread_each, without_interrupts

from .places import PlaceDiedError
from .reader import Readers, Request

_WAITS, _WAIT = 100, 0.05  # up to ten seconds for an exit code
_starting = threading.Lock()  # starting changes the environment for a moment, and places are started by threads


class ProcessPlace:
    """Some parts in a process of their own."""

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
            code = _exit_code(running[0])
            raise PlaceDiedError("exit code unknown" if code is None else f"exit code {code}") from error
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


def _exit_code(process: BaseProcess) -> int | None:
    """Wait for the exit code of a process that has closed its connection."""
    for _ in range(_WAITS):
        process.join(_WAIT)
        if process.exitcode is not None:
            break
        time.sleep(_WAIT)  # where it was reaped elsewhere, join returns at once
    return process.exitcode


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
