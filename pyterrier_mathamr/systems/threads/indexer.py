"""Building a thread store: a stream of posts to a file beside the store, in resumable steps."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pandas as pd

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import documents
from pyterrier_mathamr._common.parameters import FLAG, one_of
from pyterrier_mathamr._common.transformers import Indexer
from pyterrier_mathamr.store import (
    Content,
    DuplicateIdError,
    Job,
    Mode,
    UnfinishedJobError,
    check_integrity,
    id_text,
    in_batches,
    sqlite_id,
    take_up,
    unchanged,
    writing,
)

from .records import Record, record_of
from .sqlite_file import COUNTS, FILE, INSERT_POST, INSERT_TEXT, SCHEMA, pack_text, post_row

if TYPE_CHECKING:
    from .thread_store import ThreadStore

STEP = 5000
"""Posts of one transaction: what an interrupted job loses."""

_INPUTS = (["id", "kind"], ["docno", "kind"])


class ThreadStoreIndexer(Indexer):
    """Stores posts with their threads; see :meth:`ThreadStore.indexer`.

    Example::

        ThreadStore("threads.mathamr").indexer(verbose=True).index(collection.posts())

    Args:
        store, mode, verbose, total: see :meth:`ThreadStore.indexer`.

    Raises:
        ConfigError: an option has no such value.
    """

    label = "ThreadStore indexer"
    checks = {"mode": one_of(*get_args(Mode)), "verbose": FLAG}  # noqa: RUF012

    def __init__(
        self, store: ThreadStore, mode: Mode = "create", *, verbose: bool = False, total: int | None = None
    ) -> None:
        super().__init__()
        self.store = store
        self.mode: Mode = mode
        self.verbose = verbose
        self.total = total

    def index_inputs(self) -> list[list[str]]:
        """List the keys of the dictionaries that :meth:`index` takes."""
        return [list(names) for names in _INPUTS]

    def index(self, iter: pd.DataFrame | Iterable[Any]) -> ThreadStore:
        """Store posts, or resume an interrupted job of this mode, which must get the same posts.

        Args:
            iter: objects with the fields of :class:`~pyterrier_mathamr.arqmath.Post`, or dictionaries of them, or a
                DataFrame.

        Returns:
            The store, with all posts.

        Raises:
            ThreadPostError: a post has no id or kind, or a value of another type; names it. What was stored is kept.
            ExistsError: the store exists and the mode is ``create``.
            DuplicateIdError: an id occurs twice, or is stored already.
            UnfinishedJobError: the unfinished job had other posts.
            StoreError: the store cannot be written.
        """
        total = len(iter) if self.total is None and isinstance(iter, Sized) else self.total
        shown = progress(documents(iter), "storing", "posts", verbose=self.verbose, total=total)
        records = map(record_of, shown, count(1))
        self.store.close()
        with self.store.job(self.mode, {}) as job:
            details = _add_part(job, records)
            job.parts = job.parts[-1:]  # the store is one part, which holds those of the part before it
            job.commit(details, whole=False)
        return self.store


def _add_part(job: Job, records: Iterator[Record]) -> Mapping[str, Any]:
    """Write the file of all posts as the last part of a job; return what the manifest says of it."""
    if job.done.parts:  # an earlier run died while it published them
        details = job.done.parts[-1].meta.details
        _check_done(job, records, details["rows"], bytes.fromhex(details["digest"]))
        if next(records, None) is not None:
            raise _other_posts(job)
        return details["counts"]  # type: ignore[no-any-return]
    scratch = job.scratch(FILE)
    with closing(_take_up(job, scratch)) as connection:
        rows, digest = _fill(job, connection, scratch, records)
        with writing(job.path), unchanged(scratch):
            check_integrity(connection)
            names = ("questions", "answers", "votes", "comments", "accepted")
            counts = dict(zip(names, map(int, connection.execute(COUNTS).fetchone()), strict=True))
    details = {"rows": rows, "digest": digest.hex(), "counts": counts}
    job.add(Content(files={FILE: scratch}, count=counts["questions"] + counts["answers"], details=details))
    return counts


def _take_up(job: Job, scratch: Path) -> sqlite3.Connection:
    """Open the unfinished file, or make one: a copy of that of the store that is appended to."""
    with writing(job.path), unchanged(scratch):
        if not scratch.exists() and job.base:
            copy = scratch.with_name(f"{scratch.name}.copy")
            for stale in scratch.parent.glob(f"{copy.name}*"):  # of a job that was killed here, with SQLite's journal
                stale.unlink()
            shutil.copyfile(job.parts[0].path / FILE, copy)
            with closing(sqlite3.connect(copy)) as connection, connection:
                connection.execute("UPDATE progress SET rows = 0, digest = x''")
            copy.replace(scratch)  # whole, or not there
        return take_up(scratch, SCHEMA, [(0, b"")])


def _fill(job: Job, connection: sqlite3.Connection, scratch: Path, records: Iterator[Record]) -> tuple[int, bytes]:
    """Add the posts that an earlier run has not added, a step at a time."""
    with writing(job.path), unchanged(scratch):
        rows, digest = connection.execute("SELECT rows, digest FROM progress").fetchone()
        first = connection.execute("SELECT coalesce(max(number) + 1, 0) FROM post").fetchone()[0]
    _check_done(job, records, rows, digest)
    while step := list(islice(records, STEP)):
        digest = _digest(digest, step)
        with writing(job.path), unchanged(scratch):
            _refuse_known(job, connection, [record.post.id for record in step])
            with connection:  # one transaction: the step's posts and the progress
                numbered = list(enumerate(step, first))
                connection.executemany(INSERT_POST, ((number, *post_row(record.post)) for number, record in numbered))
                connection.executemany(INSERT_TEXT, ((number, pack_text(record)) for number, record in numbered))
                rows, first = rows + len(step), first + len(step)
                connection.execute("UPDATE progress SET rows = ?, digest = ?", (rows, digest))
    return rows, digest


def _check_done(job: Job, records: Iterator[Record], rows: int, wanted: bytes) -> None:
    """Pass over the posts that an earlier run has stored."""
    digest, passed = b"", 0
    while passed < rows and (step := list(islice(records, min(STEP, rows - passed)))):
        digest, passed = _digest(digest, step), passed + len(step)
    if passed < rows or digest != wanted:
        raise _other_posts(job)


def _other_posts(job: Job) -> UnfinishedJobError:
    return UnfinishedJobError(job.path, {"posts": ("some posts", "others")})


def _digest(before: bytes, step: list[Record]) -> bytes:
    """Digest a step of the stream with all steps before it."""
    text = json.dumps(step).encode()
    return hashlib.blake2b(before + text, digest_size=16).digest()


def _refuse_known(job: Job, connection: sqlite3.Connection, ids: list[str]) -> None:
    """Refuse ids that come twice, or are stored already."""
    known: list[str] = []
    for batch in in_batches(ids):
        marks = ",".join("?" * len(batch))
        found = connection.execute(f"SELECT id FROM post WHERE id IN ({marks})", [sqlite_id(name) for name in batch])
        known += [id_text(name) for (name,) in found]
    seen: set[str] = set()
    known += [name for name in ids if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if known:
        raise DuplicateIdError(job.path, known)
