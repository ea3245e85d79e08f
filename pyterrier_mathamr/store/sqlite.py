"""Artifacts of one SQLite file: ids as its values, the file open for reading, the artifact, and how a job fills it.

::

    pt_meta.json            names the only part
    part-000000/
        threads.sqlite      never changed after it was named
    scratch-threads.sqlite  filled by a job in transactions; its table ``progress`` records how far the job came
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from .artifact import StoredArtifact
from .cache import UNREADABLE
from .errors import DamagedError, unreadable
from .job import job_folder
from .manifest import Snapshot

T = TypeVar("T")
SqliteId = int | str | bytes

_BATCH = 500  # values of one query; older releases of SQLite allow 999
_LARGEST = 1 << 28  # bytes of a value that SQLite may read


def sqlite_id(text: str) -> SqliteId:
    """Convert an id to its SQLite value: an integer where that loses nothing, half the bytes of text."""
    if text.isascii() and text.isdecimal() and (text[0] != "0" or text == "0") and len(text) < 19:
        return int(text)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which SQLite cannot store as text
        return text.encode("utf-8", "surrogatepass")
    return text


def id_text(value: object) -> str:
    """Convert the value back: the inverse of :func:`sqlite_id`."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else str(value)


def optional_number(value: object) -> int | None:
    """Return a number that SQLite may hold, or none; another type is a ``ValueError``."""
    if not isinstance(value, int | None):
        raise ValueError(value)
    return value


def in_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Cut a stream into lists of as many values as one query may have."""
    stream = iter(items)
    while batch := list(islice(stream, _BATCH)):
        yield batch


class SqliteFile:
    """An immutable file, open for reading; a ``DamagedError`` where its tables differ from :attr:`SCHEMA`."""

    SCHEMA: ClassVar[tuple[str, ...]]
    """The statements that made its tables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.open("rb").close()  # its errors say more than SQLite's
            # threads may share the connection: SQLite serializes them, and nothing is written
            uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
            tables = {row[0] for row in self._connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")}
        except OSError as error:
            raise unreadable(error, path) from error
        except UNREADABLE as error:
            raise DamagedError(path, f"it cannot be read ({error})") from error
        if tables != set(self.SCHEMA):
            raise DamagedError(path, "its tables differ from the expected ones")

    def close(self) -> None:
        self._connection.close()

    def query(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, whose ``{}`` becomes a mark for each value."""
        try:
            return list(self._connection.execute(query.format(",".join("?" * len(values))), values))
        except UNREADABLE as error:
            raise DamagedError(self.path, f"it cannot be read ({error})") from error


class SqliteArtifact(StoredArtifact):
    """An artifact of one SQLite file, opened on first use and closed by :meth:`close` or a ``with`` block."""

    FILE: ClassVar[type[SqliteFile]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; it is opened again on the next use."""
        if self._snapshot is not None:
            self._snapshot.caches["file"].close()
            self._snapshot = None

    def unfinished(self) -> int:
        """Count the rows that an interrupted job has read."""
        scratch = job_folder(self.path.absolute()) / f"scratch-{self.KIND.files[0]}"
        if (rows := super().unfinished()) or not scratch.exists():
            return rows
        with suppress(*UNREADABLE), closing(sqlite3.connect(scratch)) as connection:
            return int(connection.execute("SELECT sum(rows) FROM progress").fetchone()[0] or 0)
        return 0

    def open_snapshot(self) -> Snapshot:
        """Open the artifact with its file; if it is replaced meanwhile, the new one."""
        while True:
            snapshot = self.opened()
            if len(snapshot.parts) != 1:
                raise DamagedError(self.path, "it has another number of parts than one")
            try:
                snapshot.caches["file"] = self.FILE(snapshot.parts[0].path / self.KIND.files[0])
            except DamagedError:
                if self.opened().manifest == snapshot.manifest:
                    raise
            else:
                return snapshot

    def opened(self) -> Snapshot:
        """Open the manifest and its part, without the file."""
        return super().open_snapshot()


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Raise ``DamagedError`` where SQLite finds that an unfinished file was changed since an earlier run wrote it."""
    try:
        yield
    except sqlite3.OperationalError:  # it cannot be written
        raise
    except UNREADABLE as error:
        raise DamagedError(path, f"the unfinished store was changed ({error})") from error


def take_up(scratch: Path, schema: Sequence[str], progress: Iterable[Sequence[object]]) -> sqlite3.Connection:
    """Open the unfinished file of a job, or create it with tables and the first rows of the table ``progress``."""
    connection = sqlite3.connect(scratch)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -65536")  # 64 MiB, whatever the size of the file
    with connection:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.execute("BEGIN")
            for table in schema:
                connection.execute(table)
            for row in progress:
                connection.execute(f"INSERT INTO progress VALUES ({','.join('?' * len(row))})", row)
    return connection


def check_integrity(connection: sqlite3.Connection) -> None:
    """Check a whole file before it is published, and raise ``sqlite3.DatabaseError`` where it is damaged."""
    if (fault := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(fault)
