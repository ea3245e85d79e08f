"""The posts of the release: ``Posts.V1.3.xml``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from lxml import etree

from pyterrier_mathamr._common.types import DocNo

from .rows import SeenIds, read_rows
from .rules import BadRows

PostKind = Literal["question", "answer"]

_KINDS: dict[str, PostKind] = {"1": "question", "2": "answer"}
_TAG = re.compile(r"[^<>|,\s]+")
_NUMBER = re.compile(r"[-+]?\d{1,18}")


class Post(NamedTuple):
    """A question or an answer; all but ``id`` and ``kind`` may be missing in the dump."""

    id: DocNo
    kind: PostKind
    title: str  # HTML; "" for an answer
    body: str  # HTML, formulas as <span class="math-container" id="…">
    tags: tuple[str, ...]
    parent_id: DocNo  # the question of an answer; "" for a question
    accepted_answer_id: DocNo  # "" where the question has none
    score: int | None
    date: str | None  # CreationDate as written, ISO 8601
    comment_count: int | None = None


def read_posts(path: str | Path) -> Iterator[Post]:
    """Read the questions and answers of a dump; other kinds of post, such as wikis, are skipped.

    Rows that break a rule (P101 to P108 of :data:`~pyterrier_mathamr.arqmath.RULES`) are reported as warnings that name
    file and line, and the rest is read; a truncated file causes a warning after its last complete post.

    Args:
        path: ``Posts.V1.3.xml`` or an earlier version, plain or gzipped.

    Yields:
        The posts in the order of the file, each id once.

    Raises:
        FileFormatError: the file is no dump of posts.
    """
    path = Path(path)
    seen = SeenIds()
    with BadRows(path) as report:
        for line, row in read_rows(path, report):
            post = _post(row, line, report)
            if post is None:
                continue
            if seen.add(post.id):
                yield post
            else:
                report("P108", line, f"post {post.id}")


def parse_tags(text: str) -> tuple[str, ...]:
    """Read a list of tags: ``<calculus><limits>``, ``|calculus|limits|`` or ``calculus,limits``."""
    return tuple(_TAG.findall(text))


def _post(row: etree._Element, line: int, report: BadRows) -> Post | None:
    get = row.get
    post_id, kind = get("Id", "").strip(), get("PostTypeId", "").strip()
    if not post_id:
        report("P102", line, "row")
        return None
    if not kind.isdecimal():
        report("P103", line, f"post {post_id}")
        return None
    if kind not in _KINDS:
        return None
    numbers: dict[str, int | None] = {}
    for name in ("Score", "CommentCount"):
        number = get(name)
        if number is not None and not _NUMBER.fullmatch(number):
            report("P104", line, f"post {post_id}, {name}={number[:40]!r}")
            number = None
        numbers[name] = None if number is None else int(number)
    return Post(
        id=post_id,
        kind=_KINDS[kind],
        title=get("Title", ""),
        body=get("Body", ""),
        tags=parse_tags(get("Tags", "")),
        parent_id=get("ParentId", "").strip(),
        accepted_answer_id=get("AcceptedAnswerId", "").strip(),
        score=numbers["Score"],
        date=get("CreationDate"),
        comment_count=numbers["CommentCount"],
    )
