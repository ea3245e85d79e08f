"""Durable writes: every byte is synced before it is named, and a name changes in one step.

All writing of the room goes through these few functions, so that a test can make each of them fail in turn.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .errors import IndexWriteError

_CHUNK = 1 << 24


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a write into an error that names the index.

    Raises:
        IndexWriteError: the disk is full, read-only or gone.
    """
    try:
        yield
    except OSError as error:
        raise IndexWriteError(path, error.strerror or str(error)) from error


def write_array(path: Path, array: npt.NDArray[np.generic]) -> tuple[int, str]:
    """Write one array as ``.npy`` and sync it.

    Args:
        path: the file; it must not exist.
        array: any C-contiguous array without objects.

    Returns:
        The size in bytes and the SHA-256 of the file.
    """
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, np.lib.format.header_data_from_array_1_0(array))
    header = buffer.getvalue()
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    digest = hashlib.sha256(header)
    with open(path, "xb") as out:
        out.write(header)
        for start in range(0, len(data), _CHUNK):
            out.write(data[start : start + _CHUNK])
            digest.update(data[start : start + _CHUNK])
        out.flush()
        sync_file(out.fileno())
    return len(header) + len(data), digest.hexdigest()


def write_text(path: Path, text: str) -> None:
    """Put a whole text file in place in one step, synced with its folder."""
    unfinished = path.with_name(f".{path.name}.new")
    with open(unfinished, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        sync_file(out.fileno())
    move(unfinished, path)


def sync_file(descriptor: int) -> None:
    """Wait until the data of an open file is on the disk."""
    os.fsync(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move(source: Path, target: Path) -> None:
    """Rename a file or folder, in one step, and sync the folder that now names it."""
    os.replace(source, target)
    sync_folder(target.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder of ours with all it holds; one that is already gone is no error."""
    shutil.rmtree(path, ignore_errors=True)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as data:
        while piece := data.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()
