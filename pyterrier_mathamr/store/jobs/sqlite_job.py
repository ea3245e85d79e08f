"""The SQLite file that a job fills: beside the artifact, in transactions, and continued by the call after a kill.

::

    scratch-threads.sqlite    the tables of the file, among them ``progress``, whose ``rows`` say how far the job came
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pyterrier_mathamr.store.cache import UNREADABLE
from pyterrier_mathamr.store.errors import DamagedError

from .unfinished import job_folder


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Turn what SQLite says of an unfinished file that was changed into an error that names it.

    Raises:
        DamagedError: it was changed since an earlier run wrote it.
    """
    try:
        yield
    except sqlite3.OperationalError:  # it cannot be written
        raise
    except UNREADABLE as error:
        raise DamagedError(path, f"the unfinished store was changed ({error})") from error


def take_up(scratch: Path, schema: Sequence[str], progress: Iterable[Sequence[object]]) -> sqlite3.Connection:
    """Open an unfinished file, or create it.

    Args:
        scratch: the file.
        schema: the statements that make its tables.
        progress: the rows with which the table ``progress`` begins.
    """
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
    """Check the whole file, before it is published.

    Raises:
        sqlite3.DatabaseError: it is damaged.
    """
    if (found := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(found)


def rows_so_far(path: Path, file: str) -> int:
    """Count the rows that an interrupted job of an artifact has put into its unfinished file."""
    scratch = job_folder(path.absolute()) / f"scratch-{file}"
    if not scratch.exists():
        return 0
    with suppress(*UNREADABLE), closing(sqlite3.connect(scratch)) as connection:
        return int(connection.execute("SELECT sum(rows) FROM progress").fetchone()[0] or 0)
    return 0
