"""Python's search for unreachable cycles, postponed while much is made that has none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cycles_kept() -> Iterator[None]:
    """Keep unreachable cycles to the end of the block; all other objects are freed as always.

    Graphs and trees are hundreds of thousands of tuples without cycles. Python looks through them once in 700 new
    objects, and from time to time through everything else that the process has loaded: a fifth of the time of building
    graphs. The setting holds for the whole process: set it for a batch, never across a ``yield``. Of several threads
    that are in here at once, the one that set it removes it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
