"""One id for each formula of an engine, although people's HTML repeats its ids from post to post."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape, unescape
from itertools import islice

from pyterrier_mathamr.posts import Document

_ID = re.compile(r'(?<=<span class="math-container" id=")[^"]*')
_BATCH = 256


def distinct_formulas(
    documents: Iterable[Document], known: Callable[[Sequence[str]], Iterable[bool]]
) -> Iterator[Document]:
    """Give each formula whose id another one has an id of its own: ``basel#3``, by its post and its place there."""
    taken: set[int] = set()
    stream = iter(documents)
    while batch := list(islice(stream, _BATCH)):
        ids = sorted({unescape(name) for post in batch for name in _ID.findall(post.title + post.html)})
        taken.update(hash(name) for name, is_known in zip(ids, known(ids), strict=True) if is_known)
        for post in batch:
            yield _with_own_ids(post, taken)


def _with_own_ids(post: Document, taken: set[int]) -> Document:
    """Rename formulas of a post whose ids are taken, and take those that it keeps."""
    mine: set[str] = set()
    count = 0

    def own(match: re.Match[str]) -> str:
        nonlocal count
        name = unescape(match[0])
        copies = 0
        while name in mine or hash(name) in taken:
            name = f"{post.docno}#{count}" + (f".{copies}" if copies else "")
            copies += 1
        count += 1
        mine.add(name)
        return escape(name)

    renamed = Document(post.docno, _ID.sub(own, post.title), _ID.sub(own, post.html))
    taken.update(hash(name) for name in mine if not name.startswith(f"{post.docno}#"))
    return renamed
