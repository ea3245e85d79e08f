"""The rows of tables in batches, and what a worker makes of a batch: trees with their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.feedback.progress import progress
from pyterrier_mathamr.formula.errors import FormulaError
from pyterrier_mathamr.store import SqliteId, sqlite_id

from .staging import NewTrees
from .tables import FormulaRow, count_rows, read_formula_table

BATCH = 500
"""Rows of a batch: about 50 ms of work and 1 MB of MathML."""

Formula = tuple[SqliteId, int | None, SqliteId | None]
"""Its id, the number of its tree and its visual id."""


class RestOfTable(NamedTuple):
    """A table that is not all in the store: its place among the tables, its column, how many of its rows are in."""

    place: int
    table: Path
    column: str
    rows_done: int


class Batch(NamedTuple):
    """Neighbouring rows of a table; none after the last ones."""

    place: int
    column: str
    rows: list[FormulaRow]


class Numbered(NamedTuple):
    """What becomes of a batch.

    Attributes:
        place: of its table.
        column: of its table.
        formulas: of its rows, in order.
        trees: those that the worker has not returned already, or has forgotten, by number.
        failed: how many have MathML without a tree.
    """

    place: int
    column: str
    formulas: list[Formula]
    trees: dict[int, bytes]
    failed: int


def batches(
    tables: Sequence[RestOfTable], size: int, verbose: bool, beside: Callable[[], str] | None = None
) -> Iterator[Batch]:
    """Read what is left of tables."""
    for place, table, column, rows_done in tables:
        total = count_rows(table) if verbose else None
        title = f"{column.upper()}, {table.name}"
        shown = progress(read_formula_table(table), title, "formulas", verbose=verbose, total=total, beside=beside)
        rows = islice(shown, rows_done, None)
        while batch := list(islice(rows, size)):
            yield Batch(place, column, batch)
        yield Batch(place, column, [])


@dataclass(frozen=True, eq=False)
class Numbering:
    """Work of a batch: its trees and their numbers.

    Attributes:
        trees: numbers the trees of a column.
    """

    trees: Mapping[str, NewTrees]

    def __call__(self, batch: Batch) -> Numbered:
        """Number the trees of some rows; an empty cell (0.4% of the official ones) has no tree."""
        trees, failed = self.trees[batch.column], 0
        formulas: list[Formula] = []
        for row in batch.rows:
            number = None
            if row.formula.strip():
                try:
                    number = trees.number(row.formula)
                except FormulaError:
                    failed += 1
            formulas.append((sqlite_id(row.id), number, sqlite_id(row.visual_id) if row.visual_id else None))
        return Numbered(batch.place, batch.column, formulas, trees.take(), failed)
