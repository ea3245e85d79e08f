"""Building a formula store: a stream of rows from tables to a file beside the store, in resumable steps."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.formula.errors import FormulaError, FormulaTableError
from pyterrier_mathamr.formula.opt.from_mathml import opt_from_mathml
from pyterrier_mathamr.formula.slt.from_mathml import slt_from_mathml
from pyterrier_mathamr.formula.tables import FormulaRow, count_rows, read_formula_table
from pyterrier_mathamr.store import (
    UNREADABLE,
    Content,
    Mode,
    file_fingerprint,
    job_folder,
    open_job,
    sqlite_id,
    unchanged,
    writing,
)

from .sqlite_file import FILE, KIND, SCHEMA
from .staging import NewTrees, Staging, move_trees

_STEP = 20_000  # rows of one transaction: what an interrupted build loses
_TREES = "trees.sqlite"
_LAYOUT = {"layout": "staged trees"}  # of unfinished work: that of a release with another one is never continued

# The first row of an id wins; the other kind of table adds its tree to the same row.
_UPSERT = """
INSERT INTO formula (id, {column}, visual_id) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET {column} = coalesce({column}, excluded.{column}),
                               visual_id = coalesce(visual_id, excluded.visual_id)
"""


class _Target(NamedTuple):
    """Where the rows of a table go: the unfinished store, its staged trees, those to stage next, the column."""

    connection: sqlite3.Connection
    staging: Staging
    new: NewTrees
    column: str


def build_store(path: Path, slt_tables: list[Path], opt_tables: list[Path], verbose: bool, mode: Mode) -> None:
    """Build :class:`FormulaStore` at ``path``; see :meth:`FormulaStore.build`."""
    tables = _interleave(slt_tables, opt_tables)
    made_from = {"tables": fingerprint(slt_tables, opt_tables)}
    with open_job(path, KIND, mode, made_from | _LAYOUT) as job:
        if not job.done.parts:  # else a build died while publishing it
            scratch = job.scratch(FILE)
            with writing(path), unchanged(scratch):
                count = _fill(scratch, job.scratch(_TREES), tables, verbose)
            job.add(Content(files={FILE: scratch}, count=count))
        job.commit(made_from, whole=False)


def fingerprint(slt_tables: Sequence[Path], opt_tables: Sequence[Path]) -> list[list[object]]:
    """Identify the tables of a store: column, name and content of each, in the order they are read.

    Raises:
        FormulaTableError: a table cannot be read.
    """
    found: list[list[object]] = []
    for table, column in _interleave(slt_tables, opt_tables):
        try:
            found.append([column, table.name, *file_fingerprint(table)])
        except OSError as error:
            raise FormulaTableError(table, 1, str(error)) from error
    return found


def rows_done(path: Path) -> int:
    """Count the rows of tables that an unfinished store holds."""
    scratch = job_folder(path.absolute()) / f"scratch-{FILE}"
    if not scratch.exists():
        return 0
    with suppress(*UNREADABLE), closing(sqlite3.connect(scratch)) as connection:
        return int(connection.execute("SELECT sum(rows) FROM progress").fetchone()[0] or 0)
    return 0


def _fill(scratch: Path, trees: Path, tables: list[tuple[Path, str]], verbose: bool) -> int:
    """Add what an earlier run has not added, rows and then trees; return the number of formulas."""
    new = {"slt": NewTrees(slt_from_mathml), "opt": NewTrees(opt_from_mathml)}
    with (
        closing(Staging(trees, new=not scratch.exists())) as staging,
        closing(_take_up(scratch, len(tables))) as connection,
    ):
        for place, (table, column) in enumerate(tables):
            _add_table(_Target(connection, staging, new[column], column), place, table, verbose)
        move_trees(connection, trees, verbose)
        if (found := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(found)
        return int(connection.execute("SELECT count(*) FROM formula").fetchone()[0])


def _interleave(slt_tables: Sequence[Path], opt_tables: Sequence[Path]) -> list[tuple[Path, str]]:
    """Alternate SLT and OPT tables, so that the rows of one formula are close together in the file."""
    ordered: list[tuple[Path, str]] = []
    for i in range(max(len(slt_tables), len(opt_tables))):
        ordered += [(table, "slt") for table in slt_tables[i : i + 1]]
        ordered += [(table, "opt") for table in opt_tables[i : i + 1]]
    return ordered


def _take_up(scratch: Path, tables: int) -> sqlite3.Connection:
    """Open the unfinished store, or create one."""
    connection = sqlite3.connect(scratch)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -65536")  # 64 MiB, whatever the size of the store
    with connection:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.execute("BEGIN")
            for table in SCHEMA:
                connection.execute(table)
            connection.executemany("INSERT INTO progress VALUES (?, 0, 0)", [(place,) for place in range(tables)])
    return connection


def _add_table(target: _Target, place: int, table: Path, verbose: bool) -> None:
    """Add the remaining rows of one table, a step at a time."""
    connection, column = target.connection, target.column
    rows_done, done = connection.execute("SELECT rows, done FROM progress WHERE place = ?", (place,)).fetchone()
    if done:
        return
    total = count_rows(table) if verbose else None
    title = f"{column.upper()}, {table.name}"
    rows = iter(progress(read_formula_table(table), title, "formulas", verbose=verbose, total=total))
    for _ in islice(rows, rows_done):
        pass
    while not done:
        with connection:  # one transaction: the step's rows and the progress
            added = _add_step(target, islice(rows, _STEP))
            rows_done, done = rows_done + added, not added
            connection.execute("UPDATE progress SET rows = ?, done = ? WHERE place = ?", (rows_done, done, place))


def _add_step(target: _Target, step: Iterable[FormulaRow]) -> int:
    """Add some rows: their new trees, durably, then the formulas that have them. Return how many."""
    formulas = [
        (sqlite_id(row.id), number, sqlite_id(row.visual_id) if row.visual_id else None)
        for row, number in _numbered(step, target.new)
    ]
    target.staging.add(target.new.take())
    target.connection.executemany(_UPSERT.format(column=target.column), formulas)
    return len(formulas)


def _numbered(step: Iterable[FormulaRow], trees: NewTrees) -> Iterator[tuple[FormulaRow, int | None]]:
    """Number the trees of some rows; an empty cell (0.4% of the official ones) has no tree."""
    failed = count = 0
    for row in step:
        number, count = None, count + 1
        if row.formula.strip():
            try:
                number = trees.number(row.formula)
            except FormulaError:
                failed += 1
        yield row, number
    if failed:
        message = f"{failed} of {count} formulas up to id {row.id} have MathML without a tree; stored so"
        warnings.warn(message, MathAMRWarning, stacklevel=2)
