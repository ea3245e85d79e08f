"""Durable files: a file is synced before it gets its name, and a name changes in one step.

All writing of artifacts goes through these few functions, so that a test can make each of them fail.

All arrays of a part are in one file of the safetensors format: one memory map and one open file::

    8 bytes: length of the header │ header: JSON {name: {dtype, shape, data_offsets}} │ array │ array │ …

Scratch arrays for a part are in files without a name: the system may write them out, and they leave nothing behind.
One writer at a time holds a lock next to the artifact (the operating system's, by ``filelock``, so a process that
dies releases it) and leaves a note that names it. The lock is not in the folder, since a packaged artifact
includes every file of its folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import DamagedError, WriteError

Array = npt.NDArray[Any]

_CHUNK = 1 << 24
_MOST_HEADER = 1 << 20
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
}  # fmt: skip
_CODES = {np.dtype(dtype): code for code, dtype in _DTYPES.items()}


class FileSum(NamedTuple):
    size: int
    sha256: str


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into a ``WriteError`` that names the artifact at ``path``."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        raise WriteError(path, f"it cannot be written ({getattr(error, 'strerror', '') or error})") from error


def write_file(path: Path, pieces: Iterable[bytes | memoryview]) -> FileSum:
    """Write a file that does not exist yet, and sync it."""
    digest, size = hashlib.sha256(), 0
    with open(path, "xb") as out:
        for piece in pieces:
            for start in range(0, len(piece), _CHUNK):
                chunk = piece[start : start + _CHUNK]
                out.write(chunk)
                digest.update(chunk)
            size += len(piece)
        out.flush()
        sync_file(out.fileno())
    return FileSum(size, digest.hexdigest())


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> FileSum:
    """Write ``arrays`` of numbers by name to a new safetensors file at ``path``, and sync it."""
    ordered = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)  # so that each array is aligned
    header: dict[str, Any] = {}
    start = 0
    for name in ordered:
        array = arrays[name]
        offsets = [start, start + array.nbytes]
        code = _CODES[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": offsets}
        start += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 64)
    little = (np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<")) for name in ordered)
    data = (array.reshape(-1).view(np.uint8).data for array in little if array.size)
    return write_file(path, (len(text).to_bytes(8, "little"), text, *data))


def map_arrays(path: Path) -> dict[str, Array]:
    """Map the arrays of the safetensors file at ``path`` into memory, copy-on-write; a wrong one is damaged."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MOST_HEADER:
            raise DamagedError(path, "its header has an impossible length")
        header = parse_object(file.read(length), path)
    data = np.memmap(path, dtype=np.uint8, mode="c")[8 + length :]
    try:
        return {name: _array(data, **entry) for name, entry in header.items()}
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise DamagedError(path, f"its header is wrong ({error!s:.200})") from error


def _array(data: Array, dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    start, end = data_offsets
    kind = np.dtype(_DTYPES[dtype])
    size = kind.itemsize
    for extent in shape:
        size *= check_number(extent)
    if not 0 <= start <= end <= len(data) or end - start != size:
        raise ValueError(f"an array of shape {shape} at {start}:{end} of {len(data)} bytes")
    return np.ndarray(tuple(shape), kind, buffer=data.data, offset=start) if size else np.zeros(shape, kind)


def parse_object(data: bytes, path: Path) -> dict[str, Any]:
    """Read one JSON object from arbitrary bytes, ``data`` of the file at ``path``; ``DamagedError`` for all else.

    So are a NaN, deep nesting, and a number of a thousand digits.
    """

    def refuse(constant: str) -> float:
        raise ValueError(f"the number {constant}")

    try:
        content = json.loads(data, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise DamagedError(path, f"it is not JSON ({error!s:.200})") from error
    if not isinstance(content, dict):
        raise DamagedError(path, "it is not a JSON object")
    return content


def check_number(value: object) -> int:
    """Return a count or an offset from a file, an integer from 0 to 2^53."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1 << 53:
        raise ValueError(f"{value!r:.80} is not a count")
    return value


def swap_file(path: Path, data: bytes) -> None:
    """Write a file of an artifact in one step, synced with its folder."""
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.unlink(missing_ok=True)  # of a process that was killed here
    write_file(unfinished, (data,))
    move(unfinished, path)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write the user's file at ``path`` next to its place, and move it there in one step when it is complete.

    On any error, such as a ``WriteError``, the old file is unchanged.
    """
    unfinished = path.with_name(f".{path.name}.new")
    try:
        with writing(path):
            with open(unfinished, "wb") as out:
                yield out
            with open(unfinished, "rb+") as written:
                sync_file(written.fileno())
            move(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def replace_file(path: Path, data: bytes) -> None:
    """Write ``data`` to the user's file at ``path`` in one step; see :func:`replacing`."""
    with replacing(path) as out:
        out.write(data)


def sync_file(descriptor: int) -> None:
    """Wait until the data of an open file is on the disk."""
    os.fsync(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name == "nt":  # Windows opens no folders, and keeps names in its own journal
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync all files in a folder and the names that lead to them, as other code wrote them."""
    for inner, _, names in os.walk(folder):
        for name in names:
            with open(Path(inner) / name, "rb+") as file:
                sync_file(file.fileno())
        sync_folder(Path(inner))


def move(source: Path, target: Path) -> None:
    """Rename the file or folder ``source`` to ``target``, in one step, and sync the folder that now names it."""
    os.replace(source, target)
    sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a file or folder of ours, unless it is gone or Windows still has it open."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(PermissionError):
            path.unlink(missing_ok=True)


def settled(path: Path) -> FileSum:
    """Sync a file that another library wrote."""
    with open(path, "rb+") as file:
        sync_file(file.fileno())
    return file_sum(path)


def file_sum(path: Path, read: Callable[[int], object] | None = None) -> FileSum:
    """Return size and SHA-256 of the file at ``path``, read in pieces; ``read`` is called with the size of each."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as data:
        while piece := data.read(_CHUNK):
            digest.update(piece)
            size += len(piece)
            if read is not None:
                read(len(piece))
    return FileSum(size, digest.hexdigest())


def scratch_array(folder: Path | None, count: int, dtype: np.dtype[Any]) -> Array:
    """Make an array of zeros in a file without a name, which the system may write out and which ends with the array.

    Args:
        folder: on the disk of this folder, or of other temporary files if it is read-only; ``None`` for memory.
        count: length of the array.
        dtype: of its numbers.
    """
    if folder is None or not count:
        return np.zeros(count, dtype)
    with _nameless(folder) as file:
        size, zeros = count * dtype.itemsize, bytes(_CHUNK)
        for start in range(0, size, _CHUNK):  # a file with holes would end the process where the disk is full
            file.write(zeros[: size - start])
        file.flush()
        return np.memmap(file, dtype, "r+", shape=(count,))


class Appended:
    """An array of a ``dtype`` that grows at its end, in a file as :func:`scratch_array` makes it in ``folder``."""

    def __init__(self, folder: Path | None, dtype: np.dtype[Any]) -> None:
        self._dtype, self._count = dtype, 0
        self._pieces: list[Array] = []
        self._file = None if folder is None else _nameless(folder)

    def append(self, values: Array) -> None:
        """Add numbers at the end."""
        values = np.ascontiguousarray(values, self._dtype)
        self._count += len(values)
        if self._file is None:
            self._pieces.append(values)
        else:
            self._file.write(values.data)

    def array(self) -> Array:
        """Return all numbers; nothing is appended from then on."""
        if self._file is None:
            return np.concatenate([np.zeros(0, self._dtype), *self._pieces])
        with self._file as file:
            file.flush()
            return np.memmap(file, self._dtype, "r+", shape=(self._count,)) if self._count else np.zeros(0, self._dtype)


def _nameless(folder: Path) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder if os.access(folder, os.W_OK) else None)


@contextmanager
def writer_lock(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock an artifact, or any other piece of work with a path, for writing.

    Args:
        path: the artifact; its parent folder is created if necessary.
        wait: wait for another writer; otherwise a ``WriteError`` names the process that holds the lock.
    """
    from filelock import FileLock, Timeout

    file, note = (path.with_name(f".{path.name}.{ending}") for ending in ("lock", "writer"))
    lock = FileLock(file, timeout=-1 if wait else 0)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            owner = "another process"
            with suppress(OSError, ValueError):
                who, _, since = note.read_text().strip().rpartition(" since ")
                owner = f"{who}, for {max(0, int(time.time()) - int(since))} s"
            advice = "Wait until it is done, or stop it; readers are not affected"
            raise WriteError(path, f"it is being written by {owner}. {advice}") from error
    try:
        with writing(path):
            note.write_text(f"process {os.getpid()} on {socket.gethostname()} since {time.time():.0f}\n")
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open, and leaves it empty
            note.unlink(missing_ok=True)
            file.unlink(missing_ok=True)  # while it is held: a process that has opened it meanwhile opens it again
        lock.release()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a folder of files that appears at ``path`` complete, or not at all.

    Args:
        path: does not exist yet; an empty folder next to it is yielded.

    Raises:
        WriteError: another process is filling it, or it cannot be written.
    """
    path = path.absolute()
    unfinished = path.with_name(f".{path.name}.new")
    with writer_lock(path), writing(path):
        remove(unfinished)  # of a process that was killed here
        try:
            unfinished.mkdir()
            yield unfinished
            sync_tree(unfinished)
            move(unfinished, path)
        finally:
            remove(unfinished)
