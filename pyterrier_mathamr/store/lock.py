"""One writer at a time: a lock beside the artifact, and a note of who holds it.

The lock is the operating system's (by ``filelock``), so that a process that dies releases it by dying. It lies beside
the folder and not in it, since a packaged artifact carries every file of its folder.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import LockedError
from .files import writing


@contextmanager
def writer_lock(path: Path) -> Iterator[None]:
    """Hold the artifact at ``path`` for writing.

    Raises:
        LockedError: another writer holds it; names its process.
        WriteError: the folder that holds the artifact cannot be written.
    """
    from filelock import FileLock, Timeout

    file, note = (path.with_name(f".{path.name}.{ending}") for ending in ("lock", "writer"))
    lock = FileLock(file, timeout=0)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            raise LockedError(path, f"it is being written by {_owner(note)}") from error
    try:
        with writing(path):
            note.write_text(f"process {os.getpid()} on {socket.gethostname()} since {time.time():.0f}\n")
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open, and leaves it empty
            note.unlink(missing_ok=True)
            file.unlink(missing_ok=True)  # while it is held: who opened it meanwhile finds it gone and opens anew
        lock.release()


def _owner(note: Path) -> str:
    try:
        who, _, since = note.read_text().strip().rpartition(" since ")
        return f"{who}, for {max(0, int(time.time()) - int(since))} s"
    except (OSError, ValueError):
        return "another process"
