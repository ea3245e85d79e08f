"""Building a formula store: a stream from tables to a file beside the final one, in steps that resume."""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from pyterrier_mathamr._common.artifacts import check_writable
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.progress import progress

from .errors import FormulaError, FormulaStoreError
from .opt import opt_from_mathml
from .slt import slt_from_mathml
from .store_format import FORMAT_VERSION, SCHEMA, encode, number_of, tree_number
from .tables import FormulaRow, read_formula_table
from .tree import FormulaTree

_STEP = 20_000  # rows of one transaction: what is lost when a build is broken off
_REMEMBERED = 50_000  # formulas whose tree is not converted again

Converter = Callable[[str], FormulaTree]

_INSERT = "INSERT OR IGNORE INTO tree (number, body) VALUES (?, ?)"
# The first row of an id wins; the second table of a pair adds its tree to the row that the first one made.
_UPSERT = """
INSERT INTO formula (id, {column}, visual_id) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET {column} = coalesce({column}, excluded.{column}),
                               visual_id = coalesce(visual_id, excluded.visual_id)
"""


def build_store(path: Path, slt_tables: list[Path], opt_tables: list[Path], verbose: bool, overwrite: bool) -> None:
    """Build :class:`FormulaStore` at ``path``; see :meth:`FormulaStore.build`."""
    if path.exists() and not overwrite:
        raise FormulaStoreError(path, "there is a file already; pass overwrite=True to replace it")
    check_writable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    tables = _interleave(slt_tables, opt_tables)
    with closing(_take_up(part, [table for table, _ in tables])) as connection:
        for place, (table, column) in enumerate(tables):
            _add_table(connection, place, table, column, verbose)
        _finish(connection, part)
    os.replace(part, path)


def _interleave(slt_tables: list[Path], opt_tables: list[Path]) -> list[tuple[Path, str]]:
    """Order tables so that both tables of the same formulas follow each other: their rows are then near in the file."""
    pairs: list[tuple[Path, str]] = []
    for i in range(max(len(slt_tables), len(opt_tables))):
        pairs += [(table, "slt") for table in slt_tables[i : i + 1]]
        pairs += [(table, "opt") for table in opt_tables[i : i + 1]]
    return pairs


def _take_up(part: Path, tables: list[Path]) -> sqlite3.Connection:
    """Open the unfinished store of the same tables, or begin one."""
    wanted = [(place, table.name, table.stat().st_size) for place, table in enumerate(tables)]
    try:
        connection = _connect(part)
        if connection.execute("SELECT place, name, bytes FROM progress ORDER BY place").fetchall() == wanted:
            return connection
        connection.close()
    except sqlite3.DatabaseError:
        connection.close()
    part.unlink(missing_ok=True)
    connection = _connect(part)
    connection.executescript(SCHEMA)
    with connection:
        connection.executemany("INSERT INTO progress VALUES (?, ?, ?, 0, 0)", wanted)
    return connection


def _connect(part: Path) -> sqlite3.Connection:
    """Open a file for building."""
    connection = sqlite3.connect(part)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -65536")  # 64 MiB, whatever the size of the store
    return connection


def _add_table(connection: sqlite3.Connection, place: int, table: Path, column: str, verbose: bool) -> None:
    """Add the rows of one table that are not in the store yet, a step at a time."""
    rows_done, done = connection.execute("SELECT rows, done FROM progress WHERE place = ?", (place,)).fetchone()
    if done:
        return
    convert = _remembering(slt_from_mathml if column == "slt" else opt_from_mathml)
    rows = iter(progress(read_formula_table(table), table.name, "formula", verbose=verbose))
    for _ in islice(rows, rows_done):
        pass
    while step := list(islice(rows, _STEP)):
        rows_done += len(step)
        with connection:  # one transaction: the step's rows and the note that they are in
            _add_step(connection, step, column, convert)
            connection.execute("UPDATE progress SET rows = ? WHERE place = ?", (rows_done, place))
    with connection:
        connection.execute("UPDATE progress SET done = 1 WHERE place = ?", (place,))


def _add_step(connection: sqlite3.Connection, step: list[FormulaRow], column: str, convert: Converter) -> None:
    """Add some rows: their trees, then who has them."""
    bodies: dict[int, bytes] = {}
    formulas: list[tuple[object, int | None, object]] = []
    for row, tree in _converted(step, convert):
        number = None
        if tree is not None:
            body = encode(tree)
            number = tree_number(body)
            bodies[number] = body
        formulas.append((number_of(row.id), number, number_of(row.visual_id) if row.visual_id else None))
    connection.executemany(_INSERT, sorted(bodies.items()))
    connection.executemany(_UPSERT.format(column=column), formulas)


def _converted(step: list[FormulaRow], convert: Converter) -> Iterator[tuple[FormulaRow, FormulaTree | None]]:
    """Convert the MathML of some rows; one without any (0.4% of the official cells) has no tree."""
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


def _remembering(convert: Converter) -> Converter:
    """Keep the trees of recent formulas: half of a collection's formulas are ones like ``x``."""
    known: dict[str, FormulaTree] = {}

    def remembered(source: str) -> FormulaTree:
        tree = known.get(source)
        if tree is None:
            tree = convert(source)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[source] = tree
        return tree

    return remembered


def _finish(connection: sqlite3.Connection, part: Path) -> None:
    """Check the whole file and give it the number of its format."""
    found = connection.execute("PRAGMA integrity_check").fetchone()[0]
    if found != "ok":
        raise FormulaStoreError(part, f"the store is damaged ({found}); delete the file and build again")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    connection.commit()
