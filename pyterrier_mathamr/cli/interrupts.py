"""How a command ends on SIGINT or SIGTERM: soon, with one line and exit code 130 or 143.

::

    signal ──▶ Interrupted, raised in the main thread ──▶ jobs keep their work and note it ──▶ one line, 130 or 143
       └─────▶ a watching thread: ends the process itself if that is too slow (native code, perhaps)

Every job can be killed at any instant, so ending early loses nothing.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 1.5  # seconds; a command ends within two


class Interrupted(KeyboardInterrupt):
    """SIGINT or SIGTERM came; its notes record the finished work of jobs.

    Attributes:
        number: the signal.
    """

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = number


class Interruptible:
    """A context in which SIGINT and SIGTERM raise :class:`Interrupted`; no effect outside of the main thread."""

    def __init__(self, command: str, *, to_the_end: bool) -> None:
        self._command, self._to_the_end = command, to_the_end
        self._heard = False
        self._reported = threading.Lock()
        self._done = threading.Event()
        self._pipe: tuple[int, int] | None = None

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            self._pipe = os.pipe()
            os.set_blocking(self._pipe[1], False)
            self._wakeup = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
            self._handlers = {number: signal.signal(number, self._interrupt) for number in _SIGNALS}
            threading.Thread(target=self._watch, args=self._pipe[:1], daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pipe and not (self._heard and self._to_the_end):
            self._done.set()
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._wakeup)
            os.close(self._pipe[1])

    def tell(self, error: BaseException | None = None) -> None:
        """Report once, in one line, the finished work and how to resume."""
        if not self._reported.acquire(blocking=False):
            return
        kept = "; ".join(" ".join(note.split()) for note in getattr(error, "__notes__", ()))
        fresh = "\n" if sys.stderr.isatty() else ""  # below a progress bar
        line = f"Interrupted{': ' + kept if kept else ''}. To resume, run the same command again: {self._command}"
        sys.stderr.write(f"{fresh}{line}\n")
        sys.stderr.flush()

    def leave(self, code: int) -> None:
        """End the process, where it ends with the command, without the seconds of Python's own shutdown."""
        if self._to_the_end and self._pipe:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self._heard:
            self._heard = True
            raise Interrupted(number)

    def _watch(self, pipe: int) -> None:
        while received := os.read(pipe, 64):
            number = next((number for number in received if number in _SIGNALS), None)
            if number is not None and not self._done.wait(_PATIENCE):
                self.tell()
                os._exit(128 + number)
        os.close(pipe)
