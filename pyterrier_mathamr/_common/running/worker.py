"""One supervised worker: a child process that answers over a socket, and may be ended at any moment.

::

    worker(text) ──▶ child: alarm(seconds); function(text); alarm(off) ──▶ result, or its error
                       │ the alarm rings, memory runs out, native code crashes, somebody stops it
                       └──▶ OverLimitError or WorkerDiedError here; the next call starts another child

The alarm belongs to the child and counts its CPU time: it needs nobody's attention, and also ends native code that
never returns. A child has a separate session, so Ctrl-C goes to its parent, and the child ends with the parent.

:class:`Child` is the process and its socket, also for an interpreter that lacks this package: the number of the socket
is the last argument of the command, and messages have the format of ``multiprocessing.connection``.
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
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Generic, ParamSpec, TypeVar

from pyterrier_mathamr._common.errors import MathAMRError

from .settings import postponed, variables_of_worker

P = ParamSpec("P")
R = TypeVar("R")

MEMORY = 4 << 30
"""Bytes of address space for a child that reads untrusted input."""

_WAITING = 10  # times the limit on CPU time; a child that computes nothing is ended then
_TAIL = 2000  # bytes of a child's last output that are kept for messages
_PATIENCE = 5.0  # seconds for a child that has closed its socket to end
_TOO_MUCH = "it needs too much memory, or crashes the library that reads it"


class WorkerDiedError(MathAMRError):
    """A worker process ended before it returned its result; the message states how."""


class OverLimitError(MathAMRError):
    """Work on an input was ended: it took too much time or memory, or crashed native code."""

    reason: str
    template = "{reason}"


class Child:
    """A process in a separate session, and our end of its socket."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], output: IO[bytes] | int | None = None
    ) -> None:
        self.owner = os.getpid()
        self.tail = b""
        ours, theirs = socket.socketpair()
        with postponed(), theirs:
            try:
                self.process = subprocess.Popen(
                    [*command, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=None if output is None else subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
        self._connection = Connection(ours.detach())
        self._reading = threading.Thread(target=_keep_tail, args=(weakref.ref(self), self.process.stdout), daemon=True)
        if self.process.stdout:
            self._reading.start()
        weakref.finalize(self, _end, self.process, self._connection, self.owner)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def ask(self, message: bytes, seconds: float | None = None, most: int | None = None) -> bytes:
        """Send a message and wait for its answer, which has at most so many bytes."""
        late = threading.Event()

        def expire() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(seconds or 0, expire)
        timer.daemon = True
        if seconds is not None:
            timer.start()
        try:
            self._connection.send_bytes(message)
            return self._connection.recv_bytes(most)
        except (EOFError, OSError) as error:
            if late.is_set():
                raise TimeoutError(f"no answer within {seconds:.0f} seconds") from error
            raise
        finally:
            timer.cancel()

    def kill(self) -> None:
        """Kill the process with its children; whoever waits for its answer reads the end of the socket."""
        if self.owner == os.getpid():
            _kill(self.process)

    def end(self) -> int:
        """End the process, by closing the socket or else by killing it; return its exit code."""
        return _end(self.process, self._connection, self.owner)

    def how_it_ended(self) -> str:
        """Wait a moment for a process that has closed its socket, and describe how it ended."""
        try:
            code = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        if self._reading.is_alive():
            self._reading.join(_PATIENCE)
        return ending(code)


class Worker(Generic[P, R]):
    """A function of a module that is called in a child process, one call at a time."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        seconds: float | None = None,
        memory: int | None = None,
        one_thread: bool = False,
        log: Path | None = None,
    ) -> None:
        self.function, self.seconds, self.memory = function, seconds, memory
        self._one_thread, self._log = one_thread, log
        self._lock = threading.Lock()
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        child = self._child
        return child.process.pid if child is not None and child.running else None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            child = self._child
            if child is None or child.owner != os.getpid() or not child.running:
                child = self._child = self._started()
            try:
                answer = child.ask(pickle.dumps((args, kwargs)))
            except BaseException as error:  # also an interrupt, after which an answer would be that of an earlier call
                self._child = None
                code = child.end()
                if isinstance(error, EOFError | OSError):
                    if self.seconds is None and self.memory is None:
                        raise WorkerDiedError(ending(code)) from error
                    late = self.seconds is not None and code in (-signal.SIGPROF, -signal.SIGALRM)
                    reason = f"it needs more than {self.seconds:g} s" if late else _TOO_MUCH
                    raise OverLimitError(reason) from error
                raise
        succeeded, value = pickle.loads(answer)
        if succeeded:
            result: R = value
            return result
        raise value

    def stop(self) -> None:
        """Kill the child, if there is one; a call that waits for it raises, and the next starts another."""
        child = self._child
        if child is not None:
            child.kill()

    def _started(self) -> Child:
        name = f"{self.function.__module__}:{self.function.__qualname__}"
        code = f"from {__name__} import main; main()"  # not -m, which would rename this module and its errors
        command = [sys.executable, "-c", code, name, str(self.seconds or 0), str(self.memory or 0)]
        variables = variables_of_worker(one_thread=self._one_thread)
        environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with nullcontext() if self._log is None else self._log.open("ab") as log:
            return Child(command, environment, log)


def ending(code: int) -> str:
    return f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"


def _keep_tail(child: weakref.ref[Child], output: IO[bytes]) -> None:
    """Read the output of a child, so that its pipe does not fill up."""
    with output:
        while read := os.read(output.fileno(), 1 << 16):
            if (owner := child()) is None:
                return
            owner.tail = (owner.tail + read)[-_TAIL:]
            del owner  # or this thread would keep the child


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:  # otherwise its number may be that of another process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end(process: subprocess.Popen[bytes], connection: Connection, owner: int) -> int:
    if os.getpid() != owner:  # a fork of the process whose child it is
        return 0
    connection.close()
    with suppress(subprocess.TimeoutExpired):
        return process.wait(0.05)  # it has ended, or ends with the connection
    _kill(process)
    return process.wait()


def main() -> None:
    """Answer calls of one function until the parent ends; the main loop of a child."""
    name, seconds, memory, number = sys.argv[1:]
    for alarm in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(alarm, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with suppress(OSError, ValueError):  # a limit of the system is lower
        if int(memory):
            resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parent = os.getppid()

    def end_with_parent() -> None:  # even during a call
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    module, _, attribute = name.partition(":")
    connection, function = Connection(int(number)), getattr(importlib.import_module(module), attribute)
    with suppress(EOFError, OSError):  # the parent has closed its end
        while True:
            args, kwargs = connection.recv()
            signal.setitimer(signal.ITIMER_PROF, float(seconds))  # 0 turns the alarm off
            signal.setitimer(signal.ITIMER_REAL, _WAITING * float(seconds))
            answer = _answer(function, args, kwargs)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            connection.send_bytes(answer)


def _answer(function: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    """Call the function, and pickle its result, or its error, or where that cannot be pickled a description of it."""
    try:
        return pickle.dumps((True, function(*args, **kwargs)))
    except Exception as error:
        with suppress(Exception):
            pickle.loads(answer := pickle.dumps((False, error)))
            return answer
        return pickle.dumps((False, OverLimitError(f"it cannot be read ({type(error).__name__}: {error!s:.200})")))
