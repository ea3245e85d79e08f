"""A worker process and its pipes: one line of JSON out, one line in, within a time limit."""

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

from pyterrier_mathamr._common.records import parse_json

SERVE = Path(__file__).with_name("serve.py")
TAIL = 2000
"""Bytes of a worker's last output that are kept for messages."""

MOST = 64 << 20
"""Limit of a reply in bytes; the graphs of a batch take some hundred thousand."""


class WorkerBrokenError(Exception):
    """A worker died, did not answer in time or violated the protocol; never raised to users."""


class WorkerProcess:
    """A running worker."""

    def __init__(self, python: str, device: str) -> None:
        self._process = subprocess.Popen(
            [python, str(SERVE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(python, device, os.environ),
            start_new_session=True,  # not interrupted by Ctrl-C, and killed with all its children
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
        """Return the worker's last output."""
        return self._printed.decode("utf-8", "replace").strip()

    @property
    def ended(self) -> bool:
        """Return whether the worker has ended."""
        return self._process.poll() is not None

    def ask(self, request: Mapping[str, Any], seconds: float, stopped: threading.Event | None = None) -> dict[str, Any]:
        """Send a request and wait for its reply."""
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
        """Kill the worker and its children."""
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def _exchange(self, line: bytes, seconds: float, stopped: threading.Event) -> bytes:
        """Write a line and read one; read the output meanwhile, so that no pipe fills up."""
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
        """Write what the pipe accepts and return the rest."""
        try:
            return line[os.write(self._requests, line) :]
        except BlockingIOError:
            return line
        except BrokenPipeError:
            raise WorkerBrokenError(self._end()) from None

    def _end(self) -> str:
        """Describe how the worker ended, after reading its last output."""
        try:
            code = self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        os.set_blocking(self._prints, False)
        try:
            while read := os.read(self._prints, 1 << 16):
                self._printed = (self._printed + read)[-TAIL:]
        except BlockingIOError:
            pass  # a child still holds the pipe
        return f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"


def environment(python: str, device: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a worker.

    Args:
        python: its interpreter; another one than ours does not get the paths of our packages.
        device: the one device that it sees; ``cuda:1`` is the second of those that we see.
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
