"""The file of a formula store, open for reading: rows of formulas, and their trees."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula.tree import FormulaTree
from pyterrier_mathamr.store import UNREADABLE, DamagedError

from .format import SCHEMA, decode, number_of, text_of

T = TypeVar("T")

_BATCH = 500  # values of one query; SQLite allows 999 in its older releases
_LARGEST = 1 << 28  # bytes of a value that SQLite may read


class StoreFile:
    """A file that nobody changes.

    Args:
        path: the file.

    Raises:
        DamagedError: it cannot be read, or has other tables than those that this release makes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Threads may share the connection: SQLite serialises them, and nothing is written.
            uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
            tables = {row[0] for row in self._connection.execute("SELECT sql FROM sqlite_master")}
        except UNREADABLE as error:
            raise DamagedError(path, f"it cannot be read ({error})") from error
        if tables != set(SCHEMA):
            raise DamagedError(path, "it has other tables than a formula store")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def rows(self, ids: Iterable[FormulaId]) -> Iterator[tuple[FormulaId, int | None, int | None, str]]:
        """Look up formulas, each once, in the order asked: id, numbers of both trees, visual id.

        Raises:
            DamagedError: a row cannot be read.
        """
        for batch in _batches(dict.fromkeys(ids)):
            keys = {fid: number_of(fid) for fid in batch}
            query = "SELECT id, slt, opt, visual_id FROM formula WHERE id IN ({})"
            found = {row[0]: row[1:] for row in self._query(query, [*keys.values()])}
            for fid, key in keys.items():
                if key in found:
                    slt, opt, visual = found[key]
                    try:
                        yield fid, _number(slt), _number(opt), "" if visual is None else text_of(visual)
                    except ValueError as error:
                        raise self._damaged(fid) from error

    def trees(self, wanted: Mapping[int, FormulaId]) -> dict[int | None, FormulaTree]:
        """Look up trees by number.

        Args:
            wanted: a formula that has it, for each number.

        Raises:
            DamagedError: a tree is missing or not as it was written; names the formula.
        """
        trees: dict[int | None, FormulaTree] = {}
        for batch in _batches(sorted(wanted)):
            bodies = dict(self._query("SELECT number, body FROM tree WHERE number IN ({})", batch))
            for number in batch:
                try:
                    trees[number] = decode(bodies[number], number)
                except (KeyError, ValueError, TypeError) as error:
                    raise self._damaged(wanted[number]) from error
        return trees

    def _query(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        try:
            return list(self._connection.execute(query.format(",".join("?" * len(values))), values))
        except UNREADABLE as error:
            raise DamagedError(self.path, f"it cannot be read ({error})") from error

    def _damaged(self, formula: FormulaId) -> DamagedError:
        return DamagedError(self.path, f"what it holds of formula {formula!r:.80} is not as it was written")


def _number(value: object) -> int | None:
    if not isinstance(value, int | None):
        raise ValueError(value)
    return value


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Cut a stream into lists of bounded length."""
    stream = iter(items)
    while batch := list(islice(stream, _BATCH)):
        yield batch
