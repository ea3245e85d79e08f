r"""A person's own posts, in whatever form they are, as the records that indexes are built from.

::

    dictionaries, a frame          docno | id,  title?,  html | body | text | contents | markdown | latex
    posts.jsonl, posts.jsonl.gz    one such dictionary a line
    a folder                       notes/limits.md, a.tex, b.html, c.txt: the path is the docno, without its ending
        ──▶  Document(docno, title, html)      formulas found once, each with an id: ``notes/limits#0``

Every index that is built of them reads these records, so that all of them agree on what a formula is and on its id.
"""

from __future__ import annotations

import gzip
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, cast

import pandas as pd

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.frames import documents as rows_of
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.json_text import parse_json
from pyterrier_mathamr._common.progress import count_lines, progress
from pyterrier_mathamr.posts import (
    PLACEHOLDER,
    MathPost,
    PostError,
    PostFormula,
    formula_id,
    post_from_any,
    post_from_html,
    post_from_markdown,
    post_from_text,
    text_from_latex,
    title_of_markdown,
)

from .rows import tell_unclosed
from .unicode_math import latex_of_unicode

T = TypeVar("T")
Source = pd.DataFrame | str | Path | Iterable[Mapping[str, Any]]

_IDS = ("docno", "id", "_id", "doc_id")
_TEXTS = ("html", "body", "text", "contents", "markdown", "latex")
_SUFFIXES = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
    ".txt": "text",
}
_LINES = (".jsonl", ".jsonl.gz", ".ndjson")
_NAMED = 5  # records that cannot be read are named in a warning, so many of them


class DocumentError(MathAMRError):
    """A post cannot be read."""

    place: str
    reason: str
    template = "{place}: {reason}."


class Document(NamedTuple):
    """A post as it is indexed.

    Attributes:
        docno: its id.
        title: HTML of its title, formulas as math containers; may be empty.
        html: HTML of its body, likewise.
    """

    docno: str
    title: str
    html: str

    def record(self) -> dict[str, str]:
        """Return the columns that builders and indexers read."""
        return self._asdict()


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
    for place, record in _records(source):
        try:
            if isinstance(record, DocumentError):
                raise record
            document = _document(place, record, bare_formulas)
        except PostError as error:
            yield place, DocumentError(place, str(error).rstrip("."))
        except DocumentError as error:
            yield place, error
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


def count_posts(source: Source) -> int | None:
    """Count the posts of a source without reading them; ``None`` for what can be read only once."""
    if not isinstance(source, str | Path):
        return len(source) if isinstance(source, Sized) else None
    path = Path(source)
    if path.is_dir():
        return len(post_files(path))
    if not path.name.endswith(_LINES) or not path.is_file():
        return None
    try:
        with _opened(path) as file:
            return count_lines(file)
    except (OSError, EOFError):
        return None  # reading the posts says what is wrong


def post_files(folder: Path) -> list[Path]:
    """List the posts in a folder in order of their paths, but for those in hidden folders."""
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def _records(source: Source) -> Iterator[tuple[str, Mapping[str, Any] | DocumentError]]:
    """Iterate over the dictionaries of a source, each with its place."""
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_dir():
            yield from _folder(path)
        elif path.name.endswith(_LINES):
            yield from json_lines(path)
        elif path.suffix in _SUFFIXES and path.is_file():
            yield str(path), {"docno": path.stem, **_file(path)}
        else:
            known = ", ".join(_SUFFIXES)
            raise DocumentError(str(path), f"no such folder, .jsonl file or file of {known}")
        return
    for number, record in enumerate(rows_of(source), start=1):
        yield f"post {number}", record


def _folder(path: Path) -> Iterator[tuple[str, Mapping[str, Any] | DocumentError]]:
    """Read the posts in a folder."""
    files = post_files(path)
    if not files:
        raise DocumentError(str(path), f"the folder has no files of {', '.join(_SUFFIXES)}")
    alike = Counter(file.with_suffix("") for file in files)
    for file in files:
        name = file if alike[file.with_suffix("")] > 1 else file.with_suffix("")
        try:
            yield str(file), {"docno": name.relative_to(path).as_posix(), **_file(file)}
        except (OSError, UnicodeDecodeError) as error:
            yield str(file), DocumentError(str(file), f"it cannot be read ({error})")


def _file(path: Path) -> dict[str, str]:
    text = path.read_text(encoding="utf-8-sig")
    return {_SUFFIXES[path.suffix.lower()]: text, "title_or": path.stem}


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any] | DocumentError]]:
    """Read a file with a JSON object in each line, plain or gzipped.

    Yields:
        The place of each line that is not blank, and its object or why it is none.

    Raises:
        DocumentError: the file cannot be read.
    """
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                place = f"{path}, line {number}"
                try:
                    record = parse_json(line)
                except ValueError as error:
                    yield place, DocumentError(place, f"no JSON ({error})")
                    continue
                yield place, record if isinstance(record, dict) else DocumentError(place, "no JSON object")
    except (OSError, EOFError) as error:
        raise DocumentError(str(path), f"it cannot be read ({error})") from error


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _document(place: str, record: Mapping[str, Any], bare_formulas: bool) -> Document:
    """Read one post: its id, and its text in the form that the name of the column says."""
    docno = next((str(record[name]) for name in _IDS if not is_missing(record.get(name))), "")
    if not docno.strip():
        raise DocumentError(place, f"no id; give one of {', '.join(_IDS)}")
    kind = next((name for name in _TEXTS if not is_missing(record.get(name))), "")
    if not kind:
        found = ", ".join(sorted(map(str, record))) or "nothing"
        raise DocumentError(place, f"no text; give one of {', '.join(_TEXTS)}, not {found}")
    title = "" if is_missing(record.get("title")) else record["title"]
    title_post, body = (tell_unclosed(docno, post) for post in _read(kind, record[kind], title, bare_formulas))
    if not title_post.text and isinstance(record.get("title_or"), str):
        title_post = MathPost(record["title_or"], ())
    if not title_post.text and not body.text:
        raise DocumentError(place, "the post is empty")
    title_post, body = in_latex(title_post), in_latex(body)
    return Document(docno, _html(docno, title_post, 0), _html(docno, body, len(title_post.formulas)))


def in_latex(post: MathPost) -> MathPost:
    r"""Rewrite formulas typed in Unicode, so that ``√2`` and ``\sqrt{2}`` have the same symbols in every index."""
    formulas = (PostFormula(latex_of_unicode(formula.latex), formula.id) for formula in post.formulas)
    return replace(post, formulas=tuple(formulas))


def _read(kind: str, text: Any, title: Any, bare: bool) -> tuple[MathPost, MathPost]:
    """Read title and body."""
    if kind == "latex":
        found, text = text_from_latex(text) if isinstance(text, str) else ("", text)
        return post_from_text(title or found, bare_formulas=bare), post_from_text(text, bare_formulas=bare)
    if kind == "markdown":
        if not title and isinstance(text, str):
            title, text = title_of_markdown(text)
        return post_from_markdown(title, bare_formulas=bare), post_from_markdown(text, bare_formulas=bare)
    read = post_from_html if kind == "html" else post_from_any
    return read(title, bare_formulas=bare), read(text, bare_formulas=bare)


def _html(docno: str, post: MathPost, first: int) -> str:
    """Write a post as HTML in which each formula is a container with its id.

    Args:
        docno: the beginning of the ids of formulas without one.
        post: title or body.
        first: number of its first formula in the whole post.
    """
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
