"""A person's own posts, in whatever form they are, as the records that indexes are built from.

::

    dictionaries, a frame          docno | id,  title?,  html | body | text | contents | markdown | latex,
                                   parent? | parent_title?: the id or the title of the post that it answers
    posts.jsonl, posts.jsonl.gz    one such dictionary a line
    a folder                       notes/limits.md, a.tex, b.html, c.txt: the path is the docno, without its ending
        ──▶  Document(docno, title, html, …)   formulas found once, each with an id: ``notes/limits#0``

Posts are read one at a time; those that cannot be read are named, and the others are kept. Every index that is built of
them reads these records, so that all of them agree on what a formula is and on its id.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from datetime import UTC, datetime
from functools import partial
from html import escape
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, cast

import pandas as pd

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.feedback import progress, tell
from pyterrier_mathamr._common.frames import documents as rows_of
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.store import row_fingerprint

from .html import title_of_html
from .latex_document import read_latex
from .markdown import read_markdown, title_of_markdown
from .post import PLACEHOLDER, DocumentError, MathPost, formula_id
from .reading import post_from_any, post_from_html, post_from_text, tell_unclosed

Source = pd.DataFrame | str | Path | Iterable[Mapping[str, Any]]

_SUFFIXES = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
    ".txt": "text",
}
_LINES = (".jsonl", ".jsonl.gz", ".ndjson")
_HALF = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which no encoding of text has
_REPLACEMENT = "\ufffd"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")  # which no page can hold
_UNREADABLE = (OSError, EOFError, zlib.error)

IDS = ("docno", "id", "_id", "doc_id")
"""The keys that an id may have."""
LARGEST_FILE = 50_000_000
"""Bytes of a file of text."""
LONGEST_LINE = 64_000_000
"""Bytes of a line of JSON, decompressed."""
LONGEST_ID = 300
"""Characters of an id, which the ids of its formulas repeat."""


class Origin(NamedTuple):
    """Where a post was read.

    Attributes:
        root: the folder or file that was given as a source; empty for dictionaries and frames.
        file: the path in that folder, with its ending; of other sources the docno.
        line: the line of the file where the post begins, from 1; 0 where it is the whole file or no file.
        section: titles of the sections that it is in, the outermost first, joined by `` › ``.
        kind: ``theorem``, ``proof``, ``section`` and the like; ``file`` for a whole file, empty for a record.
        date: the day on which it was changed last, as in 2026-01-31; empty where that is unknown.
        proves: docno of the statement that it proves; empty for anything but a proof.
    """

    root: str = ""
    file: str = ""
    line: int = 0
    section: str = ""
    kind: str = ""
    date: str = ""
    proves: str = ""


class Document(NamedTuple):
    """A post as it is indexed.

    Attributes:
        docno: its id.
        title: HTML of its title, formulas as math containers; may be empty.
        html: HTML of its body, likewise.
        parent: the id of the post that it answers, or empty.
        parent_title: HTML of the title of that post, where it was given.
        origin: where it was read.
        entry: fingerprint of the name of the file or record that it was read from.
        digest: fingerprint of the content of that file or record.
    """

    docno: str
    title: str
    html: str
    parent: str = ""
    parent_title: str = ""
    origin: Origin = Origin()
    entry: int = 0
    digest: int = 0

    def record(self) -> dict[str, str]:
        """Return the columns that builders and indexers read; of the other post where they are not empty."""
        columns = {"docno": self.docno, "title": self.title, "html": self.html}
        of_parent = {"parent": self.parent, "parent_title": self.parent_title}
        return {**columns, **{name: text for name, text in of_parent.items() if text}}


class SourceEntry(NamedTuple):
    """What of a source changes as a whole: a file of a folder, or a record.

    Attributes:
        place: file, line or number, as errors name it.
        root: see :class:`Origin`.
        key: the file, or the id of the record; unique in its source.
        digest: fingerprint of its content, and of whatever else its posts depend on.
        read: reads its posts, each or why it cannot be read; :meth:`documents` also marks them as of this entry.
    """

    place: str
    root: str
    key: str
    digest: int
    read: Callable[[], Iterable[Document | DocumentError]]

    @property
    def fingerprint(self) -> int:
        """What identifies the entry among all sources."""
        return row_fingerprint({"root": self.root, "key": self.key})

    def documents(self) -> Iterator[Document | DocumentError]:
        """Read the posts."""
        entry = self.fingerprint
        for document in self.read():
            if isinstance(document, Document):
                document = document._replace(entry=entry, digest=self.digest)
            yield document


def source_entries(
    source: Source, *, prefix: str = "", bare_formulas: bool = True
) -> Iterator[SourceEntry | DocumentError]:
    """Iterate over the files or records of a source; none is parsed before its ``read()`` is called.

    Args:
        source: see :func:`read_posts`.
        prefix: what the docnos of a folder's files begin with.
        bare_formulas: see :func:`read_posts`.

    Yields:
        Each file and record, or why there is none; a file that cannot be opened has the digest 0.

    Raises:
        DocumentError: the source itself cannot be read.
    """
    root = source_root(source)
    for place, record, file, date in _records(source, prefix):
        if isinstance(record, DocumentError):
            yield SourceEntry(place, root, file, 0, partial(iter, [record])) if file else record
            continue
        key = file or next((str(record[name]) for name in IDS if not is_missing(record.get(name))), place)
        origin = Origin(root, key, kind="file" if file else "", date=date)
        digest = row_fingerprint({**record, "bare_formulas": bare_formulas})
        yield SourceEntry(place, root, key, digest, _reader(place, record, bare_formulas, origin))


def source_root(source: Source) -> str:
    """Return the folder or file that a source is, as :class:`Origin` has it; nothing for dictionaries and frames."""
    return _text_of(Path(source).absolute()) if isinstance(source, str | Path) else ""


def _reader(
    place: str, record: Mapping[str, Any], bare_formulas: bool, origin: Origin
) -> Callable[[], Iterator[Document | DocumentError]]:
    def read() -> Iterator[Document | DocumentError]:
        try:
            yield _document(place, record, bare_formulas)._replace(origin=origin)
        except DocumentError as error:
            yield DocumentError(place, error.reason)
        except MathAMRError as error:
            yield DocumentError(place, str(error).rstrip("."))
        except Exception as error:  # whatever one post does to its reader, the others are read
            yield DocumentError(place, f"it cannot be read ({type(error).__name__}: {error!s:.80})")

    return read


class _Record(NamedTuple):
    """A post as it was given, or why there is none at its place; with the file of a folder, and its date."""

    place: str
    record: Mapping[str, Any] | DocumentError
    file: str = ""
    date: str = ""


def _records(source: Source, prefix: str) -> Iterator[_Record]:
    """Iterate over the dictionaries of a source, each with its place."""
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_dir():
            yield from _folder(path, prefix)
        elif path.name.endswith(_LINES):
            yield from (_Record(place, record) for place, record in json_lines(path))
        elif path.suffix.lower() in _SUFFIXES and path.is_file():
            yield _Record(_text_of(path), _file(path, _text_of(path.stem)), _text_of(path.name), _date_of(path))
        else:
            known = ", ".join(_SUFFIXES)
            raise DocumentError(_text_of(path), f"no such folder, .jsonl file or file of {known}")
        return
    if not isinstance(source, Iterable):
        raise DocumentError("posts", f"no dictionaries, frame or path, but {type(source).__name__}")
    for number, record in enumerate(rows_of(source), start=1):
        place = f"post {number}"
        if isinstance(record, Mapping):
            yield _Record(place, record)
        else:
            yield _Record(place, DocumentError(place, f"no dictionary with an id and a text, but {record!r:.80}"))


def _folder(path: Path, prefix: str) -> Iterator[_Record]:
    files, left_out = _found(path)
    if not files and not left_out:
        raise DocumentError(_text_of(path), f"the folder has no files of {', '.join(_SUFFIXES)}")
    alike = Counter(file.with_suffix("") for file in files)
    for file in files:
        name = file if alike[file.with_suffix("")] > 1 else file.with_suffix("")
        relative = [_text_of(each.relative_to(path).as_posix()) for each in (name, file)]
        yield _Record(_text_of(file), _file(file, prefix + relative[0]), relative[1], _date_of(file))
    yield from (_Record(error.place, error) for error in left_out)


def _date_of(path: Path) -> str:
    """Return the day on which a file was changed last, in universal time; nothing for one that has vanished."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    except (OSError, OverflowError, ValueError):
        return ""


def _text_of(path: Path | str) -> str:
    r"""Write a path as text, the same in every locale; bytes of it that are no UTF-8 as ``\xe9``."""
    try:
        data = os.fsencode(path)
    except UnicodeEncodeError:
        data = str(path).encode("utf-8", "surrogatepass")
    return data.decode("utf-8", "backslashreplace")


def _file(path: Path, docno: str) -> dict[str, str] | DocumentError:
    """Read a file of text, or say why it cannot be read."""
    place = _text_of(path)
    try:
        with _regular(path) as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            return DocumentError(place, f"it has more than {LARGEST_FILE:,} bytes; split it")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return DocumentError(place, f"it is no UTF-8 from byte {error.start:,} on; save it as UTF-8")
    except OSError as error:
        return DocumentError(place, f"it cannot be read ({error.strerror or error})")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return {"docno": docno, _SUFFIXES[path.suffix.lower()]: text, "title_or": _text_of(path.stem)}


def _regular(path: Path) -> IO[bytes]:
    """Open a regular file; another one, such as a FIFO that may have come in its place, is not waited for."""
    waits_not = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | waits_not))  # noqa: SIM115 - it is returned
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("no regular file")
    return file


def json_lines(path: Path, texts: Sequence[str] = ()) -> Iterator[tuple[str, dict[str, Any] | DocumentError]]:
    """Read a file with a JSON object in each line, plain or gzipped.

    Args:
        path: of the file.
        texts: the fields of an object that are texts.

    Yields:
        The place of each line that is not blank, and its object or why it is none.

    Raises:
        DocumentError: the file cannot be read.
    """
    try:
        with _opened(path) as file:
            for number, line in enumerate(_lines(file), start=1):
                if not (line is None or line.strip()):
                    continue
                place = f"{_text_of(path)}, line {number}"
                try:
                    if line is None:
                        raise ValueError(f"the line has more than {LONGEST_LINE:,} bytes")
                    record = parse_json(line)
                except ValueError as error:
                    yield place, DocumentError(place, f"no JSON ({error})")
                    continue
                if not isinstance(record, dict):
                    yield place, DocumentError(place, "no JSON object")
                elif not all(isinstance(record.get(field), str) for field in texts):
                    yield place, DocumentError(place, f"no object with the texts {', '.join(texts)}")
                else:
                    yield place, record
    except _UNREADABLE as error:
        raise DocumentError(_text_of(path), f"it cannot be read ({error})") from error


def _lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """Read the lines of a file; ``None`` for one that is too long."""
    while line := file.readline(LONGEST_LINE + 1):
        long = len(line) > LONGEST_LINE and not line.endswith(b"\n")
        yield None if long else line
        while long:
            rest = file.readline(1 << 20)
            long = bool(rest) and not rest.endswith(b"\n")


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


class _Found(NamedTuple):
    """The posts in a folder, in order of their paths, and what is left out."""

    files: list[Path]
    left_out: list[DocumentError]


def _found(folder: Path) -> _Found:
    """List what is in a folder; folders that are links are not entered."""
    found, links = _Found([], []), list[Path]()

    def unreadable(error: OSError) -> None:
        found.left_out.append(DocumentError(_text_of(error.filename), f"it cannot be read ({error.strerror or error})"))

    for place, folders, names in os.walk(folder, onerror=unreadable):
        here = Path(place)
        folders[:] = [name for name in folders if not name.startswith(".")]
        links += (here / name for name in folders if (here / name).is_symlink())
        for path in (here / name for name in names if not name.startswith(".")):
            if path.suffix.lower() not in _SUFFIXES:
                continue
            if path.is_symlink():
                links.append(path)
            elif path.is_file():
                found.files.append(path)
            else:
                found.left_out.append(DocumentError(_text_of(path), "it is no regular file"))
    known = {folder.resolve() / file.relative_to(folder) for file in found.files} if links else set()
    _follow(sorted(links), folder.resolve(), found, known)
    found.files.sort()
    found.left_out.sort(key=str)
    return found


def _follow(links: Iterable[Path], root: Path, found: _Found, known: set[Path]) -> None:
    """Add the files in the folder to which only links lead."""
    for link in links:
        try:
            target = link.resolve(strict=True)
        except (OSError, RuntimeError):  # a link to nothing, or to itself
            found.left_out.append(DocumentError(_text_of(link), "it links to nothing"))
            continue
        if not target.is_relative_to(root):
            reason = f"it links to {_text_of(target)}, which is not in the folder; copy that to it"
            found.left_out.append(DocumentError(_text_of(link), reason))
        elif target.is_file() and target not in known:
            known.add(target)
            found.files.append(link)


def post_files(folder: Path) -> list[Path]:
    """List the posts in a folder in order of their paths, but for those in hidden folders."""
    return _found(folder).files


def count_posts(source: Source) -> int | None:
    """Count the posts of a source without reading them; ``None`` for what can be read only once."""
    if not isinstance(source, str | Path):
        return len(source) if isinstance(source, Sized) else None
    path = Path(source)
    if path.is_dir():
        files, left_out = _found(path)
        return len(files) + len(left_out)
    if not path.name.endswith(_LINES) or not path.is_file():
        return None
    try:
        with _opened(path) as file:
            return sum(line is None or not line.isspace() for line in _lines(file))
    except _UNREADABLE:
        return None  # reading the posts says what is wrong


_TEXTS = ("html", "body", "text", "contents", "markdown", "latex")

LONGEST_POST = 10_000_000
"""Characters of a title or text."""


def _document(place: str, given: Mapping[str, Any], bare_formulas: bool) -> Document:
    """Read one post: its id, and its text in the form that the name of the column says."""
    docno = _docno(place, given)
    record = {name: _HALF.sub(_REPLACEMENT, text) if isinstance(text, str) else text for name, text in given.items()}
    kind = next((name for name in _TEXTS if not is_missing(record.get(name))), "")
    if not kind:
        found = ", ".join(sorted(map(str, record))) or "nothing"
        raise DocumentError(place, f"no text; give one of {', '.join(_TEXTS)}, not {found}")
    title, parent_title = ("" if is_missing(record.get(name)) else record[name] for name in ("title", "parent_title"))
    for text in (title, parent_title, record[kind]):
        if isinstance(text, str) and len(text) > LONGEST_POST:
            raise DocumentError(place, f"its {len(text):,} characters are more than {LONGEST_POST:,}; split it")
    posts = _read_parts(docno, kind, record[kind], title, bare_formulas)
    title_post, body = (tell_unclosed(docno, post) for post in posts)
    if not title_post.text and isinstance(record.get("title_or"), str):
        title_post = post_from_text(record["title_or"])
    if not title_post.text and not body.text:
        raise DocumentError(place, "the post is empty")
    title_html = _html(docno, title_post.in_latex(), 0)
    html = _html(docno, body.in_latex(), len(title_post.formulas))
    of_parent = _html("", tell_unclosed(docno, post_from_any(parent_title, bare_formulas=bare_formulas)).in_latex(), 0)
    return Document(docno, title_html, html, _parent(place, docno, record), of_parent)


def _parent(place: str, docno: str, record: Mapping[str, Any]) -> str:
    """Return the id of the post that a post answers."""
    parent = record.get("parent")
    if isinstance(parent, bool | list | tuple | dict):
        raise DocumentError(place, f"its parent is {parent!r:.80}, neither a text nor a number")
    if is_missing(parent):
        return ""
    name = str(int(parent) if isinstance(parent, float) and parent.is_integer() else parent)  # numbers beside gaps
    return "" if name == docno else name


def _docno(place: str, record: Mapping[str, Any]) -> str:
    """Return the id of a post, which can be written as UTF-8 and on a page."""
    for name in IDS:
        docno = record.get(name)
        if isinstance(docno, bool | list | tuple | dict):
            raise DocumentError(place, f"its {name} is {docno!r:.80}, neither a text nor a number")
        if isinstance(docno, str):
            for pattern, what in ((_HALF, "half of a surrogate pair"), (_CONTROL, "a control character")):
                if found := pattern.search(docno):
                    reason = f"its {name} {docno!r:.80} has {what} at place {found.start() + 1:,}; give another"
                    raise DocumentError(place, reason)
            if len(docno) > LONGEST_ID:
                reason = f"its {name} {docno[:40]!r}… has {len(docno):,} characters, more than {LONGEST_ID:,}"
                raise DocumentError(place, reason)
    docno = next((str(record[name]) for name in IDS if not is_missing(record.get(name))), "")
    if not docno.strip():
        raise DocumentError(place, f"no id; give one of {', '.join(IDS)}")
    return docno


def _read_parts(docno: str, kind: str, text: Any, title: Any, bare: bool) -> tuple[MathPost, MathPost]:
    """Read title and body."""
    read: Callable[..., MathPost]
    if kind == "latex" and isinstance(text, str):
        found, text, problems = read_latex(text)
        title, read = title or found, post_from_text
    elif kind == "markdown" and isinstance(text, str) and isinstance(title, str):
        if not title:
            title, text = title_of_markdown(text)
        (title, text), problems = read_markdown(title, text)
        read = post_from_html
    else:
        found, text = title_of_html(text) if kind == "html" and isinstance(text, str) else ("", text)
        title, problems = title or found, {}
        read = post_from_html if kind == "html" else post_from_any
    for what, where in problems.items():
        tell(docno, what, where)
    return read(title, bare_formulas=bare), read(text, bare_formulas=bare)


def _html(docno: str, post: MathPost, first: int) -> str:
    """Write a post as HTML in which each formula is a container with its id."""
    pieces: list[str] = []
    for line in post.text.split("\n"):
        if not line:
            continue
        parts, at = [], 0
        for match in PLACEHOLDER.finditer(line):
            formula = post.formulas[int(match[1])]
            name = formula.id or formula_id(docno, first + int(match[1]))
            parts.append(_escaped(line[at : match.start()]))
            latex = escape(formula.latex, quote=False)
            parts.append(f'<span class="math-container" id="{escape(name)}">{latex}</span>')
            at = match.end()
        parts.append(_escaped(line[at:]))
        pieces.append(f"<p>{''.join(parts)}</p>")
    return "".join(pieces)


def _escaped(text: str) -> str:
    """Write text as HTML; a dollar that delimited no formula must not when it is read again."""
    return escape(text, quote=False).replace("$", "\\$")


T = TypeVar("T")

_NAMED = 5  # records that cannot be read are named in a warning, so many of them


def read_posts(
    source: Source, *, prefix: str = "", bare_formulas: bool = True
) -> Iterator[tuple[str, Document | DocumentError]]:
    """Read the posts of a source, one at a time.

    Args:
        source: dictionaries, a frame, the path of a ``.jsonl`` file (also ``.gz``), or of a folder.
        prefix: what the docnos of a folder's files begin with.
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.

    Yields:
        The place of each post (line, file or number) and the post, or why it cannot be read.

    Raises:
        DocumentError: the source itself cannot be read.
    """
    entries = source_entries(source, prefix=prefix, bare_formulas=bare_formulas)
    yield from distinct_posts(
        (entry.place, document)
        for entry in entries
        for document in ([entry] if isinstance(entry, DocumentError) else entry.documents())
    )


def distinct_posts(
    posts: Iterable[tuple[str, Document | DocumentError]],
) -> Iterator[tuple[str, Document | DocumentError]]:
    """Put an error in the place of each post whose id came before."""
    seen: set[str] = set()
    for place, document in posts:
        if isinstance(document, DocumentError) or document.docno not in seen:
            yield place, document
        else:
            yield place, DocumentError(place, f"the id {document.docno!r:.80} came before")
        if isinstance(document, Document):
            seen.add(document.docno)


def accepted_posts(
    source: Source, *, prefix: str = "", bare_formulas: bool = True, verbose: bool = False
) -> Iterator[Document]:
    """Read the posts of a source that can be read; a warning at the end names those that cannot.

    Args:
        source: see :func:`read_posts`.
        prefix: see :func:`read_posts`.
        bare_formulas: see :func:`read_posts`.
        verbose: show progress.

    Raises:
        DocumentError: a file or folder holds no post, or none of a source's posts can be read.
    """
    total = count_posts(source) if verbose else None
    posts = read_posts(source, prefix=prefix, bare_formulas=bare_formulas)
    read = progress(posts, "reading", "posts", verbose=verbose, total=total)
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
    warn_of_left_out(errors, f"of {len(errors) + read:,} {what}")


def warn_of_left_out(errors: Sequence[DocumentError], of: str) -> None:
    """Name what could not be read, in one warning."""
    if errors:
        named = " ".join(map(str, errors[:_NAMED])) + (" …" if len(errors) > _NAMED else "")
        warnings.warn(MathAMRWarning(f"{len(errors):,} {of} were left out: {named}"), stacklevel=3)
