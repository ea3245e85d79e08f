"""The official formulas of a collection: ARQMath's tables, and `FormulaStore`, their trees by formula id in SQLite.

A table has one row for each formula, in LaTeX, Presentation MathML or Content MathML. There are two forms, both
tab-separated with a header line and quoted like CSV, plain or gzipped:

* of the collection (release v3): ``id post_id thread_id type comment_id old_visual_id visual_id issue formula``
* of the topics: ``id topic_id thread_id type formula`` (in 2020 the last column is named ``slt`` or ``opt``)

A tree that many formulas share is stored once, under a number made from its digest::

    formula   id ──────── slt, opt ─────── visual_id            one row for each formula
                              │
    tree      number ──────── body                              one row for each distinct tree

A build copies the rows of the tables to a file next to the store, in resumable steps::

    tables ──batches──▶ workers: MathML to trees and their numbers ──in order──▶ this process writes, a step at a time

A tree's number is a digest, so the next tree belongs anywhere in the table of trees. Inserted at once, each would
rewrite a page of that table, so a longer table would cost more. So a build appends them to the tables of a
second file, each for a range of numbers, and when all have come it sorts one range after the other in bounded memory::

    rows ──NewTrees──▶ tree_0 … tree_63, appended ──_move_trees──▶ tree, appended in ascending order, each once

The trees of a step are on the disk before its rows are. A build that is killed in between appends them again, which
does no harm. Trees move a range in one transaction, so the largest number that has arrived shows where to continue.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import count_lines, progress
from pyterrier_mathamr._common.ids import as_id
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.store import (
    Content,
    DamagedError,
    FormatError,
    Kind,
    Mode,
    NotBuiltError,
    OtherArtifactError,
    Snapshot,
    file_fingerprint,
    writing,
)
from pyterrier_mathamr.store.sqlite import (
    SqliteArtifact,
    SqliteFile,
    SqliteId,
    check_integrity,
    id_text,
    in_batches,
    optional_number,
    sqlite_id,
    take_up,
    unchanged,
)

from .opt import opt_from_mathml
from .slt import slt_from_mathml
from .tree import FormulaError, FormulaPair, FormulaTree

_FORMULA_COLUMNS = ("formula", "latex", "slt", "opt")
_POST_COLUMNS = ("post_id", "topic_id")
_LARGEST_CELL = 64 << 20  # characters; Python's own limit of 131,072 is below some official cells

FILE = "formulas.sqlite"
KIND = Kind(
    type="formula_store",
    version=2,
    files=(FILE,),
    rebuild="FormulaStore.build('{path}', slt_tables, opt_tables, overwrite=True)",
)

SCHEMA = (
    "CREATE TABLE formula (id PRIMARY KEY, slt INTEGER, opt INTEGER, visual_id) WITHOUT ROWID",
    "CREATE TABLE tree (number INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE progress (place INTEGER PRIMARY KEY, rows INTEGER NOT NULL, done INTEGER NOT NULL)",
)
"""The tables; ``progress`` counts the rows of the official tables that a build has added."""

NUMBER_BITS = 63
_UNIT, _FIELD = "\x1f", "\x1e"  # between labels, between parts: neither can occur in XML


class FormulaRow(NamedTuple):
    """One row of a formula table; all fields are text, an absent one is the empty string.

    Attributes:
        id: the formula.
        post_id: its post; in a table of topics the topic's number (``A.301``).
        thread_id: the question of the post's thread.
        type: of the post, such as ``answer`` or ``comment``.
        visual_id: the id that formulas of the same appearance share.
        formula: LaTeX or MathML, by the kind of the table.
    """

    id: FormulaId
    post_id: str
    thread_id: str
    type: str
    visual_id: str
    formula: str


def count_rows(path: Path) -> int:
    """Count the rows of a table by its lines: at least as many, as a cell can have several."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return count_lines(cast("IO[bytes]", file)) - 1


def read_formula_table(path: str | Path) -> Iterator[FormulaRow]:
    """Read a formula table row by row, in constant memory.

    Args:
        path: a ``.tsv`` or ``.tsv.gz`` file of one of the two forms.

    Yields:
        The rows in order. A row with too few or too many columns is skipped with a warning that names file and line.

    Raises:
        FormulaError: the header, the quoting or the compression is broken; names file and line.
    """
    path = Path(path)
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))  # a limit of the process: raised, never lowered
    # an invalid byte becomes U+FFFD, so that one cell cannot end a long build
    options: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
    with gzip.open(path, "rt", **options) if path.suffix == ".gz" else path.open(**options) as file:
        reader = csv.reader(file, delimiter="\t", quotechar='"')
        try:
            header = next(reader, [])
            column = {name.strip().lower(): i for i, name in enumerate(header)}
            formula = next((column[name] for name in _FORMULA_COLUMNS if name in column), None)
            if formula is None or "id" not in column:
                names = ", ".join(header) or "nothing"
                raise FormulaError(f"{path}:1: not a formula table: needs columns id and formula, has {names}")
            width = len(header)  # also the column of a field that the table does not have
            post = next((column[name] for name in _POST_COLUMNS if name in column), width)
            others = (column.get(name, width) for name in ("thread_id", "type", "visual_id"))
            fields = itemgetter(column["id"], post, *others, formula)
            for cells in reader:
                if len(cells) == width:
                    cells.append("")
                    yield FormulaRow._make(fields(cells))
                elif cells:
                    message = f"{path}:{reader.line_num}: {len(cells)} columns instead of {width}; row skipped"
                    warnings.warn(message, MathAMRWarning, stacklevel=2)
        except (csv.Error, EOFError, OSError) as error:
            raise FormulaError(f"{path}:{reader.line_num + 1}: {error}") from error


def encode(tree: FormulaTree) -> bytes:
    """Write a tree as UTF-8: kind, ``!`` when partial, labels, edge labels, and how far up each parent is."""
    distances = (str(child - parent) for parent, child, _ in tree.edges)
    parts = (
        tree.kind + "!" * tree.partial,
        _UNIT.join(tree.nodes),
        "".join(label for _, _, label in tree.edges),
        _UNIT.join("" if distance == "1" else distance for distance in distances),
    )
    return _FIELD.join(parts).encode("utf-8", "surrogatepass")


def decode(body: bytes, number: int) -> FormulaTree:
    """Read what :func:`encode` wrote."""
    if tree_number(body) != number:
        raise ValueError("another tree")
    head, text, labels, distances = body.decode("utf-8", "surrogatepass").split(_FIELD)
    nodes = tuple(text.split(_UNIT))
    steps = [int(distance or 1) for distance in distances.split(_UNIT)] if labels else []
    if not len(nodes) - 1 == len(labels) == len(steps):
        raise ValueError("no tree")
    edges = tuple(
        (child - step, child, label) for child, (step, label) in enumerate(zip(steps, labels, strict=True), 1)
    )
    if any(not 0 <= parent < child for parent, child, _ in edges):
        raise ValueError("no tree")
    return FormulaTree(nodes, edges, head[3:] == "!", "", "slt" if head[:3] == "slt" else "opt")


def tree_number(body: bytes) -> int:
    """Number a tree by its content, 63 bits of its digest, so that a build finds it without an index."""
    return int.from_bytes(hashlib.blake2b(body, digest_size=8).digest(), "big") >> (64 - NUMBER_BITS)


class StoreFile(SqliteFile):
    """The file of a formula store, open for reading."""

    SCHEMA = SCHEMA

    def rows(self, ids: Iterable[FormulaId]) -> Iterator[tuple[FormulaId, int | None, int | None, str]]:
        """Look up formulas, each once, in the order of ``ids``: id, numbers of both trees, visual id."""
        for batch in in_batches(dict.fromkeys(ids)):
            keys = {fid: sqlite_id(fid) for fid in batch}
            query = "SELECT id, slt, opt, visual_id FROM formula WHERE id IN ({})"
            stored = {row[0]: row[1:] for row in self.query(query, [*keys.values()])}
            for fid, key in keys.items():
                if key in stored:
                    slt, opt, visual = stored[key]
                    try:
                        yield fid, optional_number(slt), optional_number(opt), "" if visual is None else id_text(visual)
                    except ValueError as error:
                        raise self._damaged(fid) from error

    def trees(self, wanted: Mapping[int, FormulaId]) -> dict[int | None, FormulaTree]:
        trees: dict[int | None, FormulaTree] = {}
        for batch in in_batches(sorted(wanted)):
            bodies = dict(self.query("SELECT number, body FROM tree WHERE number IN ({})", batch))
            for number in batch:
                try:
                    trees[number] = decode(bodies[number], number)
                except (KeyError, ValueError, TypeError) as error:
                    raise self._damaged(wanted[number]) from error
        return trees

    def _damaged(self, formula: FormulaId) -> DamagedError:
        return DamagedError(self.path, f"the data of formula {formula!r:.80} is damaged")


BATCH = 500
"""Rows of a batch: about 50 ms of work and 1 MB of MathML."""

_RANGES = 64  # of the collection's 20 million trees some 40 MB each, which are sorted in memory
_SHIFT = NUMBER_BITS - (_RANGES.bit_length() - 1)
_REMEMBERED = 200_000  # texts whose tree's number is kept, 200 bytes each: half of all formulas are ones like ``x``
_STEP = 20_000  # rows of one transaction, which an interrupted build loses
_TREES = "trees.sqlite"
_LAYOUT = {"layout": "staged trees"}  # of unfinished work: that of a release with another one is never continued

# The first row of an id wins; the other kind of table adds its tree to the same row.
_UPSERT = """
INSERT INTO formula (id, {column}, visual_id) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET {column} = coalesce({column}, excluded.{column}),
                               visual_id = coalesce(visual_id, excluded.visual_id)
"""


class RowBatch(NamedTuple):
    """Neighboring rows of the table at a place among all tables, which fills a column; none after the last ones."""

    place: int
    column: str
    rows: list[FormulaRow]


class NumberedTrees(NamedTuple):
    """The trees of a batch of rows."""

    place: int  # the number of the table
    column: str  # the column that the table fills
    formulas: list[tuple[SqliteId, int | None, SqliteId | None]]  # id, number of the tree, visual id of each row
    trees: dict[int, bytes]  # by number; without trees that the worker returned before and still remembers
    failed: int  # the number of rows whose MathML has no tree


class NewTrees:
    """Work of a batch: its trees and their numbers. It remembers the numbers of MathML that it has read."""

    def __init__(self) -> None:
        self._recent: dict[bytes, int] = {}
        self._before: dict[bytes, int] = {}

    def __call__(self, batch: RowBatch) -> NumberedTrees:
        """Number the trees of some rows; an empty cell (0.4% of the official ones) has no tree."""
        formulas: list[tuple[SqliteId, int | None, SqliteId | None]] = []
        trees: dict[int, bytes] = {}
        failed = 0
        for row in batch.rows:
            number = None
            if row.formula.strip():
                try:
                    number = self._number(row.formula, batch.column, trees)
                except FormulaError:
                    failed += 1
            formulas.append((sqlite_id(row.id), number, sqlite_id(row.visual_id) if row.visual_id else None))
        return NumberedTrees(batch.place, batch.column, formulas, trees, failed)

    def _number(self, mathml: str, column: str, trees: dict[int, bytes]) -> int:
        """Return the number of a tree, which is added to ``trees`` unless it is remembered."""
        key = hashlib.blake2b((column + mathml).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        number = self._recent.get(key)
        if number is None:
            number = self._before.get(key)
            if number is None:
                body = encode(slt_from_mathml(mathml) if column == "slt" else opt_from_mathml(mathml))
                number = tree_number(body)
                trees[number] = body
            if len(self._recent) >= _REMEMBERED:  # forget trees that did not recur since the last time
                self._recent, self._before = {}, self._recent
            self._recent[key] = number
        return number


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
                self._connection.execute("PRAGMA synchronous = NORMAL")
                with self._connection as connection:
                    if new:
                        connection.execute("BEGIN")
                        for number in range(_RANGES):
                            columns = "(number INTEGER NOT NULL, body BLOB NOT NULL)"
                            connection.execute(f"CREATE TABLE tree_{number} {columns}")
                    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (_RANGES,):
                        raise sqlite3.DatabaseError("other tables")
        except BaseException:
            self.close()
            raise

    def add(self, bodies: dict[int, bytes]) -> None:
        """Append trees, durably."""
        ranges: dict[int, list[tuple[int, bytes]]] = {}
        for number in sorted(bodies):
            ranges.setdefault(number >> _SHIFT, []).append((number, bodies[number]))
        with unchanged(self.path), self._connection as connection:
            for which, rows in ranges.items():
                connection.executemany(f"INSERT INTO tree_{which} VALUES (?, ?)", rows)

    def close(self) -> None:
        self._connection.close()


def _fingerprint(tables: Sequence[tuple[Path, str]]) -> list[list[object]]:
    """Identify the tables of a store: column, name and content of each, in the order they are read."""
    prints: list[list[object]] = []
    for table, column in tables:
        try:
            prints.append([column, table.name, *file_fingerprint(table)])
        except OSError as error:
            raise FormulaError(f"{table}:1: {error}") from error
    return prints


def _fill(scratch: Path, trees: Path, tables: list[tuple[Path, str]], executor: Executor, verbose: bool) -> int:
    """Add the rows and trees that an earlier run has not added; return the number of formulas."""
    with (
        closing(Staging(trees, new=not scratch.exists())) as staging,
        closing(take_up(scratch, SCHEMA, [(place, 0, 0) for place in range(len(tables))])) as connection,
    ):
        progressed = connection.execute("SELECT place, rows FROM progress WHERE NOT done ORDER BY place").fetchall()
        batch_size = min(BATCH, _STEP)
        unread = _batches(tables, progressed, batch_size, verbose, executor.doing)
        with closing(executor.map(NewTrees(), unread)) as numbered:
            step: list[NumberedTrees] = []
            for batch in numbered:
                step.append(batch)
                table_ended = not batch.formulas
                if table_ended or len(step) == _STEP // batch_size:
                    with connection:  # one transaction: the step's rows and the progress
                        state = (_add_step(connection, staging, step), table_ended, batch.place)
                        connection.execute("UPDATE progress SET rows = rows + ?, done = ? WHERE place = ?", state)
                    step = []
        _move_trees(connection, trees, verbose)
        check_integrity(connection)
        return int(connection.execute("SELECT count(*) FROM formula").fetchone()[0])


def _batches(
    tables: Sequence[tuple[Path, str]], progressed: Sequence[tuple[int, int]], size: int, verbose: bool,
    note: Callable[[], str] | None,
) -> Iterator[RowBatch]:  # fmt: skip
    """Read the remaining rows of the tables, of which an earlier run has read some."""
    for place, rows_done in progressed:
        table, column = tables[place]
        total = count_rows(table) if verbose else None
        title = f"{column.upper()}, {table.name}"
        shown = progress(read_formula_table(table), title, "formulas", verbose=verbose, total=total, note=note)
        rows = islice(shown, rows_done, None)
        while batch := list(islice(rows, size)):
            yield RowBatch(place, column, batch)
        yield RowBatch(place, column, [])


def _add_step(connection: sqlite3.Connection, staging: Staging, step: Sequence[NumberedTrees]) -> int:
    """Add some rows: their new trees, durably, then the formulas that have them. Return how many."""
    staging.add({number: body for batch in step for number, body in batch.trees.items()})
    formulas = [formula for batch in step for formula in batch.formulas]
    connection.executemany(_UPSERT.format(column=step[0].column), formulas)
    if failed := sum(batch.failed for batch in step):
        which = f"{failed} of {len(formulas)} formulas up to id {id_text(formulas[-1][0])}"
        warnings.warn(f"{which} have MathML without a tree; stored so", MathAMRWarning, stacklevel=2)
    return len(formulas)


def _move_trees(connection: sqlite3.Connection, staged: Path, verbose: bool) -> None:
    """Insert the staged trees that an earlier run has not inserted."""
    connection.execute("ATTACH ? AS staged", (str(staged),))
    with unchanged(staged):
        if (problem := connection.execute("PRAGMA staged.quick_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(problem)
    last = connection.execute("SELECT max(number) FROM tree").fetchone()[0]
    ranges = range(0 if last is None else (last >> _SHIFT) + 1, _RANGES)
    for which in progress(ranges, "sorting trees", "parts", verbose=verbose):
        with connection:
            rows = f"SELECT number, body FROM staged.tree_{which} ORDER BY number"
            connection.execute(f"INSERT OR IGNORE INTO tree (number, body) {rows}")


class FormulaStore(SqliteArtifact):
    """The official trees of a collection, looked up by formula id.

    A store is opened on first use and can be pickled; a worker process opens it again.

    Args:
        path: a folder that :meth:`build` made.

    Raises:
        StoreError: on first use: :class:`NotBuiltError`, :class:`FormatError` or another subclass.
    """

    KIND, FILE = KIND, StoreFile
    HOLDS = "formula"

    @classmethod
    def build(
        cls,
        path: str | Path,
        slt_tables: Sequence[str | Path],
        opt_tables: Sequence[str | Path],
        *,
        executor: Executor | None = None,
        verbose: bool = False,
        overwrite: bool = False,
        reuse: bool = False,
    ) -> FormulaStore:
        """Build a store from official tables, in bounded memory.

        The store appears at ``path`` when it is complete and checked. An interrupted build resumes when it is called
        again with the same tables. Trees are collected next to the store and then sorted into it, so a
        build needs up to twice the store's space on the disk.

        Args:
            path: the folder to make.
            slt_tables: tables of Presentation MathML, of the collection or of topics.
            opt_tables: tables of Content MathML.
            executor: where MathML is read, by default in this process; the store is the same for all.
            verbose: show progress.
            overwrite: replace an existing store and discard unfinished work.
            reuse: keep a store that was made from the same tables, and replace any other.

        Raises:
            WriteError: a store exists, another process builds it, or nothing can be written there.
            OtherArtifactError: the path holds something else. UnfinishedJobError: other tables were not finished.
            WorkerDiedError, ClusterError: a worker was lost; the next call resumes.
            FormulaError: a table cannot be read; names file and line.
        """
        store = cls(path)
        # tables of both kinds alternate, so that the rows of one formula are close together in the file
        alternating = zip_longest(map(Path, slt_tables), map(Path, opt_tables))
        tables = [(path, kind) for both in alternating for path, kind in zip(both, ("slt", "opt"), strict=True) if path]
        if overwrite:
            store.discard()
        if reuse and store._made_from(tables):
            return store
        mode: Mode = "overwrite" if overwrite or reuse else "create"
        made_from, executor = {"tables": _fingerprint(tables)}, executor or Processes(1)
        with store.job(mode, made_from | _LAYOUT) as job:
            if not job.done.parts:  # else a build died while publishing it
                scratch = job.scratch(FILE)
                with writing(store.path), unchanged(scratch):
                    count = _fill(scratch, job.scratch(_TREES), tables, executor, verbose)
                job.add(Content(files={FILE: scratch}, count=count))
            job.commit(made_from, whole=False)
        return store

    def get_many(self, ids: Iterable[FormulaId]) -> dict[FormulaId, FormulaPair]:
        """Look up the trees of many formulas in a few queries.

        Args:
            ids: formula ids; unknown ones are left out of the result.

        Returns:
            Both trees of each known id, in the order of ``ids``; a tree is ``None`` where the table had none.

        Raises:
            DamagedError: a tree is damaged; names the formula.
        """
        file = self._file()
        rows = {fid: (slt, opt) for fid, slt, opt, _ in file.rows(ids)}
        trees = file.trees({number: fid for fid, pair in rows.items() for number in pair if number is not None})
        return {fid: FormulaPair(trees.get(slt), trees.get(opt)) for fid, (slt, opt) in rows.items()}

    def visual_ids(self, ids: Iterable[FormulaId]) -> dict[FormulaId, str]:
        """Look up the visual ids of many formulas: formulas that look the same share one.

        Args:
            ids: formula ids; unknown ones and those without a visual id are left out of the result.
        """
        return {fid: visual for fid, _, _, visual in self._file().rows(ids) if visual}

    def __contains__(self, formula_id: object) -> bool:
        name = as_id(formula_id)
        return name is not None and any(True for _ in self._file().rows([name]))

    def opened(self) -> Snapshot:
        """Open the store; a file at its path is one of format 1."""
        try:
            return super().opened()
        except OtherArtifactError as error:
            if not self.path.is_file():
                raise
            rebuild = KIND.rebuild.format(path=self.path)
            reason = f"it is a file, as formula stores of format 1 were, not a folder. Remove it and rebuild: {rebuild}"
            raise FormatError(self.path, reason) from error

    def _file(self) -> StoreFile:
        file: StoreFile = self.snapshot().caches["file"]
        return file

    def _made_from(self, tables: Sequence[tuple[Path, str]]) -> bool:
        """Return whether an openable store of these tables exists."""
        try:
            return bool(self.snapshot().manifest.details.get("tables") == _fingerprint(tables))
        except (NotBuiltError, FormatError, DamagedError):
            return False
