"""Posts and formulas as documents: their plain text, their number, and the name of the store that looks them up."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.posts import plain_text, post_from_html

from ._rows import read_chunks
from .collection import ARQMathCollection
from .posts import Post
from .records import ARQMathDoc, ARQMathFormula

DocumentKind = Literal["posts", "questions", "answers", "formulas"]
"""What the documents of a dataset are."""

_ROW = {
    "posts": re.compile(rb'PostTypeId="[12]"'),
    "questions": re.compile(rb'PostTypeId="1"'),
    "answers": re.compile(rb'PostTypeId="2"'),
}


def read_documents(collection: ARQMathCollection, kind: DocumentKind) -> Iterator[Any]:
    """Read all documents of one kind, in the order of the release."""
    if kind == "formulas":
        for row in collection.formulas():
            yield ARQMathFormula(row.id, row.post_id, row.thread_id, row.type, row.visual_id, row.formula)
    else:
        yield from map(document, getattr(collection, kind)())


def source_files(collection: ARQMathCollection, kind: DocumentKind) -> tuple[Path, ...]:
    """Return the files that :func:`read_documents` reads."""
    return collection.need_latex_tables() if kind == "formulas" else (collection.posts_file,)


def count_documents(collection: ARQMathCollection, kind: DocumentKind) -> int:
    """Count the documents of one kind: rows of posts unparsed (bad ones count too), formulas by reading them."""
    if kind == "formulas":
        return sum(1 for _ in collection.formulas())
    return count_posts(collection.posts_file, kind)


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


def count_posts(file: Path, kind: DocumentKind) -> int:
    """Count the rows of a dump by their type without parsing them: bad rows count too.

    Args:
        file: the dump, plain or packed.
        kind: which posts.
    """
    row = _ROW[kind]
    count, rest = 0, b""
    for chunk in read_chunks(file):
        data = rest + chunk
        matches = list(row.finditer(data))
        count += len(matches)
        rest = data[max(len(data) - 20, matches[-1].end() if matches else 0) :]
    return count


def store_name(files: Iterable[Path], kind: DocumentKind) -> str:
    """Name the store of the documents of some files, so that other files, or changed ones, get one of their own."""
    state = ((file, file.stat()) for file in files)
    key = "".join(f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns} " for file, stat in state) + __version__
    return f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.sqlite"
