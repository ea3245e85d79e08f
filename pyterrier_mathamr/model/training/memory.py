"""Free memory goes back to the system.

Batches are of all sizes, so the heap of the C library is full of holes after an epoch, and the process seems to grow
from epoch to epoch though nothing is kept. ``malloc_trim`` returns the pages of the holes; it takes milliseconds.
"""

from __future__ import annotations

import ctypes
import sys


def return_free_memory() -> None:
    """Return free pages of the heap to the system, where the C library is glibc; elsewhere nothing happens."""
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
