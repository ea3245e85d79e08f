"""Work on untrusted input in a process that ends when the work takes too long or too much memory.

::

    guarded(text) ──▶ child: alarm(seconds); function(text); alarm(off) ──▶ result, or its error
                        │ the alarm rings, memory runs out, native code crashes: the kernel ends the child
                        └──▶ OverLimitError here; the next call starts another child

The alarm belongs to the child and needs nobody's attention: it ends native code that never returns, and a child whose
parent has died.
"""

from __future__ import annotations

import importlib
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Generic, ParamSpec, TypeVar

from pyterrier_mathamr._common.errors import MathAMRError

from .interrupts import postponed

P = ParamSpec("P")
R = TypeVar("R")

MEMORY = 4 << 30
"""Bytes of address space that a child may use."""

_WAITING = 10  # times the limit on CPU time; a child that computes nothing is ended then


class OverLimitError(MathAMRError):
    """Work on an input was ended: it took too much time or memory, or crashed native code."""

    reason: str
    template = "{reason}"


class Guarded(Generic[P, R]):
    """A function of a module that is called in a child process, one call at a time."""

    def __init__(self, function: Callable[P, R], seconds: float, memory: int | None = MEMORY) -> None:
        self.function, self.seconds, self.memory = function, seconds, memory
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        with self._lock:
            if self._child is None or self._child.owner != os.getpid():
                self._child = _Child(self.function, self.seconds, self.memory)
            try:
                succeeded, value = self._child.ask((args, kwargs))
            except BaseException as error:  # also an interrupt, after which an answer would be that of an earlier call
                child, self._child = self._child, None
                code = child.end()
                if isinstance(error, EOFError | OSError):
                    raise OverLimitError(self._said(code)) from error
                raise
        if succeeded:
            result: R = value
            return result
        raise value

    def end(self) -> None:
        """End the child, if there is one; a call that waits for it raises :class:`OverLimitError`."""
        child = self._child
        if child is not None:
            child.kill()

    def _said(self, code: int) -> str:
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            return f"it takes more than {self.seconds:g} s"
        return "it takes too much memory, or crashes the library that reads it"


class _Child:
    """A child process and its end of a socket."""

    def __init__(self, function: Callable[..., Any], seconds: float, memory: int | None) -> None:
        self.owner = os.getpid()
        ours, theirs = socket.socketpair()
        name = f"{function.__module__}:{function.__qualname__}"
        code = f"from {__name__} import main; main()"  # not -m, by which the errors of this module had another name
        command = [sys.executable, "-c", code, str(theirs.fileno()), name, str(seconds), str(memory or 0)]
        paths = os.pathsep.join(filter(None, sys.path))
        with postponed(), theirs:
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,  # Ctrl-C is for the parent, with which the child ends
            )
        self._connection = Connection(ours.detach())
        weakref.finalize(self, _end, self._process, self._connection, self.owner)

    def ask(self, call: object) -> tuple[bool, Any]:
        """Send a call, and wait for its answer."""
        self._connection.send(call)
        answer: tuple[bool, Any] = self._connection.recv()
        return answer

    def kill(self) -> None:
        """Kill the process; whoever waits for its answer reads the end of the socket."""
        if self.owner == os.getpid():
            self._process.kill()

    def end(self) -> int:
        """End the process; return its exit code."""
        return _end(self._process, self._connection, self.owner)


def _end(process: subprocess.Popen[bytes], connection: Connection, owner: int) -> int:
    connection.close()
    if os.getpid() != owner:  # a fork of the process whose child it is
        return 0
    with suppress(subprocess.TimeoutExpired):
        return process.wait(0.05)  # it has ended, or ends with the connection
    process.kill()
    return process.wait()


def _serve(connection: Connection, function: Callable[..., Any], seconds: float) -> None:
    """Answer calls until the parent ends."""
    while True:
        try:
            args, kwargs = connection.recv()
        except (EOFError, OSError):
            return
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, _WAITING * seconds)
        try:
            answer = pickle.dumps((True, function(*args, **kwargs)))
        except Exception as error:
            answer = pickle.dumps((False, _portable(error)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            connection.send_bytes(answer)
        except OSError:
            return


def _portable(error: Exception) -> Exception:
    """Return an error that can be pickled: itself, or one that says what it was."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return OverLimitError(f"it cannot be read ({type(error).__name__}: {error!s:.200})")
    return error


def main() -> None:
    """Serve one function, over the socket with the number that is given."""
    number, name, seconds, memory = sys.argv[1:]
    for alarm in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(alarm, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with suppress(OSError, ValueError):  # a limit of the system is lower
        if int(memory):
            resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    module, _, function = name.partition(":")
    _serve(Connection(int(number)), getattr(importlib.import_module(module), function), float(seconds))
