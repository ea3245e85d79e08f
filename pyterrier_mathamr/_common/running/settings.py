"""Settings of a whole process: shared by its threads, inherited by the processes that it starts.

OpenMP's threads wait in a loop, so that a thread that waits on a busy machine keeps the core that the others need: work
on two threads then takes several times as long as on one. With the policy ``PASSIVE`` a waiting thread sleeps.
Libraries read their environment variables when they are loaded, so this module loads none of them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps
from types import FrameType

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def variables_of_worker(*, one_thread: bool) -> dict[str, str]:
    """Return the variables of a process that is started; values that the user set are kept."""
    chosen = {"OMP_WAIT_POLICY": "PASSIVE", **(dict.fromkeys(_THREADS, "1") if one_thread else {})}
    return {name: os.environ.get(name, value) for name, value in chosen.items()}


def wait_passively() -> None:
    """Set the policy in this process, for libraries that are loaded later, unless the user set one."""
    os.environ.update(variables_of_worker(one_thread=False))


def shared(setting: Callable[[], AbstractContextManager[object]]) -> Callable[[], AbstractContextManager[None]]:
    """Count the holders of a setting: the first one makes it, and the last one takes it back.

    If each thread saved the setting and restored it after its work, the first to end would take it from the others, and
    the last to end could leave it to the process for good. The two may be different threads.
    """
    lock, made, holders = threading.Lock(), ExitStack(), 0

    @wraps(setting)
    @contextmanager
    def held() -> Iterator[None]:
        nonlocal holders
        with lock:
            if not holders:
                made.enter_context(setting())
            holders += 1
        try:
            yield
        finally:
            with lock:
                holders -= 1
                if not holders:
                    made.close()

    return held


@shared
@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let the processes that are started here compute with one thread each, unless the user set another number."""
    variables = variables_of_worker(one_thread=True)
    added = [name for name in variables if name not in os.environ]
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def postponed() -> Iterator[None]:
    """Postpone SIGINT and SIGTERM to the end of the block."""
    heard: list[tuple[int, FrameType | None]] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, lambda *given: heard.append(given))
    try:
        yield
    finally:
        for known, handler in handlers.items():
            signal.signal(known, handler)
        for sent, frame in heard[:1]:
            handlers[signal.Signals(sent)](sent, frame)
