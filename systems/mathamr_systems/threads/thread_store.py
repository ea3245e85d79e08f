"""`ThreadStore`: the answers to each question, with votes and comments of readers, an artifact of one SQLite file.

::

    posts ──▶ records ──▶ ThreadStoreIndexer ──▶ threads.sqlite ◀── ThreadStore ──▶ the transformers

    post   number ── id, kind, question, accepted, votes, comments, tags      one row for each post, in their order
    text   number ── record                                                   zlib(JSON [title, body])
    progress                                                                  rows that an interrupted job has stored
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import pandas as pd
import pyterrier as pt

from mathamr_systems.errors import SystemsError
from pyterrier_mathamr.extending import (
    FLAG,
    HELP_URL,
    DocNo,
    Indexer,
    MathAMRWarning,
    PostKind,
    SqliteArtifact,
    SqliteFile,
    as_id,
    check_integrity,
    counted,
    decompressed,
    documents,
    id_text,
    in_batches,
    is_missing,
    method,
    one_of,
    optional_number,
    parse_json,
    progress,
    sqlite_id,
    take_up,
    unchanged,
    valid_id,
)
from pyterrier_mathamr.store import (
    Content,
    DamagedError,
    DuplicateIdError,
    Job,
    Kind,
    Mode,
    UnfinishedJobError,
    UnknownIdError,
    detail,
    writing,
)

from .transformers import (
    BestAnswer,
    ParentTitles,
    ThreadAnswers,
    ThreadMetadata,
    ThreadQuestions,
    ThreadTextLoader,
    WithQuestion,
    tags_of,
)

_Get = Callable[[str], Any]  # a field of a post, None if it has none

_MOST = 1 << 62


FILE = "threads.sqlite"
KIND = Kind(
    type="thread_store",
    version=1,
    files=(FILE,),
    rebuild="ThreadStore('{path}').indexer('overwrite').index(collection.posts())",
)

SCHEMA = (
    "CREATE TABLE post (number INTEGER PRIMARY KEY, id NOT NULL UNIQUE, kind INTEGER NOT NULL, question, accepted, "
    "votes INTEGER, comments INTEGER, tags)",
    "CREATE TABLE text (number INTEGER PRIMARY KEY, record BLOB NOT NULL)",
    "CREATE TABLE progress (rows INTEGER NOT NULL, digest BLOB NOT NULL)",
    "CREATE INDEX thread ON post (question) WHERE kind = 2",
)

_COLUMNS = "id, kind, question, accepted, votes, comments, tags"
_COUNTS = {
    "questions": "kind = 1",
    "answers": "kind = 2",
    "votes": "kind = 2 AND votes NOT NULL",
    "comments": "kind = 2 AND comments NOT NULL",
    "accepted": "kind = 1 AND accepted NOT NULL",
}


class ThreadPost(NamedTuple):
    """A post in its thread; unknown values are ``None`` or empty."""

    id: DocNo
    kind: PostKind
    question_id: DocNo  # of an answer; a question's is its own id
    accepted_id: DocNo  # of a question
    votes: int | None
    comments: int | None
    tags: tuple[str, ...]  # of a question


class ThreadRecord(NamedTuple):
    """A post with its text."""

    post: ThreadPost
    title: str
    body: str


def record_of(row: object, number: int) -> ThreadRecord:
    get: _Get = row.get if isinstance(row, Mapping) else lambda name: getattr(row, name, None)
    key = next((key for key in ("id", "docno") if not is_missing(get(key)) and get(key) != ""), "id")
    name = valid_id(get(key), f"post {number:,}", key)
    where, kind = f"post {name!r:.80}", get("kind")
    if kind not in get_args(PostKind):
        raise _unusable(where, f"its kind is {kind!r:.40}, neither 'question' nor 'answer'")
    post = ThreadPost(
        id=name,
        kind=kind,
        question_id=name if kind == "question" else _other_id(get, "parent_id", where),
        accepted_id=_other_id(get, "accepted_answer_id", where) if kind == "question" else "",
        votes=_number(get, "score", where),
        comments=_number(get, "comment_count", where),
        tags=tags_of(get("tags")),
    )
    body = next((text for name in ("body", "html", "text") if (text := _text(get, name, where))), "")
    return ThreadRecord(post, _text(get, "title", where), body)


def _unusable(post: str, reason: str) -> SystemsError:
    advice = "Give posts with the fields of pyterrier_mathamr.arqmath.Post, such as collection.posts()."
    return SystemsError(f"{post}: {reason}. {advice}")


def _other_id(get: _Get, name: str, where: str) -> str:
    value = get(name)
    return "" if is_missing(value) or value == "" else valid_id(value, where, name)


def _text(get: _Get, name: str, where: str) -> str:
    value = get(name)
    if is_missing(value):
        return ""
    if not isinstance(value, str):
        raise _unusable(where, f"its {name} is {value!r:.40}, no text")
    return value


def _number(get: _Get, name: str, where: str) -> int | None:
    value = get(name)
    if is_missing(value):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = _MOST
    if abs(number) >= _MOST or number != value:
        raise _unusable(where, f"its {name} is {value!r:.40}, no whole number")
    return number


def post_row(post: ThreadPost) -> tuple[Any, ...]:
    question = post.question_id if post.kind == "answer" else ""
    ids = (sqlite_id(name) if name else None for name in (question, post.accepted_id))
    tags = " ".join(post.tags).encode("utf-8", "surrogatepass") or None
    return (sqlite_id(post.id), 1 + (post.kind == "answer"), *ids, post.votes, post.comments, tags)


def pack_text(record: ThreadRecord) -> bytes:
    text = json.dumps([record.title, record.body], ensure_ascii=False)
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


class ThreadFile(SqliteFile):
    """The file of a thread store, open for reading; ids that it does not hold are left out."""

    SCHEMA = SCHEMA

    def posts(self, ids: Iterable[DocNo]) -> dict[DocNo, ThreadPost]:
        """Look up posts, in the order of ``ids``."""
        wanted = dict.fromkeys(ids)
        by_id = {post.id: post for post in self._posts(f"SELECT {_COLUMNS} FROM post WHERE id IN ({{}})", wanted)}
        return {name: by_id[name] for name in wanted if name in by_id}

    def answers(self, questions: Iterable[DocNo]) -> dict[DocNo, list[ThreadPost]]:
        """Look up the answers of questions, by docno."""
        query = f"SELECT {_COLUMNS} FROM post WHERE kind = 2 AND question IN ({{}})"
        answers: dict[DocNo, list[ThreadPost]] = {}
        for post in sorted(self._posts(query, dict.fromkeys(questions)), key=lambda post: post.id):
            answers.setdefault(post.question_id, []).append(post)
        return answers

    def texts(self, ids: Iterable[DocNo]) -> dict[DocNo, tuple[str, str]]:
        """Look up title and body."""
        query = "SELECT id, record FROM post JOIN text USING (number) WHERE id IN ({})"
        texts: dict[DocNo, tuple[str, str]] = {}
        for batch in in_batches(dict.fromkeys(ids)):
            for name, record in self.query(query, [sqlite_id(id) for id in batch]):
                try:
                    title, body = parse_json(decompressed(record))
                    if not isinstance(title, str) or not isinstance(body, str):
                        raise ValueError("no texts")
                    texts[id_text(name)] = (title, body)
                except (zlib.error, ValueError, TypeError) as error:
                    raise self._damaged(name) from error
        return texts

    def all_posts(self) -> Iterator[ThreadPost]:
        """Read all posts in the order they were stored."""
        last = -1
        while rows := self.query(f"SELECT number, {_COLUMNS} FROM post WHERE number > ? ORDER BY 1 LIMIT 5000", [last]):
            yield from (self._post(row[1:]) for row in rows)
            last = rows[-1][0]

    def _posts(self, query: str, ids: Iterable[DocNo]) -> Iterator[ThreadPost]:
        for batch in in_batches(ids):
            yield from map(self._post, self.query(query, [sqlite_id(name) for name in batch]))

    def _post(self, row: Sequence[Any]) -> ThreadPost:
        name, kind, question, accepted, votes, comments, tags = row
        try:
            return ThreadPost(
                id=id_text(name),
                kind="answer" if kind == 2 else "question",
                question_id=id_text(name) if kind == 1 else "" if question is None else id_text(question),
                accepted_id="" if accepted is None else id_text(accepted),
                votes=optional_number(votes),
                comments=optional_number(comments),
                tags=() if tags is None else tuple(bytes(tags).decode("utf-8", "surrogatepass").split(" ")),
            )
        except (ValueError, TypeError) as error:
            raise self._damaged(name) from error

    def _damaged(self, name: object) -> DamagedError:
        return DamagedError(self.path, f"the data of post {name!r:.80} is damaged")


_OTHERS = {"posts": ("some posts", "others")}

STEP = 5000
"""Posts of one transaction, which an interrupted job loses."""


class ThreadStoreIndexer(Indexer):
    """Stores posts with their threads; ``threads.indexer()`` constructs one.

    Example::

        ThreadStore("threads.mathamr").indexer(verbose=True).index(collection.posts())

    Args:
        store: the store.
        mode: ``create`` a new store, ``overwrite`` an existing one when the new one is complete, or ``append``.
        verbose: show progress.
        total: the number of posts, for the progress bar.

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
        """List the keys of the dictionaries that :meth:`index` accepts."""
        return [["id", "kind"], ["docno", "kind"]]

    def index(self, iter: pd.DataFrame | Iterable[Any]) -> ThreadStore:
        """Store posts, or resume an interrupted job of this mode, which must get the same posts.

        Args:
            iter: objects with the fields of :class:`~pyterrier_mathamr.arqmath.Post`, or dictionaries of them, or a
                DataFrame.

        Returns:
            The store, with all posts.

        Raises:
            InvalidIdError: a post has no id, or one that is neither a text nor an integer; names it.
            SystemsError: a post has no kind, or a value of the wrong type; names it. Stored posts are kept.
            WriteError: the store exists and the mode is ``create``.
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
            job.parts = job.parts[-1:]  # the store is one part, which contains the part before it
            job.commit(details, whole=False)
        return self.store


def _add_part(job: Job, records: Iterator[ThreadRecord]) -> Mapping[str, Any]:
    """Write the file of all posts as the last part of a job; return its entry in the manifest."""
    if job.done.parts:  # an earlier run died while it published them
        details = job.done.parts[-1].meta.details
        _check_done(job, records, details["rows"], bytes.fromhex(details["digest"]))
        if next(records, None) is not None:
            raise UnfinishedJobError(job.path, _OTHERS)
        return details["counts"]  # type: ignore[no-any-return]
    scratch = job.scratch(FILE)
    with closing(_take_up(job, scratch)) as connection:
        rows, digest = _fill(job, connection, scratch, records)
        with writing(job.path), unchanged(scratch):
            check_integrity(connection)
            sums = ", ".join(f"coalesce(sum({condition}), 0)" for condition in _COUNTS.values())
            counts = dict(zip(_COUNTS, connection.execute(f"SELECT {sums} FROM post").fetchone(), strict=True))
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


def _fill(
    job: Job, connection: sqlite3.Connection, scratch: Path, records: Iterator[ThreadRecord]
) -> tuple[int, bytes]:
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
                connection.executemany(
                    f"INSERT INTO post (number, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    ((number, *post_row(record.post)) for number, record in numbered),
                )
                connection.executemany(
                    "INSERT INTO text VALUES (?, ?)", ((number, pack_text(record)) for number, record in numbered)
                )
                rows, first = rows + len(step), first + len(step)
                connection.execute("UPDATE progress SET rows = ?, digest = ?", (rows, digest))
    return rows, digest


def _check_done(job: Job, records: Iterator[ThreadRecord], rows: int, wanted: bytes) -> None:
    """Pass over the posts that an earlier run has stored."""
    digest, passed = b"", 0
    while passed < rows and (step := list(islice(records, min(STEP, rows - passed)))):
        digest, passed = _digest(digest, step), passed + len(step)
    if passed < rows or digest != wanted:
        raise UnfinishedJobError(job.path, _OTHERS)


def _digest(before: bytes, step: list[ThreadRecord]) -> bytes:
    """Digest a step of the stream with all steps before it."""
    text = json.dumps(step).encode()
    return hashlib.blake2b(before + text, digest_size=16).digest()


def _refuse_known(job: Job, connection: sqlite3.Connection, ids: list[str]) -> None:
    """Raise an error for ids that come twice, or are stored already."""
    known: list[str] = []
    for batch in in_batches(ids):
        marks = ",".join("?" * len(batch))
        stored = connection.execute(f"SELECT id FROM post WHERE id IN ({marks})", [sqlite_id(name) for name in batch])
        known += [id_text(name) for (name,) in stored]
    seen: set[str] = set()
    known += [name for name in ids if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if known:
        raise DuplicateIdError(job.path, known)


T = TypeVar("T")

_ABSENT = {"votes": "votes", "comments": "comments", "accepted": "accepted answers"}


class ThreadStore(SqliteArtifact, pt.Indexer):  # type: ignore[misc]
    """The threads of a collection: question and answers, votes, comments, the accepted answer, tags, texts.

    If the collection lacks some data, its features are 0, and one warning names the data that all
    posts lack. A store opens its file on first use and can be pickled. An interrupted indexing job resumes when it is
    run again.

    Example::

        threads = ThreadStore("threads.mathamr").indexer().index(collection.posts())
        candidates = questions >> threads.answers() >> threads.metadata()

    Args:
        path: the folder of the store, built or not.
    """

    KIND, FILE = KIND, ThreadFile
    HOLDS = "post"

    schematic = {"label": "ThreadStore", "help_url": HELP_URL}  # noqa: RUF012

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._told: set[str] = set()

    def index(self, iter: pd.DataFrame | Iterable[Any]) -> ThreadStore:
        """Store posts, as ``indexer().index(iter)`` does."""
        return self.indexer().index(iter)

    def index_inputs(self) -> list[list[str]]:
        """List the keys of the dictionaries that :meth:`index` accepts."""
        return self.indexer().index_inputs()

    def more_counts(self) -> list[str]:
        """List the questions and answers, and the known data about them."""
        number = self._counts()
        known = [f"{number[name]:,} {'with ' * (name != 'accepted')}{text}" for name, text in _ABSENT.items()]
        return [counted(number["questions"], "question"), counted(number["answers"], "answer"), *known]

    indexer = method(ThreadStoreIndexer)
    answers = method(ThreadAnswers)
    questions = method(ThreadQuestions)
    metadata = method(ThreadMetadata)
    best_answer = method(BestAnswer)
    with_question = method(WithQuestion)
    parent_titles = method(ParentTitles)
    text_loader = method(ThreadTextLoader)

    def posts(self, ids: Sequence[DocNo]) -> list[ThreadPost]:
        """Look up posts, in the order of ``ids``.

        Raises:
            UnknownIdError: some are not in the store; the error names them.
        """
        return self._all(ids, self._file().posts(ids))

    def known_posts(self, ids: Iterable[DocNo]) -> list[ThreadPost]:
        """Look up posts, each once, in the order of ``ids``; unknown ids are left out."""
        return list(self._file().posts(ids).values())

    def answers_of(self, questions: Iterable[DocNo]) -> dict[DocNo, list[ThreadPost]]:
        """Look up the answers of questions, by docno; a question without answers is left out."""
        return self._file().answers(questions)

    def best_answers(self, questions: Iterable[DocNo]) -> dict[DocNo, DocNo]:
        """Look up the best answer of each thread that has one: the accepted answer, else the one with most votes.

        The paper is silent on ties and on threads without votes: unknown votes are 0, and of equal answers the first by
        docno is taken.
        """
        asked = list(dict.fromkeys(questions))
        accepted = {name: post.accepted_id for name, post in self._file().posts(asked).items()}
        return {
            question: max(answers, key=lambda post: (post.id == accepted.get(question), post.votes or 0)).id
            for question, answers in self.answers_of(asked).items()
        }

    def texts(self, ids: Sequence[DocNo]) -> list[tuple[str, str]]:
        """Look up title and body of posts as HTML, in the order of ``ids``; the title of an answer is empty.

        Raises:
            UnknownIdError: some are not in the store; the error names them.
        """
        return self._all(ids, self._file().texts(ids))

    def _all(self, ids: Sequence[DocNo], by_id: Mapping[DocNo, T]) -> list[T]:
        """Return the data of each post; unknown posts are an error that names them."""
        if unknown := [name for name in dict.fromkeys(ids) if name not in by_id]:
            raise UnknownIdError(self.path, unknown)
        return [by_id[name] for name in ids]

    def __contains__(self, id: object) -> bool:
        name = as_id(id)
        return name is not None and bool(self._file().posts([name]))

    def __iter__(self) -> Iterator[ThreadPost]:
        return self._file().all_posts()

    def unknown(self) -> list[str]:
        """List which of ``votes``, ``comments`` and ``accepted`` no post has."""
        number = self._counts()
        return [name for name in _ABSENT if not number[name]]

    def tell_unknown(self, *columns: str) -> None:
        """Warn, once for this object, of the features that are 0 since no post has them."""
        if absent := [name for name in columns if name in self.unknown() and name not in self._told]:
            self._told.update(absent)
            text = f"{self.path}: no post has {' or '.join(_ABSENT[name] for name in absent)}"
            warnings.warn(MathAMRWarning(f"{text}, so these columns are 0: {', '.join(absent)}"), stacklevel=3)

    def _counts(self) -> dict[str, int]:
        details = self.snapshot().manifest.details
        return {name: detail(details, name, int, self.path) for name in _COUNTS}

    def _file(self) -> ThreadFile:
        file: ThreadFile = self.snapshot().caches["file"]
        return file
