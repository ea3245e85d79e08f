"""A cache of computed values by key: one SQLite file that several processes read and write at the same time.

::

    place   number ──▶ id                63 bits of a key, and the entry that has it: small, so that writing is fast
    entry   id ──▶ key, value, sum       key: hash of all that the value depends on; sum: 8 bytes, hash of key and value

A process that is killed leaves whole transactions. A value that was changed since it was written is treated as
missing. The file is not synced, since its values can be computed again; a power cut may damage it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import ByPath

from .errors import FormatError, NotBuiltError, OtherArtifactError, StoreError, WriteError

APPLICATION = int.from_bytes(b"mamr", "big")
_VERSION = 2  # version 1: text vectors in files without a number, parses in folders
_SCHEMA = (
    "CREATE TABLE place (number INTEGER PRIMARY KEY, id INTEGER)",
    "CREATE TABLE entry (id INTEGER PRIMARY KEY, key BLOB, value BLOB, sum BLOB)",
)
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""Errors of Python's ``sqlite3`` for a damaged file: the second if SQLite's message quotes bytes of it."""

_FIND = "SELECT entry.id, key, value, sum FROM place JOIN entry ON entry.id = place.id WHERE number IN ({})"
_AT_ONCE = 500  # fewer values than any build of SQLite allows in one query
_REMOVABLE = "a cache can be removed, its values are computed again"
_MAGIC = b"SQLite format 3\0"
_WAIT = 60.0  # seconds to wait for another process, which holds the file for milliseconds
_REFUSED = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


class Cache(ByPath):
    """A file of values by key.

    Args:
        path: the file; created with its folder when the first values are added.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Read the known values; a changed one is left out, with a warning, and a damaged file is a ``StoreError``."""
        if not self.path.exists():
            return {}
        with self._opened("rw") as file:
            known, changed = _read(file, keys) if self._check(file) else ({}, [])
        if changed:
            text = f"{self.path}: {len(changed)} values were changed since they were written; they are computed again"
            warnings.warn(MathAMRWarning(text), stacklevel=2)
        return known

    def add(self, values: Mapping[bytes, bytes]) -> None:
        """Add values: all of them, or none if it fails. A known key keeps its value."""
        if not values:
            return
        with self._opened("rwc") as file:
            file.execute("BEGIN IMMEDIATE")
            if not self._check(file):
                for table in _SCHEMA:
                    file.execute(table)
                file.execute(f"PRAGMA application_id = {APPLICATION}")
                file.execute(f"PRAGMA user_version = {_VERSION}")
            known, changed = _read(file, [*values])
            file.executemany("DELETE FROM entry WHERE id = ?", changed)
            first = 1 + (file.execute("SELECT max(id) FROM entry").fetchone()[0] or 0)
            new = [(i, key, values[key]) for i, key in enumerate((k for k in values if k not in known), first)]
            file.executemany("INSERT INTO entry VALUES (?, ?, ?, ?)", [(*row, _sum(*row[1:])) for row in new])
            file.executemany("INSERT OR REPLACE INTO place VALUES (?, ?)", [(_number(k), i) for i, k, _ in new])
            file.execute("COMMIT")

    def __bool__(self) -> bool:
        return True  # not by its length

    def __len__(self) -> int:
        if not self.path.exists():
            return 0
        with self._opened("rw") as file:
            return int(file.execute("SELECT count(*) FROM entry").fetchone()[0]) if self._check(file) else 0

    def faults(self, *, verbose: bool = False) -> Iterator[StoreError]:
        """Read the whole file and yield its faults; ``verbose`` shows a progress bar."""
        if not self.path.exists():
            yield NotBuiltError(self.path, "there is no cache here")
            return
        try:
            with self._opened("rw") as file:
                if not self._check(file):
                    return
                for (fault,) in file.execute("PRAGMA integrity_check"):
                    if fault != "ok":
                        yield self._damaged(f"its structure is wrong ({fault!s:.200})")
                (total,) = file.execute("SELECT COUNT(*) FROM entry").fetchone()
                # closed at once: an error holds this frame, and an open query would lock the file against writers
                with closing(file.execute("SELECT * FROM entry")) as entries:
                    shown = progress(entries, f"verifying {self.path.name}", "values", verbose=verbose, total=total)
                    for row, key, value, digest in shown:
                        if not _sound(key, value, digest) or key not in _read(file, [key])[0]:
                            yield self._damaged(f"its entry {row} was changed since it was written")
        except StoreError as error:
            yield error

    def verify(self) -> None:
        """Read the whole file, and raise its first fault."""
        for fault in self.faults():
            raise fault

    @contextmanager
    def _opened(self, mode: str) -> Iterator[sqlite3.Connection]:
        """Open the file for one use, since a connection must not be taken into another process or thread.

        Errors of SQLite and of the operating system become errors that name the file.
        """
        try:
            if mode == "rwc":
                self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_dir():
                raise OtherArtifactError(self.path, f"it is a folder, as caches of earlier releases were; {_REMOVABLE}")
            if mode == "rw" or self.path.exists():
                with self.path.open("rb") as content:  # SQLite treats any file of a few bytes as an empty database
                    start = content.read(len(_MAGIC))
                if start not in (b"", _MAGIC):
                    reason = f"it is not a cache, or its first bytes were changed; {_REMOVABLE}"
                    raise OtherArtifactError(self.path, reason)
            uri = f"{self.path.absolute().as_uri()}?mode={mode}"
            with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)) as file:
                file.execute("PRAGMA synchronous = OFF")
                yield file
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise WriteError(self.path, f"another process has held it for {_WAIT:.0f} s") from error
            if code in _REFUSED or (mode == "rwc" and code == sqlite3.SQLITE_IOERR):
                raise WriteError(self.path, f"it cannot be opened or written ({error})") from error
            raise self._damaged(f"it cannot be read ({error})") from error
        except UnicodeDecodeError as error:
            raise self._damaged(f"it cannot be read ({error})") from error
        except OSError as error:
            raise WriteError(self.path, f"it cannot be written ({error.strerror or error})") from error

    def _check(self, file: sqlite3.Connection) -> bool:
        """Whether the file is a cache; a new one is empty."""
        tables = [row[0] for row in file.execute("SELECT sql FROM sqlite_master")]
        application = file.execute("PRAGMA application_id").fetchone()[0]
        version = file.execute("PRAGMA user_version").fetchone()[0]
        if not tables and not application:
            return False
        if application != APPLICATION:
            raise OtherArtifactError(self.path, f"it is a database, but no cache of this release; {_REMOVABLE}")
        if version != _VERSION:
            raise FormatError(self.path, f"it has format {version}, this release reads {_VERSION}; {_REMOVABLE}")
        if tables != [*_SCHEMA]:
            raise self._damaged("it has other tables than a cache")
        return True

    def _damaged(self, what: str) -> StoreError:
        return StoreError(self.path, f"{what}. It is only a cache: remove it, and its values are computed again")


def _read(file: sqlite3.Connection, keys: Sequence[bytes]) -> tuple[dict[bytes, bytes], list[tuple[int]]]:
    """Read the intact values, and the rows of the changed ones."""
    known: dict[bytes, bytes] = {}
    changed = []
    asked = set(keys)
    for start in range(0, len(keys), _AT_ONCE):
        numbers = [_number(key) for key in keys[start : start + _AT_ONCE]]
        for row, key, value, digest in file.execute(_FIND.format(",".join("?" * len(numbers))), numbers):
            if not _sound(key, value, digest):
                changed.append((row,))
            elif key in asked:
                known[key] = value
    return known, changed


def _number(key: bytes) -> int:
    return int.from_bytes(key[:8], "big") >> 1


def _sum(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, key=key[:64], digest_size=8).digest()


def _sound(key: object, value: object, digest: object) -> bool:
    return isinstance(key, bytes) and isinstance(value, bytes) and _sum(key, value) == digest
