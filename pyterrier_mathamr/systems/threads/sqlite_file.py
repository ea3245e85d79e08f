"""The SQLite file of a thread store: its tables, and reading.

::

    post   number ── id, kind, question, accepted, votes, comments, tags      one row for each post, in their order
    text   number ── record                                                   zlib(JSON [title, body])
    progress                                                                  what an interrupted job has stored
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyterrier_mathamr._common.records import decompressed, parse_json
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.store import DamagedError, Kind, SqliteFile, id_text, in_batches, optional_number, sqlite_id

from .records import Record, ThreadPost

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
KINDS = ("question", "answer")
"""The kind of a post by its number in the table, from 1."""

_COLUMNS = "id, kind, question, accepted, votes, comments, tags"
INSERT_POST = f"INSERT INTO post (number, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_TEXT = "INSERT INTO text VALUES (?, ?)"
COUNTS = (
    "SELECT coalesce(sum(kind = 1), 0), coalesce(sum(kind = 2), 0), coalesce(sum(kind = 2 AND votes NOT NULL), 0), "
    "coalesce(sum(kind = 2 AND comments NOT NULL), 0), coalesce(sum(kind = 1 AND accepted NOT NULL), 0) FROM post"
)
"""Questions, answers, answers with votes, answers with comments, questions with an accepted answer."""


def post_row(post: ThreadPost) -> tuple[Any, ...]:
    """Return the values of a post's row."""
    question = post.question_id if post.kind == "answer" else ""
    ids = (sqlite_id(name) if name else None for name in (question, post.accepted_id))
    tags = " ".join(post.tags).encode("utf-8", "surrogatepass") or None
    return (sqlite_id(post.id), KINDS.index(post.kind) + 1, *ids, post.votes, post.comments, tags)


def pack_text(record: Record) -> bytes:
    """Compress title and body."""
    text = json.dumps([record.title, record.body], ensure_ascii=False)
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


class ThreadFile(SqliteFile):
    """The file of a thread store, open for reading; ids that it does not hold are left out."""

    SCHEMA = SCHEMA

    def posts(self, ids: Iterable[DocNo]) -> dict[DocNo, ThreadPost]:
        """Look up posts, in the order of ``ids``."""
        wanted = dict.fromkeys(ids)
        found = {post.id: post for post in self._posts(f"SELECT {_COLUMNS} FROM post WHERE id IN ({{}})", wanted)}
        return {name: found[name] for name in wanted if name in found}

    def answers(self, questions: Iterable[DocNo]) -> dict[DocNo, list[ThreadPost]]:
        """Look up the answers of questions, by docno."""
        query = f"SELECT {_COLUMNS} FROM post WHERE kind = 2 AND question IN ({{}})"
        found: dict[DocNo, list[ThreadPost]] = {}
        for post in sorted(self._posts(query, dict.fromkeys(questions)), key=lambda post: post.id):
            found.setdefault(post.question_id, []).append(post)
        return found

    def texts(self, ids: Iterable[DocNo]) -> dict[DocNo, tuple[str, str]]:
        """Look up title and body."""
        query = "SELECT id, record FROM post JOIN text USING (number) WHERE id IN ({})"
        found: dict[DocNo, tuple[str, str]] = {}
        for batch in in_batches(dict.fromkeys(ids)):
            for name, record in self.query(query, [sqlite_id(id) for id in batch]):
                try:
                    title, body = parse_json(decompressed(record))
                    found[id_text(name)] = (_text(title), _text(body))
                except (zlib.error, ValueError, TypeError) as error:
                    raise self._damaged(name) from error
        return found

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


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value
