"""One writer at a time: a lock beside the index that says who holds it and since when.

The lock is the operating system's (``flock``), so that a process that dies gives it back by dying. It lies beside the
folder, not in it, since a packaged index carries every file of its folder.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .disk import writing
from .errors import IndexLockedError


def lock_path(path: Path) -> Path:
    """Where the lock of the index at ``path`` lies."""
    return path.with_name(f".{path.name}.lock")


@contextmanager
def writer_lock(path: Path) -> Iterator[None]:
    """Hold the index at ``path`` for writing.

    Raises:
        IndexLockedError: another process, or another writer of this one, holds it; names it and its age.
        IndexWriteError: the folder that should hold the index cannot be written.
    """
    file = lock_path(path)
    descriptor = _acquire(path, file)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()} since {time.time():.0f}\n".encode(), 0)
        yield
    finally:
        file.unlink(missing_ok=True)  # while it is held: who opened it meanwhile finds it gone and opens anew
        os.close(descriptor)


def _acquire(path: Path, file: Path) -> int:
    while True:
        with writing(path):
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _names(file, descriptor):
                return descriptor
            os.close(descriptor)  # its last holder removed it between our two calls
        except BlockingIOError as error:
            owner = _owner(os.pread(descriptor, 500, 0).decode(errors="replace").strip())
            os.close(descriptor)
            raise IndexLockedError(path, owner) from error


def _names(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False


def _owner(text: str) -> str:
    who, found, since = text.rpartition(" since ")
    if not found or not since.isdigit():
        return text or "another process"
    return f"{who}, for {max(0, int(time.time()) - int(since))} s"
