"""The random-access store of documents behind ``docs_store()``: one SQLite file, built when first used.

::

    doc   number ── id ── record      one row for each document, numbered in the order of the release
                          └ zlib(JSON list of the fields)

Each batch of rows is committed separately, and the last step marks the file as complete. An interrupted build continues
after its last batch when the store is used again; an incomplete store is never read.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ir_datasets
from ir_datasets.indices.base import Docstore

from pyterrier_mathamr._common.records import decompressed, parse_json
from pyterrier_mathamr.arqmath.errors import ARQMathError

BATCH = 5000
"""Documents of one commit."""

_WHOLE = 1  # the file's user_version when it is complete
_ASKED_AT_ONCE = 900  # SQLite's smallest limit of parameters is 999

_SCHEMA = "CREATE TABLE IF NOT EXISTS doc (number INTEGER PRIMARY KEY, id TEXT NOT NULL, record BLOB NOT NULL)"


class DocumentStore(Docstore):  # type: ignore[misc]
    """Looks documents up by id or position."""

    def __init__(
        self,
        path: Path,
        read: Callable[[], Iterable[Any]],
        record: type[Any],
        count_hint: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(record, "doc_id")
        self.path, self._read, self._record, self._count_hint = path, read, record, count_hint
        self._connections: dict[tuple[int, int], sqlite3.Connection] = {}

    def built(self) -> bool:
        """Return whether the store is complete."""
        if _here() in self._connections:
            return True
        if not self.path.is_file():
            return False
        with self._open() as connection:
            return bool(connection.execute("PRAGMA user_version").fetchone()[0] == _WHOLE)

    def build(self) -> None:
        """Fill the store, or the rest of it after an interrupted build; a complete one is left unchanged."""
        if self.built():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as connection:
            connection.execute(_SCHEMA)
            done = _count(connection)
            total = self._count_hint() if self._count_hint else None
            documents = ir_datasets.log.easy().pbar(self._read(), self.path.stem, unit="doc", total=total)
            rows = enumerate(itertools.islice(documents, done, None), done)
            packed = ((number, doc.doc_id, _pack(doc)) for number, doc in rows)
            while batch := list(itertools.islice(packed, BATCH)):
                with connection:  # concurrent builds write the same rows
                    connection.executemany("INSERT OR IGNORE INTO doc VALUES (?, ?, ?)", batch)
            with connection:
                connection.execute("CREATE UNIQUE INDEX IF NOT EXISTS doc_by_id ON doc (id)")
                connection.execute(f"PRAGMA user_version = {_WHOLE}")

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[Any]:
        """Read the documents of some ids; unknown ids are skipped."""
        wanted = iter(dict.fromkeys(doc_ids))
        while some := list(itertools.islice(wanted, _ASKED_AT_ONCE)):
            marks = ",".join("?" * len(some))
            yield from self._select(f"SELECT record FROM doc WHERE id IN ({marks}) ORDER BY number", some)

    def read_places(self, places: range) -> Iterator[Any]:
        """Read the documents at some positions, in that order."""
        if not places:
            return
        order = "DESC" if places.step < 0 else "ASC"
        query = f"SELECT record FROM doc WHERE number BETWEEN ? AND ? AND (number - ?) % ? = 0 ORDER BY number {order}"
        limits = (min(places[0], places[-1]), max(places[0], places[-1]), places[0], abs(places.step))
        yield from self._select(query, limits)

    def __iter__(self) -> StoredDocuments:
        return StoredDocuments(self, range(self.count()))

    def count(self) -> int:
        """Count the documents."""
        return _count(self._reading())

    def clear_cache(self) -> None:
        """Delete the file; it is built again when needed."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        connection = self._connections.pop(_here(), None)
        if connection is not None:
            connection.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connections": {}}

    def _select(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        try:
            for (record,) in self._reading().execute(query, values):
                yield self._record(*parse_json(decompressed(record)))
        except (sqlite3.Error, zlib.error, ValueError, TypeError) as error:
            raise self._broken(error) from error

    def _reading(self) -> sqlite3.Connection:
        """Return this thread's connection to the complete store; it is kept, as opening costs more than a look-up."""
        if _here() not in self._connections:
            self.build()
            self._connections[_here()] = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
        return self._connections[_here()]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file to read its state or to fill it."""
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=600)) as connection:
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter if the message quotes damaged bytes
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> ARQMathError:
        advice = "Free some disk space or delete this file; it is built again when needed"
        return ARQMathError(f"{self.path}: {error}. {advice}")


class StoredDocuments:
    """The documents of a store in order, sliced like a list, or by fractions such as ``[:1/3]`` as in ir_datasets."""

    def __init__(self, store: DocumentStore, places: range) -> None:
        self._store, self._places = store, places
        self._documents: Iterator[Any] | None = None

    def __iter__(self) -> StoredDocuments:
        return self

    def __next__(self) -> Any:
        if self._documents is None:
            self._documents = self._store.read_places(self._places)
        return next(self._documents)

    def __getitem__(self, key: slice | int) -> Any:
        if isinstance(key, slice):
            start, stop = (int(x * len(self._places)) if isinstance(x, float) else x for x in (key.start, key.stop))
            return StoredDocuments(self._store, self._places[start : stop : key.step])
        place = self._places[key]
        return next(self._store.read_places(range(place, place + 1)))


def _here() -> tuple[int, int]:
    """Return process and thread; connections cannot be shared between either."""
    return os.getpid(), threading.get_ident()


def _pack(document: Any) -> bytes:
    return zlib.compress(json.dumps(list(document), ensure_ascii=False).encode("utf-8", "surrogatepass"), 1)


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(number) + 1, 0) FROM doc").fetchone()[0])
