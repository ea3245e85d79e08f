"""The folder of an engine: generations of its indexes; ``pt_meta.json`` names the current one.

::

    my.engine/
      pt_meta.json      the generation, the identity of each of its indexes, the options; replaced in one step
      generation-7/     posts/  graphs/  bm25/  tangent/  patterns/  vectors/  formulas/   not changed once it is named
      generation-8/     the next one, until it is named or discarded
        change.json     the state that it is a changed copy of, and the change

    build                   fills an empty generation, and continues one that a stopped build has left
    update, add, delete     change a copy of links to the files of the state before: unchanged files cost nothing
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.posts import ReadingOptions, SourceMacros, macros_read
from pyterrier_mathamr.sparse import BM25Index, PatternIndex, TangentIndex
from pyterrier_mathamr.store import (
    META,
    DamagedError,
    FormatError,
    Kind,
    NotBuiltError,
    OtherArtifactError,
    StoreError,
    WriteError,
    detail,
    has_manifest,
    move,
    read_details,
    signed,
    sync_tree,
    write_details,
    writing,
)
from pyterrier_mathamr.store.saved import UNREADABLE, reason_of

from .posts import PostStore
from .ranking import UnrelatedScores

ENGINE = Kind("search_engine", 3, rebuild="mathamr build POSTS -o {path} --overwrite")
_PREFIX = "generation-"
_GENERATION = re.compile(r"generation-([0-9]{1,12})")
_OURS = re.compile(rf"\.?{_GENERATION.pattern}")  # with a dot: one that is being copied or removed
_CHANGE = "change.json"
REMOVED = ".removed"
"""A file in a changed copy, once it lacks all posts that go."""


class Indexes(NamedTuple):
    """The indexes of an engine."""

    posts: PostStore
    graphs: GraphStore
    bm25: BM25Index
    tangent: TangentIndex
    patterns: PatternIndex
    vectors: MathAMRIndex
    formulas: MathAMRFormulaIndex

    @classmethod
    def of(cls, folder: Path) -> Indexes:
        """Return the indexes in a folder, whether they are built or not."""
        return cls(
            posts=PostStore(folder / "posts"),
            graphs=GraphStore(folder / "graphs"),
            bm25=BM25Index(folder / "bm25", preset="structures"),
            tangent=TangentIndex(folder / "tangent"),
            patterns=PatternIndex(folder / "patterns"),
            vectors=MathAMRIndex(folder / "vectors"),
            formulas=MathAMRFormulaIndex(folder / "formulas"),
        )

    def compact(self, share: float = 0.0) -> None:
        """Rewrite the parts of each index without deleted rows; see :meth:`.StoredArtifact.compact`."""
        for index in self:
            if index.built():
                index.compact(share)

    def has_formulas(self, ids: Sequence[str]) -> list[bool]:
        return (self.formulas.snapshot().look_up(ids) >= 0).tolist() if self.formulas.built() else [False] * len(ids)


_READING = {name: type(value) for name, value in asdict(ReadingOptions()).items()}  # types of the stored options
_OPTIONAL = ("tangent", "patterns", "formulas")
"""The indexes that posts without formulas do not need."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options of a build."""

    model: str  # name or folder of the model
    vectors_by: str  # the identity of the model that made the vectors
    parser: str
    reading: ReadingOptions  # how the posts are read, also when some are added


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """The manifest of an engine."""

    generation: str  # the folder of its indexes
    indexes: Mapping[str, str | None]  # name to the identity of each, `None` for one that it does not have
    options: EngineOptions
    sources: Mapping[str, str]  # the folders and files that its posts were read from, and the docno prefix of each
    unrelated: UnrelatedScores  # how high unrelated posts score
    tombstones: Mapping[str, Sequence[int]]  # files whose posts were deleted while the files stayed
    macros: SourceMacros  # the macros of each source, which questions may have, by its root
    change: str = ""  # the identity of the last change, so that a repeated call is recognized; empty after a build

    @property
    def identity(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @classmethod
    def read(cls, path: Path) -> Self:
        details = read_details(path, ENGINE)
        generation = detail(details, "generation", str, path)
        if not _GENERATION.fullmatch(generation):
            raise DamagedError(path / META, f"its generation is {generation!r:.80}, not one such as {_PREFIX}1")
        indexes = detail(details, "indexes", dict, path)
        if list(indexes) != list(Indexes._fields) or not all(
            isinstance(identity, str) or (identity is None and name in _OPTIONAL) for name, identity in indexes.items()
        ):
            raise DamagedError(path / META, f"its indexes are not {', '.join(Indexes._fields)} with a checksum of each")
        reading = {"exclude": "", **detail(details, "reading", dict, path)}
        if {name: type(value) for name, value in reading.items()} != _READING:
            raise DamagedError(path / META, f"its reading is {reading!r:.80}, not {', '.join(_READING)}")
        options = EngineOptions(
            detail(details, "model", str, path),
            detail(details, "vectors_by", str, path),
            detail(details, "parser", str, path),
            ReadingOptions(**reading),
        )
        sources = detail(details, "sources", dict, path)
        if not all(isinstance(prefix, str) for prefix in sources.values()):
            raise DamagedError(path / META, "one of its sources has a prefix that is not text")
        try:
            unrelated = UnrelatedScores.read(detail(details, "unrelated", dict, path))
        except UNREADABLE as error:
            raise DamagedError(path / META, f"its scores of unrelated posts: {reason_of(error)}") from error
        tombstones = detail({"tombstones": {}, **details}, "tombstones", dict, path)
        if not all(isinstance(digests, list) and {*map(type, digests)} == {int} for digests in tombstones.values()):
            raise DamagedError(path / META, "one of its tombstones is not a list of whole numbers")
        try:
            macros = macros_read(detail({"macros": {}, **details}, "macros", dict, path))
        except UNREADABLE as error:
            raise DamagedError(path / META, f"its macros: {reason_of(error)}") from error
        change = detail(details, "change", str, path)
        return cls(generation, indexes, options, sources, unrelated, tombstones, macros, change)

    def write(self, path: Path, posts: int) -> None:
        about = {"generation": self.generation, "indexes": self.indexes, **asdict(self.options)}
        details = {**about, "sources": self.sources, "unrelated": asdict(self.unrelated), "change": self.change}
        details |= {"tombstones": self.tombstones} if self.tombstones else {}
        details |= {"macros": self.macros} if any(self.macros.values()) else {}
        write_details(path, ENGINE, posts, details)

    def open(self, path: Path) -> Indexes:
        """Open the indexes of this state, whatever becomes of their folder later."""
        indexes = Indexes.of(path / self.generation)
        for name, index in indexes._asdict().items():
            if (identity := self.indexes[name]) is not None:
                index.check_member(identity, path)
            elif index.path.exists():
                raise DamagedError(index.path, f"{path / META} names no such part")
            index.pin(built=identity is not None)
        return indexes

    def faults(self, path: Path, *, verbose: bool) -> Iterator[StoreError]:
        """Read all indexes, compare every checksum, and yield the faults."""
        for name, index in Indexes.of(path / self.generation)._asdict().items():
            if (identity := self.indexes[name]) is not None:
                yield from index.member_faults(identity, path, verbose=verbose)
            elif index.path.exists():
                yield DamagedError(index.path, f"{path / META} names no such part")


class Generations:
    """The generations in the folder of an engine, for its writer, which holds the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def built(self) -> bool:
        return has_manifest(self.path)

    def for_build(self, overwrite: bool) -> Path:
        """Return the folder to build in: the folder of a stopped build, or a new one."""
        if self.built():
            current = self._current()
            if not overwrite:
                choice = "Update it by `mathamr update`, overwrite it, or give another path"
                raise WriteError(self.path, f"there is a search engine here already. {choice}")
            folder = self.path / f"{_PREFIX}{current + 1}"
            if (folder / _CHANGE).exists():  # the copy of a change that was stopped
                _remove(folder)
            return folder
        if self.path.exists() and not self.path.is_dir():
            raise OtherArtifactError(self.path, "it is a file, not a search engine")
        if self.path.exists() and not all(_OURS.fullmatch(entry.name) for entry in self.path.iterdir()):
            raise OtherArtifactError(self.path, f"it holds files but no {META}, so it is not a search engine")
        return self.path / f"{_PREFIX}1"

    def copy(self, record: EngineRecord, change: str) -> Path:
        """Return a copy of the engine to change: the one that the same, stopped change left, or a new one."""
        old = self.path / record.generation
        folder = self.path / f"{_PREFIX}{_number(old.name) + 1}"
        note = signed({"of": record.indexes, "change": change})
        try:
            if (folder / _CHANGE).read_bytes() == note:
                return folder
        except OSError:
            pass
        with writing(self.path):
            _remove(folder)
            unfinished = _hidden(folder)
            shutil.copytree(old, unfinished, copy_function=_linked, ignore=shutil.ignore_patterns(".*", _CHANGE))
            (unfinished / _CHANGE).write_bytes(note)
            sync_tree(unfinished)
            move(unfinished, folder)
        return folder

    def publish(self, generation: Path, record: EngineRecord) -> None:
        """Make a generation the engine in one step, with a record of all else, and remove the others."""
        indexes = Indexes.of(generation)
        identities = {
            name: index.snapshot().identity if index.built() else None for name, index in indexes._asdict().items()
        }
        with writing(self.path):
            replace(record, generation=generation.name, indexes=identities).write(self.path, len(indexes.posts))
        self.discard()

    def discard(self) -> None:
        """Remove every generation but the one that is the engine."""
        current = f"{_PREFIX}{self._current()}" if self.built() else ""
        for entry in self.path.glob("*"):
            if _OURS.fullmatch(entry.name) and entry.name != current:
                _remove(entry)
        if current:
            for note in (_CHANGE, REMOVED):
                (self.path / current / note).unlink(missing_ok=True)

    def _current(self) -> int:
        """Return the number of the engine's generation; of an engine that cannot be read the last one."""
        try:
            return _number(EngineRecord.read(self.path).generation)
        except (DamagedError, FormatError):
            matches = (_GENERATION.fullmatch(each.name) for each in self.path.iterdir())
            return max((int(match[1]) for match in matches if match), default=0)


def _number(generation: str) -> int:
    return int(generation.removeprefix(_PREFIX))


def _linked(source: str, target: str) -> None:
    """Link a file, which is never changed but only replaced; copy it where links are not to be had."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _remove(folder: Path) -> None:
    """Remove a generation in one step: one that is half removed would be taken for a build that was stopped."""
    hidden = _hidden(folder)
    shutil.rmtree(hidden, ignore_errors=True)
    if folder.exists():
        folder.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def _hidden(folder: Path) -> Path:
    return folder.with_name(f".{folder.name.removeprefix('.')}")


def none_here(path: Path) -> NotBuiltError:
    """Return the error for a missing engine, which mentions a stopped build."""
    reason = "there is no search engine here. Build one with `mathamr build POSTS -o ENGINE`"
    if path.is_dir() and any(path.glob(f"{_PREFIX}*")):
        reason = (
            "the build of this search engine is not complete; to resume it, repeat the call or command that started it"
        )
    return NotBuiltError(path, reason)
