"""One process at a time at a piece of work: the others wait, and then find it done."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(work: Path) -> Iterator[None]:
    """Wait until no other process holds ``<work>.lock``, and hold it. A process that dies gives it back.

    Args:
        work: what is worked on; its folder is made where it is not there.
    """
    work.parent.mkdir(parents=True, exist_ok=True)
    with work.with_name(f"{work.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
