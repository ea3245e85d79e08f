"""A person's own posts, in any form, as the records from which indexes are built.

::

    dictionaries, a frame          docno | id,  title?,  html | body | text | contents | markdown | latex,
                                   parent? | parent_title?: the id or the title of the post that it answers
    posts.jsonl, posts.jsonl.gz    one such dictionary a line
    a folder                       notes/limits.md, a.tex, b.html, c.ipynb …: each file is split into units (statements)
        ──▶  Document(docno, title, html, …)   formulas found once, each with an id: ``limits.md#thm:cs#0``

A source consists of entries, each a file or a record, which are read one at a time; a warning names unreadable ones,
and the others are kept. Every index that is built of the posts reads these records, so that all indexes agree on
formulas and their ids.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.feedback import progress, report_problem
from pyterrier_mathamr._common.frames import documents as rows_of
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.ids import valid_id
from pyterrier_mathamr.store import InvalidIdError, row_fingerprint

from .files import LINES, SUFFIXES, UNREADABLE, UnreadFilesError, json_lines, lines_of, opened, path_text, why_unread
from .html import title_of_html
from .latex_document import read_latex
from .markdown import read_markdown, title_of_markdown
from .math_spans import with_hidden
from .note_files import note_entries, options_digest, read_macros
from .post import (
    LONGEST_ID,
    LONGEST_POST,
    Document,
    DocumentError,
    MathPost,
    Origin,
    ReadingOptions,
    SourceEntry,
    document_of,
    is_empty,
)
from .reading import check_texts, post_from_any, post_from_html, post_from_text, report_unclosed
from .tex_expansion import Expander
from .tex_macros import Definitions, Macro, Parameter

Source = pd.DataFrame | str | Path | Iterable[Mapping[str, Any]]

_HALF = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which no encoding of text has
_UNWRITABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")  # which no page can hold

SourceMacros = dict[str, dict[str, Macro]]
"""The macros of each source, by its root."""

IDS = ("docno", "id", "_id", "doc_id")
"""The keys that an id may have."""
_DEFAULT = ReadingOptions()
_NAMED = 5  # records that cannot be read are named in a warning, so many of them
T = TypeVar("T")


def source_entries(
    source: Source, reading: ReadingOptions = _DEFAULT, prefix: str = "", macros: SourceMacros | None = None
) -> Iterator[SourceEntry | DocumentError]:
    """Iterate over the files or records of a source; none is parsed before its ``read()`` is called.

    Args:
        source: dictionaries, a frame, the path of a ``.jsonl`` file (also ``.gz``), of a folder or of a file of notes.
        reading: how they are read.
        prefix: the prefix of the docnos of a folder's files.
        macros: gets the macros of the source.

    Yields:
        Each file or record, or why there is none; a file that cannot be opened has the digest 0. At the end an
        :class:`UnreadFilesError` for each kind of files of a folder that is not read.

    Raises:
        DocumentError: the source itself, or the file of macros, cannot be read.
    """
    macros = {} if macros is None else macros
    root = source_root(source)
    if isinstance(source, str | Path) and not Path(source).name.endswith(LINES):
        path = Path(source)
        if not path.is_dir() and (path.suffix.lower() not in SUFFIXES or not path.is_file()):
            reason = f"no such folder, .jsonl file or file of {', '.join(SUFFIXES)}"
            raise DocumentError(path_text(path), why_unread(path) or reason)
        yield from note_entries(path, reading, prefix, macros.setdefault(root, {}))
        return
    known, digest = read_macros(*([Path(reading.macros)] if reading.macros else []))
    macros[root] = known.macros
    options = options_digest(reading, digest)
    for place, record in _records(source):
        if isinstance(record, DocumentError):
            yield record
            continue
        key = str(record[name]) if (name := _id_key(record)) else place
        fingerprint = row_fingerprint({**record, "\0options": options})
        read = partial(_documents, place, record, reading.bare_formulas, known, Origin(root, key))
        yield SourceEntry(place, root, key, fingerprint, read, row_fingerprint(record))


def macros_read(stored: Mapping[str, Any]) -> SourceMacros:
    """Read macros that were written as JSON.

    Raises:
        ValueError, TypeError, AttributeError: they are malformed.
    """

    def macro(parameters: Sequence[Sequence[str]], body: Sequence[str | int]) -> Macro:
        if not all(isinstance(piece, str | int) for piece in body):
            raise ValueError(f"{body!r:.80} is not the text of one")
        return Macro(tuple(Parameter(*map(str, parameter)) for parameter in parameters), tuple(body))

    return {root: {name: macro(*of) for name, of in macros.items()} for root, macros in stored.items()}


def source_root(source: Source) -> str:
    """Return the folder or file that a source is, as :class:`Origin` has it; nothing for dictionaries and frames."""
    return path_text(Path(source).absolute()) if isinstance(source, str | Path) else ""


def _records(source: Source) -> Iterator[tuple[str, Mapping[str, Any] | DocumentError]]:
    """Iterate over the dictionaries of a source, each with its place."""
    if isinstance(source, str | Path):
        yield from json_lines(Path(source))
        return
    if not isinstance(source, Iterable):
        raise DocumentError("posts", f"no dictionaries, frame or path, but {type(source).__name__}")
    for number, record in enumerate(rows_of(source), start=1):
        place = f"post {number}"
        if isinstance(record, Mapping):
            yield place, record
        else:
            yield place, DocumentError(place, f"no dictionary with an id and a text, but {record!r:.80}")


def count_posts(source: Source) -> int | None:
    """Count the posts of a source without reading them; ``None`` for a source that can be read only once."""
    if not isinstance(source, str | Path):
        return len(source) if isinstance(source, Sized) else None
    path = Path(source)
    if not path.name.endswith(LINES) or not path.is_file():
        return None  # the posts of a file are known when it is read
    try:
        with opened(path) as file:
            return sum(line is None or not line.isspace() for line in lines_of(file))
    except UNREADABLE:
        return None  # reading the posts reports the error


TEXTS = ("html", "body", "text", "contents", "markdown", "latex")


def _documents(
    place: str, given: Mapping[str, Any], bare: bool, known: Definitions, origin: Origin
) -> Iterator[Document]:
    """Read one post: its id, and its text in the form given by the column's name."""
    name = _id_key(given)
    if not name or not str(given[name]).strip():
        raise InvalidIdError(place, f"no id; give one of {', '.join(IDS)}")
    docno = valid_id(given[name], place, name)
    if unwritable := _UNWRITABLE.search(docno):
        what = "a control character" if unwritable[0] > "\udfff" else "half of a surrogate pair"
        where = f"{what} at place {unwritable.start() + 1:,}"
        raise InvalidIdError(place, f"its {name} {docno!r:.80} has {where}; give another")
    if len(docno) > LONGEST_ID:
        reason = f"its {name} {docno[:40]!r}… has {len(docno):,} characters, more than {LONGEST_ID:,}"
        raise InvalidIdError(place, reason)
    record = {name: _HALF.sub("\ufffd", text) if isinstance(text, str) else text for name, text in given.items()}
    kind = next((name for name in TEXTS if not is_missing(record.get(name))), "")
    if not kind:
        names = ", ".join(sorted(map(str, record))) or "nothing"
        raise DocumentError(place, f"no text; give one of {', '.join(TEXTS)}, not {names}")
    title, above = ("" if is_missing(record.get(name)) else record[name] for name in ("title", "parent_title"))
    check_texts(title, record[kind], above)
    for text in (title, above, record[kind]):
        if len(text) > LONGEST_POST:
            raise DocumentError(place, f"its {len(text):,} characters are more than {LONGEST_POST:,}; split it")
    title, body = _title_and_body(docno, kind, title, record[kind], bare, known)
    above = post_from_any(above, bare_formulas=bare)
    for post in (title, body, above):
        report_unclosed(docno, post)
    if is_empty(title, body):
        raise DocumentError(place, "the post is empty: it has neither a word nor a formula")
    parent = record.get("parent")
    if isinstance(parent, bool | list | tuple | dict):
        raise DocumentError(place, f"its parent is {parent!r:.80}, neither a text nor a number")
    if isinstance(parent, float) and parent.is_integer():
        parent = int(parent)  # gaps make floats
    parent = "" if is_missing(parent) or str(parent) == docno else str(parent)
    yield document_of(docno, title, body, above, origin, parent)


def _id_key(record: Mapping[str, Any]) -> str:
    """Return the key of a record's id, the first that has a value; empty for a record without an id."""
    return next((name for name in IDS if not is_missing(record.get(name))), "")


def _title_and_body(
    docno: str, kind: str, title: str, text: str, bare: bool, known: Definitions
) -> tuple[MathPost, MathPost]:
    post_from: Callable[..., MathPost] = post_from_html if kind in ("html", "markdown") else post_from_any
    problems: dict[str, str] = {}
    inner_title = ""
    if kind == "latex":
        inner_title, text, problems = read_latex(text, known)
        post_from = post_from_text
    elif kind == "markdown":
        if not title:
            title, text = title_of_markdown(text)
        (title, text), problems = read_markdown(title, text, known=known)
        text = with_hidden(text)
    elif kind == "html":
        inner_title, text = title_of_html(text)
    for what, where in problems.items():
        report_problem(docno, what, where)
    posts = post_from(title or inner_title, bare_formulas=bare), post_from(text, bare_formulas=bare)
    if kind in ("latex", "markdown"):
        return posts
    expander = Expander(known, length=len(posts[1].text))
    return posts[0].with_macros(expander.formula), posts[1].with_macros(expander.formula)


def read_posts(
    source: Source, reading: ReadingOptions = _DEFAULT, prefix: str = "", macros: SourceMacros | None = None
) -> Iterator[tuple[str, Document | DocumentError]]:
    """Read the posts of a source, one at a time.

    Args:
        source: dictionaries, a frame, the path of a ``.jsonl`` file (also ``.gz``), of a folder or of a file of notes.
        reading: how they are read.
        prefix: the prefix of the docnos of a folder's files.
        macros: gets the macros of the source.

    Yields:
        The place of each post (line, file or number) and the post, or why it cannot be read.

    Raises:
        DocumentError: the source itself cannot be read.
    """
    yield from distinct_posts(
        (entry.place, document)
        for entry in source_entries(source, reading, prefix, macros)
        for document in ([entry] if isinstance(entry, DocumentError) else entry.documents())
    )


def distinct_posts(
    posts: Iterable[tuple[str, Document | DocumentError]],
) -> Iterator[tuple[str, Document | DocumentError]]:
    """Replace each post whose id came before by an error."""
    seen: set[str] = set()
    for place, document in posts:
        if isinstance(document, DocumentError) or document.docno not in seen:
            yield place, document
        else:
            yield place, DocumentError(place, f"the id {document.docno!r:.80} came before")
        if isinstance(document, Document):
            seen.add(document.docno)


def accepted_posts(
    source: Source,
    reading: ReadingOptions = _DEFAULT,
    prefix: str = "",
    macros: SourceMacros | None = None,
    *,
    verbose: bool = False,
) -> Iterator[Document]:
    """Read the posts of a source; a warning at the end names unreadable ones and the reasons.

    Args:
        source: dictionaries, a frame, the path of a ``.jsonl`` file (also ``.gz``), of a folder or of a file of notes.
        reading: how to read them.
        prefix: the prefix of the docnos of a folder's files.
        macros: gets the macros of the source.
        verbose: show progress.

    Raises:
        DocumentError: a file or folder holds no post, or none of a source's posts can be read.
    """
    total = count_posts(source) if verbose else None
    read = progress(read_posts(source, reading, prefix, macros), "reading", "posts", verbose=verbose, total=total)
    yield from readable(read, "posts", str(source) if isinstance(source, str | Path) else None)


def readable(records: Iterable[tuple[str, T | DocumentError]], what: str, source: str | None) -> Iterator[T]:
    """Pass on the records that could be read, and warn of the others once, at the end.

    Args:
        records: the place of each, and the record or its error.
        what: their kind, in the plural.
        source: their source, if it is an error that there are none.

    Raises:
        DocumentError: there was nothing to pass on; the error of the first record, if any.
    """
    errors: list[DocumentError] = []
    read = 0
    for _, record in records:
        if isinstance(record, DocumentError):
            errors.append(record)
        else:
            read += 1
            yield record
    left_out = [error for error in errors if not isinstance(error, UnreadFilesError)]
    if left_out and not read:
        others = f"; none of {len(left_out):,} {what} can be read" if len(left_out) > 1 else ""
        raise type(left_out[0])(left_out[0].place, left_out[0].reason + others)
    if source is not None and not read:
        unread = (f"{error.place}: {error.reason}" for error in errors)
        raise DocumentError(source, "; ".join([f"it holds no {what}", *unread, "name another source"]))
    warn_of_left_out(errors, f"of {len(left_out) + read:,} {what}")


def warn_of_left_out(errors: Iterable[DocumentError], of: str) -> None:
    """Warn once of the ``errors`` that left out things ``of`` some kind, and of files of kinds that are not read."""
    errors = list(errors)
    unread = [error for error in errors if isinstance(error, UnreadFilesError)]
    left_out = [error for error in errors if not isinstance(error, UnreadFilesError)]
    places_of: dict[str, list[str]] = {}  # by reason
    for error in left_out:
        places_of.setdefault(error.reason, []).append(error.place)
    reasons = [
        f"{', '.join(each[:_NAMED])}{f' and {len(each) - _NAMED:,} more' if len(each) > _NAMED else ''}: {reason}."
        for reason, each in places_of.items()
    ]
    named = " ".join(reasons[:_NAMED]) + (" …" if len(reasons) > _NAMED else "")
    parts = [f"{len(left_out):,} {of} were left out: {named}"] if left_out else []
    parts += ["Not read: " + " ".join(map(str, unread))] if unread else []
    if parts:
        warnings.warn(MathAMRWarning(" ".join(parts)), stacklevel=3)


# ---- folders in BEIR's layout, in which many collections with judgments are distributed
#
#     corpus.jsonl      {"_id": "d1", "title": "Limits", "text": "Let $f$ be …"}      or corpus.jsonl.gz
#     queries.jsonl     {"_id": "q1", "text": "Is $f$ bounded?"}                      or queries.jsonl.gz
#     qrels/test.tsv    query-id  corpus-id  score                                    and dev.tsv, train.tsv

_BEIR_TEXTS = ("_id", "text")


class Judgment(NamedTuple):
    """A grade of a document for a query."""

    query_id: str
    doc_id: str
    relevance: int


class BeirFolder:
    """A collection in BEIR's layout.

    Args:
        path: the folder.

    Raises:
        DocumentError: a file is missing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        for name in ("corpus", "queries"):
            self._file(name)
        if not self.splits:
            raise DocumentError(str(self.path / "qrels"), "it holds no judgments such as test.tsv")

    @staticmethod
    def found(path: str | Path) -> bool:
        """Return whether a path is such a folder, by the names of its files."""
        folder = Path(path)
        return (folder / "qrels").is_dir() and any(folder.glob("corpus.jsonl*")) and any(folder.glob("queries.jsonl*"))

    @cached_property
    def splits(self) -> tuple[str, ...]:
        """The names of the files of judgments: ``test``, ``dev``, …."""
        return tuple(sorted(file.stem for file in (self.path / "qrels").glob("*.tsv")))

    def split(self, name: str | None = None) -> str:
        """Return the name of a split.

        Args:
            name: of a split; by default ``test``, or the only one.

        Raises:
            ConfigError: there is none of this name.
        """
        chosen = name or (self.splits[0] if len(self.splits) == 1 else "test")
        if chosen not in self.splits:
            raise ConfigError("split", chosen, f"one of {', '.join(self.splits)} of {self.path}")
        return chosen

    def documents(self) -> Iterator[dict[str, str]]:
        """Read the documents: ``docno``, ``title`` (if there is one) and ``text``.

        A line that is not a document is left out, with a warning at the end.
        """
        for record in readable(json_lines(self._file("corpus"), _BEIR_TEXTS), "documents", str(self.path)):
            title = {"title": str(record["title"])} if record.get("title") else {}
            yield {"docno": record["_id"], **title, "text": record["text"]}

    def queries(self) -> Iterator[tuple[str, str]]:
        """Read the queries of all splits: id and text."""
        for record in readable(json_lines(self._file("queries"), _BEIR_TEXTS), "queries", str(self.path)):
            yield record["_id"], record["text"]

    def judgments(self, split: str | None = None) -> Iterator[Judgment]:
        """Read the judgments of a split.

        Args:
            split: the name of the file; by default ``test``, or the only one.

        Raises:
            DocumentError: a line has no three columns, or its grade is not a number.
        """
        file = self.path / "qrels" / f"{self.split(split)}.tsv"
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                cells = line.rstrip("\r\n").split("\t")
                try:
                    is_number = math.isfinite(grade := float(cells[-1]))
                except ValueError:
                    is_number = False
                if not line.strip() or (number == 1 and not is_number):
                    continue  # the header
                if len(cells) != 3 or not is_number:
                    reason = "it is not query-id, corpus-id and score separated by tabs"
                    raise DocumentError(f"{file}, line {number}", reason)
                yield Judgment(cells[0], cells[1], int(grade))

    def count(self) -> int:
        """Count the documents, without reading them as JSON."""
        return sum(1 for _ in json_lines(self._file("corpus"), _BEIR_TEXTS))

    def files(self) -> tuple[Path, ...]:
        """List all files, whose content the collection is."""
        return (self._file("corpus"), self._file("queries"), *sorted((self.path / "qrels").glob("*.tsv")))

    def _file(self, name: str) -> Path:
        """Find a file, plain or gzipped."""
        for ending in (".jsonl", ".jsonl.gz"):
            if (file := self.path / f"{name}{ending}").is_file():
                return file
        raise DocumentError(str(self.path / f"{name}.jsonl"), "there is no such file, which BEIR's layout requires")
