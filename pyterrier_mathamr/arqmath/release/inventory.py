"""The files of the release in a folder: each role with its file, or the archive that has it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from pyterrier_mathamr.arqmath.errors import MissingFileError

from . import file_names
from .file_names import Judged, Patterns, Representation, Task

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
        found = []
        for folder, folders, names in os.walk(self.path):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f.lower() not in _PASSED_OVER)
            found += [Path(folder, name) for name in sorted(names)]
        return tuple(found)

    def find(self, patterns: Patterns, *, complete: bool = False) -> Path | None:
        """Return the best file whose name one of the patterns matches, or ``None``."""
        for pattern in patterns:
            rule = re.compile(pattern, re.IGNORECASE)
            matching = [file for file in self.files if rule.fullmatch(file.name.replace(".mini.", "."))]
            minis = [file for file in matching if ".mini." in file.name]
            chosen = [file for file in matching if file not in minis] if complete else minis or matching
            if chosen:
                return max(chosen, key=lambda file: _version(file.name))
        return None

    def need(self, what: str, patterns: Patterns, *, complete: bool = False, hint: str = "") -> Path:
        """Return the file of :meth:`find`."""
        file = self.find(patterns, complete=complete)
        if file is None:
            raise MissingFileError(what, self.path, tuple(_readable(patterns)), hint)
        return file

    def tables(self, kind: Representation) -> tuple[Path, ...]:
        """Return the numbered formula tables of the latest version of one representation, in numeric order."""
        versions: dict[int, list[tuple[int, Path]]] = {}
        for file in self.files:
            folder, name = _TABLE_FOLDER.fullmatch(file.parent.name), _TABLE.fullmatch(file.name)
            if folder and name and folder[1].lower() == kind:
                versions.setdefault(int(folder[2] or 0), []).append((int(name[1]), file))
        return tuple(file for _, file in sorted(versions[max(versions)])) if versions else ()


def _version(name: str) -> tuple[int, ...]:
    """Return the numbers in a name such as ``Posts.V1.3.xml``, so that V1.10 sorts after V1.9."""
    return tuple(int(number) for number in re.findall(r"\d+", name))


def _readable(patterns: Iterable[str]) -> Iterable[str]:
    """Convert patterns to readable names: ``Posts.V*.xml``."""
    for pattern in patterns:
        name = re.sub(r"\(\[\._\]V\[\\d\.\]\+\)\?|\[\\d\.\]\+|\\d\+", "*", pattern)
        yield re.sub(r"\((?:[^()|]*)\)\?|\\", "", name)


class Item(NamedTuple):
    """A role in the release and its files."""

    role: str  # such as "posts" or "judgments 2022, task 2, by visual id"
    reader: Literal["posts", "pairs", "links", "table", "topics", "qrels"]
    files: tuple[Path, ...]  # empty where missing; the archive where packed
    state: State
    needed: bool  # False for what many complete copies lack
    note: str = ""


def inventory(folder: Path) -> list[Item]:
    """List the roles of the release with their files below a folder; only names are read."""
    release = Release(folder)
    return [
        _one(release, "posts", "posts", file_names.POSTS, packed=file_names.PACKED_POSTS),
        *(_tables(release, kind) for kind in _REPRESENTATIONS),
        _one(
            release, "links between questions", "links", file_names.LINKS, needed=False, packed=file_names.PACKED_LINKS
        ),
        _one(release, "training pairs as a table", "pairs", file_names.PAIRS, needed=False),
        *(item for year in YEARS for item in _of_year(release, year)),
    ]


def is_release(path: str | Path) -> bool:
    """Tell whether a path is a folder with a part of the release, by the names of its files."""
    return Path(path).is_dir() and any(item.files for item in inventory(Path(path)))


def _of_year(release: Release, year: str) -> Iterator[Item]:
    tasks: tuple[Task, ...] = (1, 2)
    for task in tasks:
        yield _one(release, f"topics {year}, task {task}", "topics", file_names.topic_patterns(year, task))
    for kind in _REPRESENTATIONS:
        patterns = file_names.topic_table_patterns(year, kind)
        yield _one(release, f"formulas of the topics {year}, {kind}", "table", patterns, needed=False)
    yield _one(release, f"judgments {year}, task 1", "qrels", file_names.qrels_patterns(year, 1))
    judged: tuple[Judged, ...] = ("visual", "formula")
    for what in judged:
        role = f"judgments {year}, task 2, by {what} id"
        yield _one(release, role, "qrels", file_names.qrels_patterns(year, 2, what), needed=what == "visual")
    if year == "2022":
        yield _one(release, "judgments 2022, task 3", "qrels", file_names.qrels_patterns(year, 3), needed=False)


def _one(
    release: Release,
    role: str,
    reader: Literal["posts", "pairs", "links", "table", "topics", "qrels"],
    patterns: Patterns,
    *,
    needed: bool = True,
    packed: Patterns = (),
) -> Item:
    # The complete judgments are checked, not the restricted ones beside them.
    file = release.find(patterns, complete=True) or release.find(patterns)
    if file:
        return Item(role, reader, (file,), "present", needed)
    archive = release.find(packed)
    return Item(role, reader, (archive,) if archive else (), "packed" if archive else "missing", needed)


def _tables(release: Release, kind: Representation) -> Item:
    role, files = f"formulas, {kind}", release.tables(kind)
    if not files:
        archive = release.find(file_names.packed_table_patterns(kind))
        return Item(role, "table", (archive,) if archive else (), "packed" if archive else "missing", True)
    numbers = {int(file.name.split(".")[0]) for file in files}
    absent = sorted(set(range(1, max(numbers) + 1)) - numbers)
    if not absent:
        return Item(role, "table", files, "present", True)
    note = "no " + ", ".join(f"{number}.tsv" for number in absent[:5]) + (", …" if len(absent) > 5 else "")
    return Item(role, "table", files, "incomplete", True, note)
