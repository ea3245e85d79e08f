"""Where posts are read from: dictionaries, a frame, a file of JSON lines, a folder of texts.

A record is a dictionary with its place (line, file or number); a column or the ending of a file says what its text is.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.feedback.progress import count_lines
from pyterrier_mathamr._common.frames import documents as rows_of
from pyterrier_mathamr._common.json_text import parse_json

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


class DocumentError(MathAMRError):
    """A post cannot be read."""

    place: str
    reason: str
    template = "{place}: {reason}."


def records_of(source: Source) -> Iterator[tuple[str, Mapping[str, Any] | DocumentError]]:
    """Iterate over the dictionaries of a source, each with its place."""
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_dir():
            yield from _folder(path)
        elif path.name.endswith(_LINES):
            yield from json_lines(path)
        elif path.suffix.lower() in _SUFFIXES and path.is_file():
            yield str(path), _file(path, path.stem)
        else:
            known = ", ".join(_SUFFIXES)
            raise DocumentError(str(path), f"no such folder, .jsonl file or file of {known}")
        return
    if not isinstance(source, Iterable):
        raise DocumentError("posts", f"no dictionaries, frame or path, but {type(source).__name__}")
    for number, record in enumerate(rows_of(source), start=1):
        place = f"post {number}"
        if isinstance(record, Mapping):
            yield place, record
        else:
            yield place, DocumentError(place, f"no dictionary with an id and a text, but {record!r:.80}")


def _folder(path: Path) -> Iterator[tuple[str, Mapping[str, Any] | DocumentError]]:
    """Read the posts in a folder."""
    files = post_files(path)
    if not files:
        raise DocumentError(str(path), f"the folder has no files of {', '.join(_SUFFIXES)}")
    alike = Counter(file.with_suffix("") for file in files)
    for file in files:
        name = file if alike[file.with_suffix("")] > 1 else file.with_suffix("")
        yield str(file), _file(file, name.relative_to(path).as_posix())


def _file(path: Path, docno: str) -> dict[str, str] | DocumentError:
    """Read a file of text, or say why it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        return DocumentError(str(path), f"it is no UTF-8 from byte {error.start:,} on; save it as UTF-8")
    except OSError as error:
        return DocumentError(str(path), f"it cannot be read ({error})")
    return {"docno": docno, _SUFFIXES[path.suffix.lower()]: text, "title_or": path.stem}


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


def post_files(folder: Path) -> list[Path]:
    """List the posts in a folder in order of their paths, but for those in hidden folders."""
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


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
