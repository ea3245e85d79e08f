"""Building a formula store: a stream of rows from tables to a file beside the store, in resumable steps.

::

    tables ──batches──▶ workers: MathML to trees and their numbers ──in order──▶ this process writes, a step at a time
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.running.executors import Executor
from pyterrier_mathamr.formula.errors import FormulaTableError
from pyterrier_mathamr.formula.opt.from_mathml import opt_from_mathml
from pyterrier_mathamr.formula.slt.from_mathml import slt_from_mathml
from pyterrier_mathamr.store import (
    Content,
    Mode,
    check_integrity,
    file_fingerprint,
    id_text,
    open_job,
    take_up,
    unchanged,
    writing,
)

from .numbering import BATCH, Numbered, Numbering, RestOfTable, batches
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


def build_store(
    path: Path, slt_tables: list[Path], opt_tables: list[Path], executor: Executor, verbose: bool, mode: Mode
) -> None:
    """Build :class:`FormulaStore` at ``path``; see :meth:`FormulaStore.build`."""
    tables = _interleave(slt_tables, opt_tables)
    made_from = {"tables": fingerprint(slt_tables, opt_tables)}
    with open_job(path, KIND, mode, made_from | _LAYOUT) as job:
        if not job.done.parts:  # else a build died while publishing it
            scratch = job.scratch(FILE)
            with writing(path), unchanged(scratch):
                count = _fill(scratch, job.scratch(_TREES), tables, executor, verbose)
            job.add(Content(files={FILE: scratch}, count=count))
        job.commit(made_from, whole=False)


def fingerprint(slt_tables: Sequence[Path], opt_tables: Sequence[Path]) -> list[list[object]]:
    """Identify the tables of a store: column, name and content of each, in the order they are read."""
    found: list[list[object]] = []
    for table, column in _interleave(slt_tables, opt_tables):
        try:
            found.append([column, table.name, *file_fingerprint(table)])
        except OSError as error:
            raise FormulaTableError(table, 1, str(error)) from error
    return found


def _fill(scratch: Path, trees: Path, tables: list[tuple[Path, str]], executor: Executor, verbose: bool) -> int:
    """Add what an earlier run has not added, rows and then trees; return the number of formulas."""
    with (
        closing(Staging(trees, new=not scratch.exists())) as staging,
        closing(take_up(scratch, SCHEMA, [(place, 0, 0) for place in range(len(tables))])) as connection,
    ):
        work = Numbering({"slt": NewTrees(slt_from_mathml), "opt": NewTrees(opt_from_mathml)})
        rest = [
            RestOfTable(place, tables[place][0], tables[place][1], rows)
            for place, rows in connection.execute("SELECT place, rows FROM progress WHERE NOT done ORDER BY place")
        ]
        with closing(executor.map(work, batches(rest, _batch_size(), verbose, executor.doing))) as numbered:
            _add_steps(connection, staging, numbered)
        move_trees(connection, trees, verbose)
        check_integrity(connection)
        return int(connection.execute("SELECT count(*) FROM formula").fetchone()[0])


def _interleave(slt_tables: Sequence[Path], opt_tables: Sequence[Path]) -> list[tuple[Path, str]]:
    """Alternate SLT and OPT tables, so that the rows of one formula are close together in the file."""
    ordered: list[tuple[Path, str]] = []
    for i in range(max(len(slt_tables), len(opt_tables))):
        ordered += [(table, "slt") for table in slt_tables[i : i + 1]]
        ordered += [(table, "opt") for table in opt_tables[i : i + 1]]
    return ordered


def _add_steps(connection: sqlite3.Connection, staging: Staging, numbered: Iterable[Numbered]) -> None:
    """Add the remaining rows of all tables, a step at a time."""
    for step in _steps(numbered):
        with connection:  # one transaction: the step's rows and the progress
            progressed = (_add_step(connection, staging, step), not step[-1].formulas, step[0].place)
            connection.execute("UPDATE progress SET rows = rows + ?, done = ? WHERE place = ?", progressed)


def _steps(numbered: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Group batches into steps; the empty batch that ends a table ends a step."""
    step = []
    for batch in numbered:
        step.append(batch)
        if not batch.formulas or len(step) == _STEP // _batch_size():
            yield step
            step = []


def _add_step(connection: sqlite3.Connection, staging: Staging, step: Sequence[Numbered]) -> int:
    """Add some rows: their new trees, durably, then the formulas that have them. Return how many."""
    staging.add({number: body for batch in step for number, body in batch.trees.items()})
    formulas = [formula for batch in step for formula in batch.formulas]
    connection.executemany(_UPSERT.format(column=step[0].column), formulas)
    if failed := sum(batch.failed for batch in step):
        which = f"{failed} of {len(formulas)} formulas up to id {id_text(formulas[-1][0])}"
        warnings.warn(f"{which} have MathML without a tree; stored so", MathAMRWarning, stacklevel=2)
    return len(formulas)


def _batch_size() -> int:
    """Return how many rows are numbered together: at most those of a step."""
    return min(BATCH, _STEP)
