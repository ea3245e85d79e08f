"""Which files of the release a folder has: each role, the file that plays it, or the archive that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from . import layout
from .layout import Judged, Patterns, Representation, Task
from .release import Release

State = Literal["present", "packed", "missing", "incomplete"]

YEARS = ("2020", "2021", "2022")
_REPRESENTATIONS: tuple[Representation, ...] = ("latex", "slt", "opt")


class Item(NamedTuple):
    """One role in the release and what plays it."""

    role: str  # such as "posts" or "judgements 2022, task 2, by visual id"
    reader: Literal["posts", "pairs", "links", "table", "topics", "qrels"]
    files: tuple[Path, ...]  # empty where missing; the archive where packed
    state: State
    needed: bool  # False for what many complete copies lack
    note: str = ""


def inventory(folder: Path) -> list[Item]:
    """List the roles of the release and what plays them below a folder; reads names only."""
    release = Release(folder)
    return [
        _one(release, "posts", "posts", layout.POSTS, packed=layout.PACKED_POSTS),
        *(_tables(release, kind) for kind in _REPRESENTATIONS),
        _one(release, "links between questions", "links", layout.LINKS, needed=False, packed=layout.PACKED_LINKS),
        _one(release, "training pairs as a table", "pairs", layout.PAIRS, needed=False),
        *(item for year in YEARS for item in _of_year(release, year)),
    ]


def _of_year(release: Release, year: str) -> Iterator[Item]:
    tasks: tuple[Task, ...] = (1, 2)
    for task in tasks:
        yield _one(release, f"topics {year}, task {task}", "topics", layout.topic_patterns(year, task))
    for kind in _REPRESENTATIONS:
        patterns = layout.topic_table_patterns(year, kind)
        yield _one(release, f"formulas of the topics {year}, {kind}", "table", patterns, needed=False)
    yield _one(release, f"judgements {year}, task 1", "qrels", layout.qrels_patterns(year, 1))
    judged: tuple[Judged, ...] = ("visual", "formula")
    for what in judged:
        role = f"judgements {year}, task 2, by {what} id"
        yield _one(release, role, "qrels", layout.qrels_patterns(year, 2, what), needed=what == "visual")
    if year == "2022":
        yield _one(release, "judgements 2022, task 3", "qrels", layout.qrels_patterns(year, 3), needed=False)


def _one(
    release: Release,
    role: str,
    reader: Literal["posts", "pairs", "links", "table", "topics", "qrels"],
    patterns: Patterns,
    *,
    needed: bool = True,
    packed: Patterns = (),
) -> Item:
    # The complete judgements are checked, not those cut down to a part, which lie beside them.
    file = release.find(patterns, complete=True) or release.find(patterns)
    if file:
        return Item(role, reader, (file,), "present", needed)
    archive = release.find(packed)
    return Item(role, reader, (archive,) if archive else (), "packed" if archive else "missing", needed)


def _tables(release: Release, kind: Representation) -> Item:
    role, files = f"formulas, {kind}", release.tables(kind)
    if not files:
        archive = release.find(layout.packed_table_patterns(kind))
        return Item(role, "table", (archive,) if archive else (), "packed" if archive else "missing", True)
    numbers = {int(file.name.split(".")[0]) for file in files}
    absent = sorted(set(range(1, max(numbers) + 1)) - numbers)
    if not absent:
        return Item(role, "table", files, "present", True)
    note = "no " + ", ".join(f"{number}.tsv" for number in absent[:5]) + (", …" if len(absent) > 5 else "")
    return Item(role, "table", files, "incomplete", True, note)
