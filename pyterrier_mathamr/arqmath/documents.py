"""Posts as documents: their plain text, their number, and the name of the store that looks them up."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.posts import plain_text, post_from_html

from ._rows import read_chunks
from .posts import Post
from .records import ARQMathDoc

_ANSWER = re.compile(rb'PostTypeId="2"')
_POST = re.compile(rb'PostTypeId="[12]"')


def document(post: Post) -> ARQMathDoc:
    """Return a post as a document."""
    return ARQMathDoc(
        doc_id=post.id,
        kind=post.kind,
        parent_id=post.parent_id,
        title=post.title,
        body=post.body,
        text=plain_text(post_from_html(post.body, post.title)),
        tags=" ".join(post.tags),
        accepted_answer_id=post.accepted_answer_id,
        score=post.score,
        date=post.date,
    )


def count_posts(file: Path, *, answers_only: bool) -> int:
    """Count the rows of a dump by their type without parsing them: bad rows count too.

    Args:
        file: the dump, plain or gzipped.
        answers_only: leave the questions out.
    """
    kind = _ANSWER if answers_only else _POST
    count, rest = 0, b""
    for chunk in read_chunks(file):
        data = rest + chunk
        matches = list(kind.finditer(data))
        count += len(matches)
        rest = data[max(len(data) - 20, matches[-1].end() if matches else 0) :]
    return count


def store_name(file: Path, task: int) -> str:
    """Name the store of a dump's documents, so that another dump, or a changed one, gets a store of its own."""
    stat = file.stat()
    key = f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns} {__version__}"
    return f"task{task}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.pklz4"
