"""The files of the release in a folder: found by their names, and unpacked from their archives.

File names changed each year, and folders differ between the organizers' drive, its backup and local copies. So files
are found by name anywhere below the folder. Each role has a list of patterns, best first::

    qrels, 2022, task 1 ── qrels.arqmath-2022-task1.mini.txt     restricted to a partial collection (preferred)
                        ├─ qrels.arqmath-2022-task1.txt
                        └─ qrel_task1_2022_official.tsv          the organizers' name
"""

from __future__ import annotations

import bz2
import lzma
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Literal, NamedTuple

from pyterrier_mathamr._common.errors import first_five, require
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import one_of
from pyterrier_mathamr.store import move

from .errors import DOWNLOAD_PAGE, ARQMathError, MissingFileError

Task = Literal[1, 2, 3]
Judged = Literal["formula", "visual"]
Representation = Literal["latex", "slt", "opt"]

Patterns = tuple[str, ...]
"""Regular expressions of file names, best first, each matched against a whole name, ignoring case."""

POSTS: Patterns = (r"Posts\.V[\d.]+\.xml(\.gz)?", r"Posts\.xml(\.gz)?")
PACKED_POSTS: Patterns = (r"Posts(\.V[\d.]+)?\.(xml\.)?(zip|7z|bz2|xz)",)
PAIRS: Patterns = (r"pairs\.tsv(\.gz)?",)
LINKS: Patterns = (r"links\.tsv(\.gz)?", r"PostLinks\.V[\d.]+\.xml(\.gz)?", r"PostLinks\.xml(\.gz)?")

PACKED_LINKS: Patterns = (r"PostLinks(\.V[\d.]+)?\.(xml\.)?(zip|7z|bz2|xz)",)

DOCUMENT_COUNTS: Mapping[str, int] = {
    "posts": 2_466_080,
    "questions": 1_020_585,
    "answers": 1_445_495,
    "formulas": 28_320_920,
}
"""Documents of the release, version 1.3 of the posts and version 3 of the formula tables (MathAMR+, Table 4.3)."""

TOPIC_COUNTS: Mapping[str, int] = {
    "2020/task1": 98,
    "2022/task1": 100,
    "2022/task2": 100,
    "2022/task3": 100,
}
"""Topics in the official files; fewer are judged."""

JUDGMENT_COUNTS: Mapping[str, int] = {
    "2020/task1": 39_124,
    "2020/task2": 12_115,
    "2020/task2/visual": 6_074,
    "2022/task1": 34_847,
    "2022/task2": 16_189,
    "2022/task2/visual": 11_538,
    "2022/task3": 722,
}
"""Graded lines of the official judgments of the test topics; the 70 lines of Task 3 with code 5 or 6 are not grades."""

_TASK = one_of(1, 2, 3)
_JUDGED = one_of("formula", "visual")
_VERSION = r"([._]V[\d.]+)?"


def packed_table_patterns(kind: Representation) -> Patterns:
    """Return the names of the archive of the formula tables of one representation."""
    return (rf"{kind}_representation(_v\d+)?\.(zip|7z|tar\.gz)",)


def topic_patterns(year: str, task: Task) -> Patterns:
    """Return the names of the topics of a year; Task 3 shares the topics of Task 1."""
    _TASK.check("task", task)
    number = 2 if task == 2 else 1
    # The names of 2020 have no task; the files differ in their version.
    plain = {(1, "2020"): (r"Topics_V2\.0\.xml",), (2, "2020"): (r"Topics_V1\.1\.xml",)}.get((number, year), ())
    return (rf"Topics_Task{number}_{re.escape(year)}{_VERSION}\.xml(\.gz)?", *plain)


def topic_table_patterns(year: str, kind: Representation) -> Patterns:
    end = rf"{_VERSION}\.tsv(\.gz)?"
    year_ = re.escape(year)
    plain = {"2020": (rf"Formula_topics_{kind}_V2\.0\.tsv",), "2022": (rf"Topics_Formulas_{kind}\.V0\.1\.tsv",)}
    return (
        rf"Topics_Formulas_{kind}_{year_}{end}",
        rf"Topics_{year_}_Formulas_{kind}{end}",
        rf"Formula_topics_{kind}_{year_}{end}",
        *plain.get(year, ()),
    )


def qrels_patterns(year: str, task: Task, judged: Judged = "formula") -> Patterns:
    """Return the names of the judgments of a year; official test topics precede all topics."""
    _TASK.check("task", task)
    _JUDGED.check("judged", judged)
    y = re.escape(year)
    if task == 2 and judged == "visual":
        return (
            rf"qrels\.arqmath-{y}-task2\.visual_id(\.v\d+)?\.txt",
            rf"qrels\.arqmath-{y}-task2-official\.v3\.txt",
            rf"qrel_task2_{y}_official\.tsv",
            rf"qrel_task2_official_{y}_visual_id\.tsv",
            rf"qrel_task2_{y}_test_official_evaluation\.tsv",
            rf"qrel_task2_{y}_(visual_id|all)\.tsv",
        )
    if task == 2:
        return (
            rf"qrels\.arqmath-{y}-task2(\.formula_id)?\.txt",
            rf"qrel_task2_{y}_formula_id\.tsv",
            *((r"qrel_task2\.tsv",) if y == "2020" else ()),  # in the folder qrel_with_formula_ids
            rf"qrels\.arqmath-{y}-task2\.formula_id\.all\.txt",
            rf"qrel_task2_{y}_all_formula_id\.tsv",
            *((r"qrel_task2_all\.tsv",) if y == "2020" else ()),
        )
    return (
        rf"qrels\.arqmath-{y}-task{task}\.txt",
        rf"qrel_task{task}_{y}_official(_complete)?(\.tsv)?",
        *((r"qrel_official_task1(\.tsv)?",) if (y, task) == ("2020", 1) else ()),
        rf"qrel_task{task}_{y}_test\.tsv",
        rf"qrels\.arqmath-{y}-task{task}-official\.txt",
        rf"qrel_task{task}_{y}(_all)?\.tsv",
    )


Reader = Literal["posts", "pairs", "links", "table", "topics", "qrels"]
State = Literal["present", "packed", "missing", "incomplete"]

YEARS = ("2020", "2021", "2022")
_REPRESENTATIONS: tuple[Representation, ...] = ("latex", "slt", "opt")
_TABLE_FOLDER = re.compile(r"(latex|slt|opt)_representation(?:_v(\d+))?", re.IGNORECASE)
_TABLE = re.compile(r"(\d+)\.tsv(\.gz)?", re.IGNORECASE)
_PASSED_OVER = {"runs", "old versions", "__macosx"}


class Release:
    """The files below a folder, listed once, when first needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """List the files below the folder in order, except for runs, old versions and hidden folders."""
        files = []
        for folder, folders, names in os.walk(self.path):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f.lower() not in _PASSED_OVER)
            files += [Path(folder, name) for name in sorted(names)]
        return tuple(files)

    def find(self, patterns: Patterns, *, complete: bool = False) -> Path | None:
        """Return the best file whose name one of the patterns matches, or ``None``."""
        for pattern in patterns:
            rule = re.compile(pattern, re.IGNORECASE)
            matching = [file for file in self.files if rule.fullmatch(file.name.replace(".mini.", "."))]
            minis = [file for file in matching if ".mini." in file.name]
            chosen = [file for file in matching if file not in minis] if complete else minis or matching
            if chosen:  # the latest version, by the numbers in the names: V1.10 is after V1.9
                return max(chosen, key=lambda file: tuple(map(int, re.findall(r"\d+", file.name))))
        return None

    def need(self, what: str, patterns: Patterns, *, complete: bool = False, hint: str = "") -> Path:
        """Return the file of :meth:`find`."""
        file = self.find(patterns, complete=complete)
        if file is None:
            names = []
            for pattern in patterns:  # as Posts.V*.xml
                name = re.sub(r"\(\[\._\]V\[\\d\.\]\+\)\?|\[\\d\.\]\+|\\d\+", "*", pattern)
                names.append(re.sub(r"\((?:[^()|]*)\)\?|\\", "", name))
            raise MissingFileError(what, self.path, tuple(names), hint)
        return file

    def tables(self, kind: Representation) -> tuple[Path, ...]:
        """Return the numbered formula tables of the latest version of one representation, in numeric order."""
        versions: dict[int, list[tuple[int, Path]]] = {}
        for file in self.files:
            folder, name = _TABLE_FOLDER.fullmatch(file.parent.name), _TABLE.fullmatch(file.name)
            if folder and name and folder[1].lower() == kind:
                versions.setdefault(int(folder[2] or 0), []).append((int(name[1]), file))
        return tuple(file for _, file in sorted(versions[max(versions)])) if versions else ()


class Item(NamedTuple):
    """A role in the release and its files.

    Attributes:
        role: such as ``posts`` or ``judgments 2022, task 2, by visual id``.
        reader: what reads the files.
        files: none if missing; the archive if packed.
        state: ``present``, ``packed``, ``missing`` or ``incomplete``.
        needed: ``False`` for files that many complete copies lack.
        note: a remark for people.
    """

    role: str
    reader: Reader
    files: tuple[Path, ...]
    state: State
    needed: bool
    note: str = ""


def inventory(folder: Path) -> list[Item]:
    """List the roles of the release with their files below a folder; only names are read."""
    return list(_items(Release(folder)))


def is_release(path: str | Path) -> bool:
    """Return whether a path is a folder with a part of the release, by the names of its files."""
    return Path(path).is_dir() and any(item.files for item in inventory(Path(path)))


def _items(release: Release) -> Iterator[Item]:
    def item(role: str, reader: Reader, patterns: Patterns, *, needed: bool = True, packed: Patterns = ()) -> Item:
        # The complete judgments are checked, not the restricted ones in the same folder.
        if file := release.find(patterns, complete=True) or release.find(patterns):
            return Item(role, reader, (file,), "present", needed)
        archive = release.find(packed)
        return Item(role, reader, (archive,) if archive else (), "packed" if archive else "missing", needed)

    yield item("posts", "posts", POSTS, packed=PACKED_POSTS)
    for kind in _REPRESENTATIONS:
        role, files = f"formulas, {kind}", release.tables(kind)
        if not files:
            yield item(role, "table", (), packed=packed_table_patterns(kind))
            continue
        numbers = {int(file.name.split(".")[0]) for file in files}
        if absent := [f"{number}.tsv" for number in range(1, max(numbers) + 1) if number not in numbers]:
            yield Item(role, "table", files, "incomplete", True, f"no {first_five(absent)}")
        else:
            yield Item(role, "table", files, "present", True)
    yield item("links between questions", "links", LINKS, needed=False, packed=PACKED_LINKS)
    yield item("training pairs as a table", "pairs", PAIRS, needed=False)
    tasks: tuple[Task, ...] = (1, 2)
    judged: tuple[Judged, ...] = ("visual", "formula")
    for year in YEARS:
        for task in tasks:
            yield item(f"topics {year}, task {task}", "topics", topic_patterns(year, task))
        for kind in _REPRESENTATIONS:
            patterns = topic_table_patterns(year, kind)
            yield item(f"formulas of the topics {year}, {kind}", "table", patterns, needed=False)
        yield item(f"judgments {year}, task 1", "qrels", qrels_patterns(year, 1))
        for what in judged:
            role = f"judgments {year}, task 2, by {what} id"
            yield item(role, "qrels", qrels_patterns(year, 2, what), needed=what == "visual")
        if year == "2022":
            yield item("judgments 2022, task 3", "qrels", qrels_patterns(year, 3), needed=False)


_ONE_FILE: dict[str, Callable[[Path], IO[bytes]]] = {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}
_BROKEN = (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, tarfile.TarError)


def packed_files(folder: Path) -> list[Path]:
    """List the archives in a folder that have files to read; only names are read."""
    return [item.files[0] for item in inventory(folder) if item.state == "packed"]


def unpack_release(folder: Path, output: Path | None = None, *, verbose: bool = False) -> list[Path]:
    """Unpack each archive of the release whose content is not unpacked yet.

    ``.zip``, ``.bz2``, ``.xz`` and ``.tar.gz`` need no other package, ``.7z`` the extra ``archives``. Gzipped files
    (``Posts.V1.3.xml.gz``, ``1.tsv.gz``) are read without unpacking. The content is moved into place when it is
    complete, so an interrupted run leaves no partial file. Nothing is downloaded or deleted.

    Args:
        folder: the local copy.
        output: the folder for the content; by default the folder of each archive.
        verbose: whether to show progress.

    Returns:
        The unpacked files and folders of formula tables.

    Raises:
        ARQMathError: an archive is broken, or would write outside its folder.
        MissingExtraError: there is a ``.7z`` and py7zr is not installed.
    """
    made: list[Path] = []
    for archive in progress(packed_files(folder), "unpacking", "archives", verbose=verbose):
        target = output if output is not None else archive.parent
        target.mkdir(parents=True, exist_ok=True)
        fresh = target / f".{archive.name}.unpacking"
        shutil.rmtree(fresh, ignore_errors=True)
        content = fresh / "content"
        content.mkdir(parents=True)
        try:
            _extract(archive, content)
            for path in _as_read(archive, content, fresh / "ready"):
                made.append(target / path.name)
                if not made[-1].exists():  # an existing file is kept
                    move(path, made[-1])
        except _BROKEN as error:
            raise _error(archive, str(error) or type(error).__name__) from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return made


def _extract(archive: Path, fresh: Path) -> None:
    """Unpack an archive into an empty folder; a member that would be written outside of it is an error."""
    name = archive.name.lower()
    if name.endswith(".zip"):
        with zipfile.ZipFile(archive) as file:
            _check_names(archive, file.namelist())
            file.extractall(fresh)
    elif name.endswith(".7z"):
        py7zr = require("py7zr", "archives")
        try:
            with py7zr.SevenZipFile(archive) as file:
                _check_names(archive, file.getnames())
                file.extractall(fresh)
        except py7zr.exceptions.ArchiveError as error:
            raise _error(archive, str(error)) from error
    elif name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(archive) as tar:
            members = [member for member in tar.getmembers() if member.isfile() or member.isdir()]
            _check_names(archive, [member.name for member in members])
            for member in members:
                tar.extract(member, fresh, set_attrs=False)
    else:
        with _ONE_FILE[archive.suffix.lower()](archive) as source, (fresh / archive.stem).open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)


def _check_names(archive: Path, names: list[str]) -> None:
    for name in names:
        if name.startswith(("/", "\\")) or ".." in Path(name.replace("\\", "/")).parts:
            raise _error(archive, f"its member {name!r} would be written outside of its folder")


def _as_read(archive: Path, content: Path, ready: Path) -> list[Path]:
    """Return what to keep: all of the content, or for formula tables one folder with the name of the archive."""
    stem = archive.name.split(".")[0]
    if "_representation" not in stem.lower():
        return [path for path in sorted(content.iterdir()) if not path.name.startswith((".", "__MACOSX"))]
    tables = [path for path in sorted(content.rglob("*.tsv")) if "__MACOSX" not in path.parts]
    if not tables:
        raise _error(archive, "it has no .tsv table")
    folder = ready / stem
    folder.mkdir(parents=True)
    for table in tables:
        move(table, folder / table.name)
    return [folder]


def _error(archive: Path, reason: str) -> ARQMathError:
    return ARQMathError(f"{archive}: {reason}. Download it again from {DOWNLOAD_PAGE}, or unpack it by hand")
