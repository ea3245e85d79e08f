"""One worker process and its pipes: a line out, a line in, both within a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.json_text import parse_json

SERVE = Path(__file__).with_name("serve.py")
TAIL = 2000
"""How much of what a worker printed last is kept for messages, in bytes."""

MOST = 64 << 20
"""Bytes of the longest reply; the graphs of a batch have some hundred thousand."""


class WorkerBrokenError(Exception):
    """A worker died, does not answer or answers nonsense; it is of no more use. Never leaves this package."""


class WorkerProcess:
    """A running worker.

    Args:
        python: the interpreter.
        device: ``cuda:1``, ``cuda``, ``cpu``, or empty to let the parser choose; the worker sees no other device.

    Raises:
        OSError: the interpreter cannot be run.
    """

    def __init__(self, python: str, device: str) -> None:
        self._process = subprocess.Popen(
            [python, str(SERVE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(python, device, os.environ),
            start_new_session=True,  # Ctrl-C is for the main process, and what the worker starts can be killed with it
        )
        self._requests, self._replies, self._prints = (
            pipe.fileno() for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe
        )
        os.set_blocking(self._requests, False)
        self._number = 0
        self._unread = b""
        self._printed = b""

    @property
    def tail(self) -> str:
        """What the worker printed last."""
        return self._printed.decode("utf-8", "replace").strip()

    @property
    def ended(self) -> bool:
        """Whether the worker is no more."""
        return self._process.poll() is not None

    def ask(self, request: Mapping[str, Any], seconds: float, stopped: threading.Event | None = None) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Args:
            request: what to do; its number is added.
            seconds: time for all of it.
            stopped: the wait ends when it is set.

        Returns:
            The reply.

        Raises:
            WorkerBrokenError: no reply in time, the end of the worker, or a line that is no reply to this request.
        """
        self._number += 1
        line = json.dumps({"id": self._number, **request}).encode("ascii") + b"\n"
        answer = self._exchange(line, seconds, stopped or threading.Event())
        try:
            reply = parse_json(answer)
        except ValueError:
            reply = None
        if not isinstance(reply, dict) or reply.get("id") != self._number:
            raise WorkerBrokenError(f"it answered {answer[:80]!r} to request {self._number}")
        return reply

    def kill(self) -> None:
        """End the worker and all it started, whatever state it is in."""
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def _exchange(self, line: bytes, seconds: float, stopped: threading.Event) -> bytes:
        """Write a line and read one, and meanwhile take what is printed, so that no pipe ever fills up."""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._requests, selectors.EVENT_WRITE)
            pipes.register(self._replies, selectors.EVENT_READ)
            pipes.register(self._prints, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if stopped.is_set():
                    raise WorkerBrokenError("the job was stopped")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise WorkerBrokenError(f"no answer within {seconds:.0f} seconds")
                ready = pipes.select(min(left, 0.5))
                for pipe in (key.fd for key, _ in ready):
                    if pipe == self._requests:
                        line = self._written(line)
                        if not line:
                            pipes.unregister(pipe)
                        continue
                    read = os.read(pipe, 1 << 16)
                    if not read and pipe == self._prints:
                        pipes.unregister(pipe)
                    elif not read:
                        raise WorkerBrokenError(self._end())
                    elif pipe == self._prints:
                        self._printed = (self._printed + read)[-TAIL:]
                    else:
                        self._unread += read
                        if len(self._unread) > MOST:
                            raise WorkerBrokenError(f"it answered more than {MOST:,} bytes")
        answer, _, self._unread = self._unread.partition(b"\n")
        return answer

    def _written(self, line: bytes) -> bytes:
        """Write what the pipe takes; give the rest."""
        try:
            return line[os.write(self._requests, line) :]
        except BlockingIOError:
            return line
        except BrokenPipeError:
            raise WorkerBrokenError(self._end()) from None

    def _end(self) -> str:
        """Say how the worker ended, with its last words."""
        try:
            code = self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        os.set_blocking(self._prints, False)
        try:
            while read := os.read(self._prints, 1 << 16):
                self._printed = (self._printed + read)[-TAIL:]
        except BlockingIOError:
            pass  # a process that it started still holds the pipe
        return f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"


def environment(python: str, device: str, own: Mapping[str, str]) -> dict[str, str]:
    """Give the environment variables of a worker.

    Args:
        python: its interpreter; one that is not ours does not see where our packages lie.
        device: the one device that it may see; ``cuda:1`` counts among those that we see.
        own: our variables.
    """
    found = dict(own)
    if python != sys.executable:
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            found.pop(name, None)
    kind, _, number = device.partition(":")
    if kind == "cpu":
        found["CUDA_VISIBLE_DEVICES"] = ""
    elif number:
        visible = [name.strip() for name in own.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
        found["CUDA_VISIBLE_DEVICES"] = visible[int(number)] if int(number) < len(visible) else number
    return found
