"""The trees of an unfinished store: beside it in the order in which they come, and at the end into it in theirs.

A tree's number is a digest, so the next tree belongs anywhere in the table of trees. Inserted at once, each would have
a page of that table written again, the more pages the longer the table. So a build appends them to the tables of a
second file, each for a range of numbers, and when all have come it sorts one range after the other in bounded memory::

    rows ──NewTrees──▶ tree_0 … tree_63, appended ──move_trees──▶ tree, appended in ascending order, each once

The trees of a step are on the disk before its rows are. A build that is killed in between appends them again, which
does no harm. Trees move a range in one transaction, so the largest number that has arrived says where to continue.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

from pyterrier_mathamr._common.feedback.progress import progress
from pyterrier_mathamr.formula.tree import FormulaTree
from pyterrier_mathamr.store import DamagedError, unchanged

from .sqlite_file import NUMBER_BITS, encode, tree_number

_RANGES = 64  # of the collection's 20 million trees some 40 MB each, which are sorted in memory
_SHIFT = NUMBER_BITS - (_RANGES.bit_length() - 1)
_REMEMBERED = 200_000  # texts whose tree's number is kept, 200 bytes each: half of all formulas are ones like ``x``

Converter = Callable[[str], FormulaTree]


class Staging:
    """The second file of an unfinished store."""

    def __init__(self, path: Path, *, new: bool) -> None:
        self.path = path
        if new:
            for stale in (path.with_name(f"{path.name}-journal"), path):
                stale.unlink(missing_ok=True)
        elif not path.exists():
            raise DamagedError(path, "the trees of the unfinished store are gone")
        self._connection = sqlite3.connect(path)
        try:
            with unchanged(path):
                self._begin(new)
        except BaseException:
            self.close()
            raise

    def _begin(self, new: bool) -> None:
        self._connection.execute("PRAGMA synchronous = NORMAL")
        with self._connection as connection:
            if new:
                connection.execute("BEGIN")
                for number in range(_RANGES):
                    connection.execute(f"CREATE TABLE tree_{number} (number INTEGER NOT NULL, body BLOB NOT NULL)")
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (_RANGES,):
                raise sqlite3.DatabaseError("other tables")

    def add(self, bodies: dict[int, bytes]) -> None:
        """Append trees, durably."""
        ranges: dict[int, list[tuple[int, bytes]]] = {}
        for number in sorted(bodies):
            ranges.setdefault(number >> _SHIFT, []).append((number, bodies[number]))
        with unchanged(self.path), self._connection as connection:
            for which, rows in ranges.items():
                connection.executemany(f"INSERT INTO tree_{which} VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class NewTrees:
    """Numbers the trees of one kind, and collects those that may not be staged yet."""

    def __init__(self, convert: Converter) -> None:
        self._convert = convert
        self._bodies: dict[int, bytes] = {}
        self._recent: dict[bytes, int] = {}
        self._before: dict[bytes, int] = {}

    def number(self, mathml: str) -> int:
        """Return the number of a tree."""
        key = hashlib.blake2b(mathml.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        number = self._recent.get(key)
        if number is None:
            number = self._before.get(key)
            if number is None:
                body = encode(self._convert(mathml))
                number = tree_number(body)
                self._bodies[number] = body
            if len(self._recent) >= _REMEMBERED // 2:  # forget what was not asked for since the last time
                self._recent, self._before = {}, self._recent
            self._recent[key] = number
        return number

    def take(self) -> dict[int, bytes]:
        """Return what was collected, by number, and begin anew."""
        taken, self._bodies = self._bodies, {}
        return taken


def move_trees(connection: sqlite3.Connection, staged: Path, verbose: bool) -> None:
    """Insert all staged trees into a store, those that an earlier run has not inserted."""
    connection.execute("ATTACH ? AS staged", (str(staged),))
    with unchanged(staged):
        if (found := connection.execute("PRAGMA staged.quick_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(found)
    last = connection.execute("SELECT max(number) FROM tree").fetchone()[0]
    ranges = range(0 if last is None else (last >> _SHIFT) + 1, _RANGES)
    for which in progress(ranges, "sorting trees", "parts", verbose=verbose):
        with connection:
            rows = f"SELECT number, body FROM staged.tree_{which} ORDER BY number"
            connection.execute(f"INSERT OR IGNORE INTO tree (number, body) {rows}")
