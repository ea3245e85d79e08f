"""Settings of the whole process that several threads need at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps


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
