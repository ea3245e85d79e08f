"""The posts of a source, read one at a time; those that cannot be read are named, and the others are kept."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.feedback import progress

from .document import Document, document_of
from .sources import DocumentError, Source, count_posts, records_of

T = TypeVar("T")

_NAMED = 5  # records that cannot be read are named in a warning, so many of them


def read_posts(source: Source, *, bare_formulas: bool = True) -> Iterator[tuple[str, Document | DocumentError]]:
    """Read the posts of a source, one at a time.

    Args:
        source: dictionaries, a frame, the path of a ``.jsonl`` file (also ``.gz``), or of a folder.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.

    Yields:
        The place of each post (line, file or number) and the post, or why it cannot be read.

    Raises:
        DocumentError: the source itself cannot be read.
    """
    seen: set[str] = set()
    for place, record in records_of(source):
        try:
            if isinstance(record, DocumentError):
                raise record
            document = document_of(place, record, bare_formulas)
        except DocumentError as error:
            yield place, error
        except MathAMRError as error:
            yield place, DocumentError(place, str(error).rstrip("."))
        except Exception as error:  # whatever one post does to its reader, the others are read
            yield place, DocumentError(place, f"it cannot be read ({type(error).__name__}: {error!s:.80})")
        else:
            again = document.docno in seen
            seen.add(document.docno)
            yield place, DocumentError(place, f"the id {document.docno!r:.80} came before") if again else document


def accepted_posts(source: Source, *, bare_formulas: bool = True, verbose: bool = False) -> Iterator[Document]:
    """Read the posts of a source that can be read; a warning at the end names those that cannot.

    Args:
        source: see :func:`read_posts`.
        bare_formulas: see :func:`read_posts`.
        verbose: show progress.

    Raises:
        DocumentError: a file or folder holds no post, or none of a source's posts can be read.
    """
    total = count_posts(source) if verbose else None
    read = progress(read_posts(source, bare_formulas=bare_formulas), "reading", "posts", verbose=verbose, total=total)
    yield from readable(read, "posts", str(source) if isinstance(source, str | Path) else None)


def readable(records: Iterable[tuple[str, T | DocumentError]], what: str, source: str | None) -> Iterator[T]:
    """Pass on the records that could be read, and warn of the others once, at the end.

    Args:
        records: the place of each, and the record or its error.
        what: what they are, in the plural.
        source: where they come from, if having none is an error.

    Raises:
        DocumentError: there was nothing to pass on; it is the error of the first record, where there is one.
    """
    errors: list[DocumentError] = []
    read = 0
    for _, record in records:
        if isinstance(record, DocumentError):
            errors.append(record)
        else:
            read += 1
            yield record
    if errors and not read:
        others = f"; none of {len(errors):,} {what} can be read" if len(errors) > 1 else ""
        raise DocumentError(errors[0].place, errors[0].reason + others)
    if source is not None and not read:
        raise DocumentError(source, f"it holds no {what}")
    if errors:
        named = " ".join(map(str, errors[:_NAMED])) + (" …" if len(errors) > _NAMED else "")
        text = f"{len(errors):,} of {len(errors) + read:,} {what} were left out: {named}"
        warnings.warn(MathAMRWarning(text), stacklevel=2)
