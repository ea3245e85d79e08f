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
from .files import move, remove, sync_folder, writing


@contextmanager
def writer_lock(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the artifact at ``path``, or any other piece of work, for writing.

    Args:
        path: what is written; its folder is made where it is not there.
        wait: until another writer is done.

    Raises:
        LockedError: another writer holds it; names its process.
        WriteError: the folder that holds the artifact cannot be written.
    """
    from filelock import FileLock, Timeout

    file, note = (path.with_name(f".{path.name}.{ending}") for ending in ("lock", "writer"))
    lock = FileLock(file, timeout=-1 if wait else 0)
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


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a folder of files that appears at ``path`` whole, or not at all.

    Args:
        path: where; nothing is there yet.

    Yields:
        An empty folder beside it; whoever fills it syncs each file.

    Raises:
        LockedError: another process is making it. WriteError: it cannot be written.
    """
    path = path.absolute()
    unfinished = path.with_name(f".{path.name}.new")
    with writer_lock(path), writing(path):
        remove(unfinished)  # of a process that was killed here
        try:
            unfinished.mkdir()
            yield unfinished
            sync_folder(unfinished)
            move(unfinished, path)
        finally:
            remove(unfinished)


def _owner(note: Path) -> str:
    try:
        who, _, since = note.read_text().strip().rpartition(" since ")
        return f"{who}, for {max(0, int(time.time()) - int(since))} s"
    except (OSError, ValueError):
        return "another process"
