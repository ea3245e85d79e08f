r"""Files and folders of a person's notes: which files are read, in which encoding, and why others are left out.

::

    notes/            limits.md  book/main.tex  old.tex (Latin-1)     ──listed──▶ files, in order of their paths
                      link.md ─▶ ../secret.md, pipe.md, locked/                  left_out: one error each
                      paper.pdf  figure.png  talk.pptx                           unread: one error for each kind
    a file            bytes ──read_text──▶ text with ``\n`` at the ends of lines, or the error

Only regular files inside the folder are opened, and links are followed only within it.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import stat
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from pathspec import GitIgnoreSpec

from pyterrier_mathamr._common.feedback import counted, report_problem
from pyterrier_mathamr._common.ids import CONTROL
from pyterrier_mathamr._common.records import parse_json

from .post import DocumentError

SUFFIXES = {
    ".md": "markdown", ".markdown": "markdown", ".qmd": "markdown", ".rmd": "markdown", ".tex": "latex",
    ".html": "html", ".htm": "html", ".txt": "text", ".ipynb": "notebook", ".rst": "rst", ".org": "org",
    ".lean": "lean",
}  # fmt: skip
"""The form of a file by its ending."""

STYLES = (".sty", ".cls")
LINES = (".jsonl", ".jsonl.gz", ".ndjson")
LARGEST_FILE = 50_000_000
"""Bytes of a file of text."""
LONGEST_LINE = 64_000_000
"""Bytes of a line of JSON, decompressed."""

_UNREAD_KINDS = (
    ("PDF file", "PDF is not read, use the LaTeX source", ".pdf"),
    ("DjVu or PostScript file", "use the LaTeX source", ".djvu .djv .ps .eps .dvi"),
    ("image", "text in images is not read", ".png .jpg .jpeg .gif .svg .webp .bmp .tif .tiff .heic"),
    ("word processor file", "save it as HTML or Markdown", ".docx .doc .odt .rtf .pages .pptx .ppt .odp .epub"),
    ("handwritten note", "handwriting is not read", ".xopp .goodnotes .rnote .excalidraw .one"),
    ("file of another markup", "save it as Markdown or LaTeX", ".lyx .typ .adoc .wiki .mediawiki .textile .nb"),
    ("file of JSON lines", "build or add it by itself", ".jsonl .ndjson"),
)
_EXCLUDED = ["node_modules/", "lake-packages/", "lakefile.lean", "_build/", "templates/", "Templates/", "_templates/"]
"""Files and folders that are left out unless a file of rules names them after ``!``."""
_RULES = (".gitignore", ".mathamrignore")
_STARS, _MOST_STARS, _LONGEST_PATTERN = re.compile(r"\*+"), 3, 500
_UNREAD = {suffix: (kind, reason) for kind, reason, suffixes in _UNREAD_KINDS for suffix in suffixes.split()}
_NAMED = 3  # files of a kind, the first ones
UNREADABLE = (OSError, EOFError, zlib.error)


class UnreadFilesError(DocumentError):
    """Files of a kind that is not read; ``place`` counts and names them."""


class UnopenedFileError(DocumentError):
    """A file or folder cannot be opened, perhaps only now: posts that were read from it stay in an engine."""


class Listing(NamedTuple):
    """The contents of a folder.

    Attributes:
        files: the files to read, in order of their paths.
        styles: packages and classes of LaTeX, whose definitions are read.
        left_out: an error for each file of these kinds that is left out.
        unread: an error for each kind of file in the folder that is not read.
    """

    files: list[Path]
    styles: list[Path]
    left_out: list[DocumentError]
    unread: list[DocumentError]


def listed(folder: Path, exclude: str | None = None) -> Listing:
    """List the contents of a folder except hidden and excluded ones; folders that are links are not entered.

    Args:
        folder: the folder.
        exclude: patterns of files and folders to leave out, one a line, as in ``.gitignore``. ``None`` for a file that
            may include any other; else files of rules in the folders are respected, and some folders left out.
    """
    listing, links = Listing([], [], [], []), list[Path]()
    unread: dict[tuple[str, str], list[str]] = {kind: [] for kind in _UNREAD.values()}
    others: Counter[str] = Counter()
    excluded: list[str] = []
    rules = {folder: [(folder, _patterns("", _EXCLUDED))]}
    chosen = _patterns("--exclude", (exclude or "").split("\n"))

    def unreadable(error: OSError) -> None:
        listing.left_out.append(_unopened(path_text(error.filename), error))

    def is_left_out(path: Path, *, is_folder: bool = False) -> bool:
        if path.name.startswith("."):
            return True
        is_excluded = False
        for base, patterns in [*rules[path.parent], (folder, chosen)] if exclude is not None else ():
            if patterns.patterns:  # the last rule about a file or folder decides
                rule = patterns.check_file(path.relative_to(base).as_posix() + "/" * is_folder).include
                is_excluded = is_excluded if rule is None else rule
        if is_excluded:
            excluded.append(path_text(path.relative_to(folder).as_posix()) + "/" * is_folder)
        return is_excluded

    for place, folders, names in os.walk(folder, onerror=unreadable):
        here = Path(place)
        rules[here] = list(rules[here if here == folder else here.parent])
        for name in (name for name in _RULES if name in names):
            text = read_text(here / name)
            lines = [] if isinstance(text, DocumentError) else text.split("\n")
            rules[here].append((here, _patterns(path_text(here / name), lines)))
        folders[:] = [name for name in folders if not is_left_out(here / name, is_folder=True)]
        links += (here / name for name in folders if (here / name).is_symlink())
        for path in (here / name for name in names if not is_left_out(here / name)):
            suffix = path.suffix.lower()
            if suffix in _UNREAD:
                unread[_UNREAD[suffix]].append(path_text(path.relative_to(folder).as_posix()))
            elif suffix not in SUFFIXES and suffix not in STYLES and not path.is_symlink():
                others[path_text(suffix) or "without an ending"] += 1
            if suffix in STYLES and path.is_file() and not path.is_symlink():
                listing.styles.append(path)
            elif suffix in SUFFIXES and path.is_symlink():
                links.append(path)
            elif suffix in SUFFIXES and path.is_file():
                listing.files.append(path)
            elif suffix in SUFFIXES:
                listing.left_out.append(DocumentError(path_text(path), "it is not a regular file"))
    root = folder.resolve()
    known = {root / file.relative_to(folder) for file in listing.files} if links else set()
    for link in sorted(links):  # files in the folder to which only links lead
        try:
            target = link.resolve(strict=True)
        except (OSError, RuntimeError):  # a link to nothing, or to itself
            listing.left_out.append(DocumentError(path_text(link), "it links to nothing"))
            continue
        if not target.is_relative_to(root):
            reason = f"it links to {path_text(target)}, which is not in the folder; copy that to it"
            listing.left_out.append(DocumentError(path_text(link), reason))
        elif target.is_file() and target not in known:
            known.add(target)
            listing.files.append(link)
    listing.files.sort()
    listing.styles.sort()
    listing.left_out.sort(key=str)

    def add_unread(what: str, names: Sequence[str], reason: str) -> None:
        first = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        listing.unread.append(UnreadFilesError(f"{what} ({first})", reason))

    for (kind, reason), names in unread.items():
        if names:
            kinds = kind if len(names) == 1 else kind.replace("file", "files", 1) if "file" in kind else f"{kind}s"
            add_unread(f"{len(names):,} {kinds}", sorted(names), reason)
    if others:
        kinds_of_others = [f"{count:,} {kind}" for kind, count in others.most_common()]
        add_unread(counted(others.total(), "other file"), kinds_of_others, "they are not notes")
    if excluded:
        what = counted(len(excluded), "file or folder").replace("file or folders", "files and folders")
        add_unread(what, sorted(excluded), f"excluded by --exclude, {', '.join(_RULES)} or by default")
    return listing


def _patterns(place: str, lines: Iterable[str]) -> GitIgnoreSpec:
    """Read patterns; one that is not understood, or could take too long to compare, is reported."""
    read = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
            is_simple = len(line) <= _LONGEST_PATTERN and len(_STARS.findall(line)) <= _MOST_STARS
        except (ValueError, re.error):
            is_simple = False
        if is_simple:
            read.append(line)
        else:
            report_problem(place, "this pattern is not understood", line)
    return GitIgnoreSpec.from_lines(read)


def _unopened(place: str, error: OSError) -> UnopenedFileError:
    return UnopenedFileError(place, f"it cannot be read ({error.strerror or error})")


def why_unread(path: Path) -> str:
    """Return why a file of a known kind is not read; nothing for other files."""
    return _UNREAD.get(path.suffix.lower(), ("", ""))[1] if path.is_file() else ""


def day_of(path: Path) -> str:
    """Return the day on which a file was changed last, in universal time; nothing for one that has vanished."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    except (OSError, OverflowError, ValueError):
        return ""


def path_text(path: Path | str) -> str:
    r"""Write a path as text, the same in every locale; bytes that are not UTF-8 as ``\xe9``, line breaks as ``\n``."""
    try:
        data = os.fsencode(path)
    except UnicodeEncodeError:
        data = str(path).encode("utf-8", "surrogatepass")
    text = data.decode("utf-8", "backslashreplace")
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_MOMENT, _TRIES = 0.05, 40  # seconds without a change, after which a file is taken to be complete


def read_text(path: Path) -> str | DocumentError:
    """Read a text file, or return why it cannot be read; one that changed a moment ago is read again."""
    place = path_text(path)
    try:
        for _ in range(_TRIES):
            with _regular(path) as file:
                data = file.read(LARGEST_FILE + 1)
                changed = os.fstat(file.fileno()).st_mtime
            if _is_settled(changed):
                break
    except OSError as error:
        return _unopened(place, error)
    if len(data) > LARGEST_FILE:
        return DocumentError(place, f"it has more than {LARGEST_FILE:,} bytes; split it")
    if not data.strip():
        return DocumentError(place, "the file is empty")
    try:
        return decoded(data).replace("\r\n", "\n").replace("\r", "\n")
    except ValueError as error:
        return DocumentError(place, str(error))


def _regular(path: Path) -> IO[bytes]:
    """Open a regular file; another one, such as a FIFO that may have come in its place, is not waited for."""
    waits_not = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | waits_not))  # noqa: SIM115 - it is returned
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("no regular file")
    return file


def _is_settled(changed: float) -> bool:
    """Whether a file that changed at some time is complete; if not, wait: somebody may be writing it."""
    left = changed + _MOMENT - time.time()
    if not 0 < left <= _MOMENT:  # a time in the future says nothing
        return True
    time.sleep(left)
    return False


_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_DECLARED = re.compile(
    rb"\\usepackage\s{0,9}\[([\w-]{1,40})\]\s{0,9}\{inputenc\}|\bcharset\s{0,9}=\s{0,9}[\"']?([\w-]{1,40})"
)
_ENCODINGS = {"ansinew": "cp1252", "latin1": "cp1252", "latin2": "iso8859-2", "latin9": "iso8859-15"}
_KNOWN = re.compile(r"(?:iso-?8859-\d{1,2}|(?:windows-|cp)\d{3,4}|koi8-[ru]|shift_jis|euc-?(?:jp|kr)|big5|gbk|gb18030)")
_CONTROLS = bytes({*range(32), 127, 0x81, 0x8D, 0x8F, 0x90, 0x9D} - {9, 10, 12, 13})
_HIGH = bytes(range(0x80, 0x100))
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MOST_ACCENTS = 0.25  # of the letters of a text in a Western language


def decoded(data: bytes) -> str:
    """Decode a text: UTF-8, the encoding of a byte order mark or declared in the text, or Latin-1 if plausible.

    Raises:
        ValueError: it is none of these; gives the reason.
    """
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "")
    try:
        return data.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        reason = f"it is not {(encoding or 'utf-8').upper().removesuffix('-SIG')} from byte {error.start:,} on"
    if not encoding and (match := _DECLARED.search(data, 0, 20_000)):
        name = (match[1] or match[2]).decode().lower()
        name = _ENCODINGS.get(name, name)
        try:
            if _KNOWN.fullmatch(name):
                return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            pass
    controls = len(data) - len(data.translate(None, _CONTROLS))
    high = len(data) - len(data.translate(None, _HIGH))
    letters = high + len(data) - len(data.translate(None, _LETTERS))
    if not encoding and controls <= len(data) // 1000 and high <= _MOST_ACCENTS * letters:
        return data.decode("cp1252", "ignore")
    raise ValueError(f"{reason}, nor Latin-1; save it as UTF-8")


def post_files(folder: Path) -> list[Path]:
    """List the files of posts in a folder in order of their paths, except in hidden folders."""
    return listed(folder).files


def json_lines(path: Path, texts: Sequence[str] = ()) -> Iterator[tuple[str, dict[str, Any] | DocumentError]]:
    """Read a file with a JSON object in each line, plain or gzipped.

    Args:
        path: of the file.
        texts: the fields of an object that are texts.

    Yields:
        The place of each line that is not blank, and its object, or why there is none.

    Raises:
        DocumentError: the file cannot be read.
    """
    try:
        for _ in range(_TRIES):
            if _is_settled(path.stat().st_mtime):
                break
        with opened(path) as file:
            for number, line in enumerate(lines_of(file), start=1):
                if not (line is None or line.strip()):
                    continue
                place = f"{path_text(path)}, line {number}"
                try:
                    if line is None:
                        raise ValueError(f"the line has more than {LONGEST_LINE:,} bytes")
                    record = parse_json(line)
                except ValueError as error:
                    yield place, DocumentError(place, f"this is not JSON ({error}); write one JSON object in each line")
                    continue
                if not isinstance(record, dict):
                    yield place, DocumentError(place, "this is not a JSON object; write one in each line")
                elif missing := [field for field in texts if not isinstance(record.get(field), str)]:
                    names = " and ".join(map(repr, missing))
                    reason = f"{names} is missing, or no text. Give each line {', '.join(texts)}"
                    yield place, DocumentError(place, reason)
                else:
                    yield place, record
    except UNREADABLE as error:
        raise DocumentError(path_text(path), f"it cannot be read ({error})") from error


def lines_of(file: IO[bytes]) -> Iterator[bytes | None]:
    """Read the lines of a file; ``None`` for one that is too long."""
    while line := file.readline(LONGEST_LINE + 1):
        long = len(line) > LONGEST_LINE and not line.endswith(b"\n")
        yield None if long else line
        while long:
            rest = file.readline(1 << 20)
            long = bool(rest) and not rest.endswith(b"\n")


def opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
