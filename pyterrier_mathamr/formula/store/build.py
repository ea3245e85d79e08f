"""Building a formula store: a stream of rows from tables to a file beside the store, in resumable steps."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.formula.errors import FormulaError, FormulaTableError
from pyterrier_mathamr.formula.opt.from_mathml import opt_from_mathml
from pyterrier_mathamr.formula.slt.from_mathml import slt_from_mathml
from pyterrier_mathamr.formula.tables import FormulaRow, count_rows, read_formula_table
from pyterrier_mathamr.formula.tree import FormulaTree
from pyterrier_mathamr.store import (
    UNREADABLE,
    Content,
    DamagedError,
    Mode,
    file_fingerprint,
    job_folder,
    open_job,
    sqlite_id,
    writing,
)

from .sqlite_file import FILE, KIND, SCHEMA, encode, tree_number

_STEP = 20_000  # rows of one transaction: what an interrupted build loses
_REMEMBERED = 50_000  # formulas whose tree is kept: half of a collection's formulas are ones like ``x``

Converter = Callable[[str], FormulaTree]

_INSERT = "INSERT OR IGNORE INTO tree (number, body) VALUES (?, ?)"
# The first row of an id wins; the other kind of table adds its tree to the same row.
_UPSERT = """
INSERT INTO formula (id, {column}, visual_id) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET {column} = coalesce({column}, excluded.{column}),
                               visual_id = coalesce(visual_id, excluded.visual_id)
"""


def build_store(path: Path, slt_tables: list[Path], opt_tables: list[Path], verbose: bool, mode: Mode) -> None:
    """Build :class:`FormulaStore` at ``path``; see :meth:`FormulaStore.build`."""
    tables = _interleave(slt_tables, opt_tables)
    made_from = {"tables": fingerprint(slt_tables, opt_tables)}
    with open_job(path, KIND, mode, made_from) as job:
        if not job.done.parts:  # else a build died while publishing it
            scratch = job.scratch(FILE)
            with writing(path):
                try:
                    count = _fill(scratch, tables, verbose)
                except sqlite3.OperationalError:  # it cannot be written
                    raise
                except UNREADABLE as error:  # it was changed since an earlier run wrote it
                    raise DamagedError(scratch, f"the unfinished store was changed ({error})") from error
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


def _fill(scratch: Path, tables: list[tuple[Path, str]], verbose: bool) -> int:
    """Add the rows that an earlier run has not added; return the number of formulas."""
    with closing(_take_up(scratch, len(tables))) as connection:
        for place, (table, column) in enumerate(tables):
            _add_table(connection, place, table, column, verbose)
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


def _add_table(connection: sqlite3.Connection, place: int, table: Path, column: str, verbose: bool) -> None:
    """Add the remaining rows of one table, a step at a time."""
    rows_done, done = connection.execute("SELECT rows, done FROM progress WHERE place = ?", (place,)).fetchone()
    if done:
        return
    convert = lru_cache(_REMEMBERED)(slt_from_mathml if column == "slt" else opt_from_mathml)
    total = count_rows(table) if verbose else None
    title = f"{column.upper()}, {table.name}"
    rows = iter(progress(read_formula_table(table), title, "formulas", verbose=verbose, total=total))
    for _ in islice(rows, rows_done):
        pass
    while step := list(islice(rows, _STEP)):
        rows_done += len(step)
        with connection:  # one transaction: the step's rows and the progress
            _add_step(connection, step, column, convert)
            connection.execute("UPDATE progress SET rows = ? WHERE place = ?", (rows_done, place))
    with connection:
        connection.execute("UPDATE progress SET done = 1 WHERE place = ?", (place,))


def _add_step(connection: sqlite3.Connection, step: list[FormulaRow], column: str, convert: Converter) -> None:
    """Add some rows: their trees, then the formulas that have them."""
    bodies: dict[int, bytes] = {}
    formulas: list[tuple[object, int | None, object]] = []
    for row, tree in _converted(step, convert):
        number = None
        if tree is not None:
            body = encode(tree)
            number = tree_number(body)
            bodies[number] = body
        formulas.append((sqlite_id(row.id), number, sqlite_id(row.visual_id) if row.visual_id else None))
    connection.executemany(_INSERT, sorted(bodies.items()))
    connection.executemany(_UPSERT.format(column=column), formulas)


def _converted(step: list[FormulaRow], convert: Converter) -> Iterator[tuple[FormulaRow, FormulaTree | None]]:
    """Convert the MathML of some rows; an empty cell (0.4% of the official ones) has no tree."""
    failed = 0
    for row in step:
        tree = None
        if row.formula.strip():
            try:
                tree = convert(row.formula)
            except FormulaError:
                failed += 1
        yield row, tree
    if failed:
        message = f"{failed} of {len(step)} formulas up to id {step[-1].id} have MathML without a tree; stored so"
        warnings.warn(message, MathAMRWarning, stacklevel=2)
