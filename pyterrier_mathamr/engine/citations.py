r"""Quotations: the exact place of a passage of a post, in the file that it was read from, with its lines.

::

    quotation ─┐
    post ──────┼─ symbols ─▶ the same ones in a row ─▶ file, first line – last line, the characters as they are there
    file ──────┘

Words, commands and signs are compared; white space, delimiters, braces and layout are not, and Unicode is compared as
LaTeX: ``$\sqrt{2}$`` in a post that was read is ``√2`` in its file. A file that has changed or
is gone is not cited; the indexed post is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr.posts import Document, DocumentError, latex_of_unicode, plain_text, post_from_html
from pyterrier_mathamr.posts.files import LARGEST_FILE, decoded
from pyterrier_mathamr.sparse.tokens import LAYOUT

from .origins import source_folder, source_path
from .posts import PostStore

LONGEST = 4_000
"""Characters of a quotation."""

_SYMBOL = re.compile(r"\\(?:begin|end)\s*\{[a-zA-Z*]*\}|\\[A-Za-z]+|\\.|[^\W\d_]+|\d|[^\s\w]|_", re.DOTALL)
_IGNORED = LAYOUT | {"*", "`", r"\(", r"\)", r"\[", r"\]", "\\{", "\\}", "\0"}
_CLOSEST = 200  # characters of the closest sentence


class Citation(NamedTuple):
    """The place of a quotation."""

    file: str  # the path in the source, or the docno if the indexed post is cited
    first: int  # the first line of the file; 0 if the post is cited
    last: int  # its last line
    text: str  # the characters at this place
    note: str = ""  # why the post is cited and not its file; else empty


def cited(posts: PostStore, docno: str, quotation: str) -> Citation:
    """Find a quotation of a post, in its file if it is still there.

    Raises:
        UnknownIdError: there is no such post. DocumentError: it is not in the post; gives the closest sentence.
    """
    [document] = posts.get_many([docno])
    post = post_from_html(document.html, document.title)
    stored = plain_text(post)
    wanted = [symbol for symbol, _, _ in _symbols(quotation)]
    if not wanted:
        raise DocumentError(docno, "the quotation has no words or symbols")
    inside = _find(wanted, list(_symbols(stored)), 0)
    source, note = _source(document)
    if source is not None:
        lines = source.split("\n", max(document.origin.line - 1, 0))
        begins = sum(len(line) + 1 for line in lines[:-1]) if len(lines) >= document.origin.line else 0
        place = _find(wanted, list(_symbols(source)), begins)
        if place is not None and (inside is not None or place[0] >= begins):
            first = source.count("\n", 0, place[0]) + 1
            text = source[slice(*_closed(source, *place))]
            return Citation(document.origin.file, first, first + text.count("\n"), text)
        note = f"{document.origin.file} does not contain these words any more; this is the post as it was indexed"
    if inside is None:
        closest = _closest(wanted, stored)
        raise DocumentError(docno, f"it does not contain the quotation; the closest sentence is “{closest}”")
    return Citation(docno, 0, 0, stored[slice(*_closed(stored, *inside))], note)


def _symbols(text: str) -> Iterator[tuple[str, int, int]]:
    """Cut a text into symbols to compare, each with its place."""
    for match in _SYMBOL.finditer(text):
        for symbol in _normal(match[0]):
            yield symbol, match.start(), match.end()


@lru_cache(maxsize=4096)
def _normal(symbol: str) -> tuple[str, ...]:
    """Write a symbol as it is compared: nothing for layout."""
    if symbol in _IGNORED or symbol.startswith((r"\begin", r"\end")):
        return ()
    if symbol.isascii() or (symbol.isalpha() and len(symbol) > 1):
        return (symbol.casefold(),) if symbol.isalpha() and len(symbol) > 1 else (symbol,)  # x and X are two variables
    latex = latex_of_unicode(symbol)
    return tuple(each for part in _SYMBOL.findall(latex) for each in ((part,) if part == symbol else _normal(part)))


def _find(wanted: Sequence[str], symbols: Sequence[tuple[str, int, int]], begins: int) -> tuple[int, int] | None:
    """Find symbols in a row, the first place from a character on, or else the first of all."""
    text, needle = (f"\0{chr(0).join(each)}\0" for each in ([symbol for symbol, _, _ in symbols], wanted))
    places = [0, *accumulate(len(symbol) + 1 for symbol, _, _ in symbols)]  # of the mark before each symbol
    at = text.find(needle, places[bisect_left(symbols, begins, key=itemgetter(1))])
    at = text.find(needle) if at < 0 else at
    if at < 0:
        return None
    first = bisect_left(places, at)
    return symbols[first][1], symbols[first + len(wanted) - 1][2]


def _closed(text: str, begin: int, end: int) -> tuple[int, int]:
    """Add the braces, dollars and stars after a place that are open in it: they were not compared."""
    while end < len(text) and text[end] in "}$*`":
        inside, mark = text[begin:end], text[end]
        is_open = inside.count("{") > inside.count("}") if mark == "}" else inside.count(mark) % 2
        if not is_open:
            break
        end += 1
    return begin, end


def _source(document: Document) -> tuple[str | None, str]:
    """Read the file that a post came from, or return why it cannot be cited."""
    origin = document.origin
    if not (origin.root and origin.kind):
        return None, "the post did not come from a file; this is the post as it was indexed"
    path = Path(source_path(origin))
    try:
        inside = path.resolve().is_relative_to(source_folder(origin).resolve())
        if not inside or not path.is_file() or path.stat().st_size > LARGEST_FILE:
            raise OSError
        return decoded(path.read_bytes()), ""
    except (OSError, ValueError):
        return None, f"{origin.file} can no longer be read; this is the post as it was indexed"


def _closest(wanted: Sequence[str], stored: str) -> str:
    """Return the line or sentence with most of the symbols."""
    asked = Counter(wanted)

    def share(sentence: str) -> float:
        symbols = Counter(symbol for symbol, _, _ in _symbols(sentence))
        return 2 * (symbols & asked).total() / max(symbols.total() + asked.total(), 1)

    best = max(re.split(r"(?<=[.?!])\s+|\n+", stored), key=share)
    return best if len(best) <= _CLOSEST else best[:_CLOSEST] + "…"
