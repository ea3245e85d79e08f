"""The trees of a collection's official MathML by formula id, in one SQLite file.

Two tables; a tree that many formulas share is stored once, under a number made of its digest::

    formula   id ──────── slt, opt ─────── visual_id            one row for each formula
                              │
    tree      number ──────── body                              one row for each distinct tree
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from pyterrier_mathamr._common.paths import ByPath
from pyterrier_mathamr._common.types import FormulaId

from .errors import FormulaStoreError
from .store_build import build_store
from .store_format import FORMAT_VERSION, decode, number_of
from .tree import FormulaPair, FormulaTree

T = TypeVar("T")

_BATCH = 500  # values of one query; SQLite allows 999 in its older releases


class FormulaStore(ByPath):
    """The official trees of a collection, looked up by formula id.

    A store opens its file when it is first used and can be pickled: a worker process opens the file again.

    Args:
        path: a file that :meth:`build` made.

    Raises:
        FormulaStoreError: on first use: there is no such file, or it is no store that this release reads.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None

    @classmethod
    def build(
        cls,
        path: str | Path,
        slt_tables: Sequence[str | Path],
        opt_tables: Sequence[str | Path],
        *,
        verbose: bool = False,
        overwrite: bool = False,
    ) -> FormulaStore:
        """Build a store from official tables, in a stream of bounded memory.

        The store appears at ``path`` when it is whole and checked. A build that is broken off leaves its work beside it
        and goes on from there when it is called again with the same tables.

        Args:
            path: the file to make.
            slt_tables: tables of Presentation MathML, of the collection or of topics.
            opt_tables: tables of Content MathML.
            verbose: show progress.
            overwrite: replace a file that is there already.

        Raises:
            FormulaStoreError: there is a file already, and ``overwrite`` is not set.
            NotWritableError: nothing can be written there.
            FormulaTableError: a table cannot be read; names file and line.
        """
        build_store(Path(path), [*map(Path, slt_tables)], [*map(Path, opt_tables)], verbose, overwrite)
        return cls(path)

    def get_many(self, ids: Iterable[FormulaId]) -> dict[FormulaId, FormulaPair]:
        """Look up the trees of many formulas in a few queries.

        Args:
            ids: formula ids; one that the store does not have is left out of the answer.

        Returns:
            A pair of trees for each id, in the order asked; a tree is ``None`` where the table had none.
        """
        rows = {fid: (slt, opt) for fid, slt, opt, _ in self._rows(ids)}
        trees = self._trees({number for pair in rows.values() for number in pair if number is not None})
        return {fid: FormulaPair(trees.get(slt), trees.get(opt)) for fid, (slt, opt) in rows.items()}

    def visual_ids(self, ids: Iterable[FormulaId]) -> dict[FormulaId, str]:
        """Look up the visual ids of many formulas: formulas that look the same share one.

        Args:
            ids: formula ids; one that the store does not have, or without a visual id, is left out of the answer.
        """
        return {fid: visual for fid, _, _, visual in self._rows(ids) if visual}

    def __len__(self) -> int:
        """Count the formulas."""
        return int(self._open().execute("SELECT count(*) FROM formula").fetchone()[0])

    def __contains__(self, formula_id: object) -> bool:
        return isinstance(formula_id, str) and any(True for _ in self._rows([formula_id]))

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "_connection": None}

    def __enter__(self) -> FormulaStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; it is opened again when the store is used."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        """Open the file for reading and check that it is a store of this format."""
        if self._connection is None:
            if not self.path.is_file():
                raise FormulaStoreError(self.path, "no such formula store; make it with FormulaStore.build")
            # Threads may share the connection: SQLite serialises them, and nothing is written.
            connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
            try:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
            except sqlite3.DatabaseError as error:
                raise FormulaStoreError(self.path, f"not a formula store ({error})") from error
            if version != FORMAT_VERSION:
                message = f"store format {version}, but this release reads {FORMAT_VERSION}; build it again"
                raise FormulaStoreError(self.path, message)
            self._connection = connection
        return self._connection

    def _rows(self, ids: Iterable[FormulaId]) -> Iterator[tuple[FormulaId, int | None, int | None, str]]:
        """Look up formulas, each once, in the order asked."""
        for batch in _batches(dict.fromkeys(ids)):
            query = f"SELECT id, slt, opt, visual_id FROM formula WHERE id IN ({_marks(batch)})"
            found = {str(row[0]): row for row in self._open().execute(query, [number_of(fid) for fid in batch])}
            for fid in batch:
                if fid in found:
                    _, slt, opt, visual = found[fid]
                    yield fid, slt, opt, "" if visual is None else str(visual)

    def _trees(self, numbers: Iterable[int]) -> dict[int | None, FormulaTree]:
        """Look up trees by number."""
        trees: dict[int | None, FormulaTree] = {}
        for batch in _batches(sorted(numbers)):
            query = f"SELECT number, body FROM tree WHERE number IN ({_marks(batch)})"
            trees.update((number, decode(body)) for number, body in self._open().execute(query, batch))
        return trees


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Cut a stream into lists of bounded length."""
    stream = iter(items)
    while batch := list(islice(stream, _BATCH)):
        yield batch


def _marks(batch: Sequence[object]) -> str:
    """Give the place holders of a query with so many values."""
    return ",".join("?" * len(batch))
