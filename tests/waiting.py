"""Waiting for what other processes do, with a generous limit and no fixed pause."""

import os
import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float = 120) -> bool:
    """Wait until a condition holds; return whether it did in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def gone(pid: int) -> bool:
    """Return whether a process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
