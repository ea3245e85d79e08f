"""One writer at a time: a lock beside the artifact, and a note that names its holder.

The lock is the operating system's (by ``filelock``), so a process that dies releases it. It is beside the folder and
not in it, since a packaged artifact includes every file of its folder.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyterrier_mathamr.store.errors import LockedError
from pyterrier_mathamr.store.files import move, remove, sync_folder, writing


@contextmanager
def writer_lock(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock the artifact at ``path``, or any other piece of work, for writing.

    Args:
        path: the artifact; its parent folder is created if necessary.
        wait: wait for another writer.

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
            file.unlink(
                missing_ok=True
            )  # while it is held: another process that has opened it meanwhile opens it again
        lock.release()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a folder of files that appears at ``path`` complete, or not at all.

    Args:
        path: does not exist yet.

    Yields:
        An empty folder beside it; the caller syncs each file in it.

    Raises:
        LockedError: another process is filling it. WriteError: it cannot be written.
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
