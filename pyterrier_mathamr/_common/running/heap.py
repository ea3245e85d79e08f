"""The heap of a process that works on batches: free memory goes back to the system before it has grown much.

Batches have all sizes, and glibc keeps what they free in pieces between those in use. A larger batch finds none that is
large enough, so the process grows from batch to batch: in training, within minutes to several times what it uses.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

GROWTH = 1.25
"""Growth over the first batch after memory was returned that makes it worth returning again."""

_STATM = Path("/proc/self/statm")


class Heap:
    """Returns free pages to the system, where the C library is glibc; elsewhere it does nothing."""

    def __init__(self, resident: Callable[[], int] | None = None, trim: Callable[[], object] | None = None) -> None:
        self._resident = resident or _resident
        self._trim = trim or malloc_trim()
        self._first = 0

    def after_batch(self) -> None:
        """Return free pages if the process has grown since the first batch after the last time."""
        if self._trim is None:
            return
        held = self._resident()
        self._first = self._first or held
        if held > GROWTH * self._first:
            self.trim()

    def trim(self) -> None:
        """Return free pages."""
        if self._trim is not None:
            self._trim()
        self._first = 0


def return_free_memory() -> None:
    """Return free pages to the system, where the C library is glibc."""
    if (trim := malloc_trim()) is not None:
        trim()


def _resident() -> int:
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def malloc_trim() -> Callable[[], object] | None:
    """Return glibc's ``malloc_trim``, which other C libraries lack."""
    if sys.platform != "linux" or not _STATM.exists():
        return None
    found = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if found is None else lambda: found(0)
