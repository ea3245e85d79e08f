"""Python's search for unreachable cycles, postponed while much is made that has none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cycles_kept() -> Iterator[None]:
    """Keep unreachable cycles to the end of the block; all other objects are freed as always."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
