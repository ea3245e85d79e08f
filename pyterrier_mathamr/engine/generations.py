"""The folder of an engine: generations of its indexes, of which ``pt_meta.json`` names the one that is the engine.

::

    my.engine/
      pt_meta.json      the generation, and the options it was built with; replaced in one step
      generation-1/     posts/  graphs/  bm25/  tangent/  vectors/  formulas/

A generation without the record is a build that was stopped; the next one with the same posts and options continues it.
"""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyterrier as pt

from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.store import (
    META,
    PACKAGE,
    ExistsError,
    NotBuiltError,
    OtherArtifactError,
    check_kind,
    parse_json,
    read_signed,
    replace_file,
    signature,
    signed,
)
from pyterrier_mathamr.systems import BM25Index, TangentIndex

from .posts import PostStore

TYPE, FORMAT, VERSION = "search_engine", "mathamr", 1
_PREFIX = "generation-"


class EngineExistsError(ExistsError):
    """There is an engine already, and it is not to be replaced."""

    advice = "overwrite=True (--overwrite) replaces it, add() (--add) adds to it; or give another path."


class Indexes(NamedTuple):
    """What an engine consists of."""

    posts: PostStore
    graphs: GraphStore
    bm25: BM25Index
    tangent: TangentIndex
    vectors: MathAMRIndex
    formulas: MathAMRFormulaIndex

    @classmethod
    def of(cls, folder: Path) -> Indexes:
        """Name the indexes in a folder, whether they are built or not."""
        kinds = (PostStore, GraphStore, BM25Index, TangentIndex, MathAMRIndex, MathAMRFormulaIndex)
        return cls(*(kind(folder / name) for kind, name in zip(kinds, cls._fields, strict=True)))


class Generation:
    """One generation that is complete, as an engine uses it.

    Args:
        folder: of its indexes.
        options: what it was built with: ``model``, ``vectors_by``, ``parser``, ``bare_formulas``.
    """

    def __init__(self, folder: Path, options: dict[str, Any]) -> None:
        self.folder, self.options, self.indexes = folder, options, Indexes.of(folder)

    def model(self) -> MathAMR:
        """Open the model of its vectors."""
        return MathAMR.from_pretrained(self.options["model"])

    @cached_property
    def encode(self) -> pt.Transformer:
        """The transformer of queries to ``query_embs``."""
        return GraphBuilder(self.options["parser"]) >> self.model().query_encoder()


class Generations:
    """The generations in the folder of an engine.

    Args:
        path: the folder; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: Generation | None = None
        self._signature = (0, 0, 0)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def built(self) -> bool:
        """Tell whether there is a finished engine."""
        return (self.path / META).is_file()

    def current(self) -> Generation:
        """Return the generation that is the engine, opened again when another has taken its place.

        Raises:
            NotBuiltError: there is none. OtherArtifactError: the folder holds something else. FormatError: it has a
                format that this release does not read.
        """
        found = signature(self.path)
        if self._opened is None or found != self._signature:
            self._opened, self._signature = self._open(), found
        return self._opened

    def _open(self) -> Generation:
        if not self.built():
            raise NotBuiltError(self.path, _none_here(self.path))
        found = parse_json((self.path / META).read_bytes(), self.path / META)
        check_kind(found, self.path, f"{TYPE}.{FORMAT}", VERSION, "mathamr build POSTS -o {path} --overwrite")
        options = dict(read_signed(self.path / META)["details"])
        return Generation(self.path / options.pop("generation"), options)

    def next(self, overwrite: bool) -> Path:
        """Return the folder to build in: that of a build that was stopped, or a new one.

        Raises:
            ExistsError: there is an engine, which is not to be replaced. OtherArtifactError: the folder holds something
                else.
        """
        if self.built():
            current = self.current().folder.name
            if not overwrite:
                raise EngineExistsError(self.path, "there is a search engine already")
            return self.path / f"{_PREFIX}{int(current.removeprefix(_PREFIX)) + 1}"
        foreign = self.path.exists() and (
            not self.path.is_dir() or any(not each.name.startswith(_PREFIX) for each in self.path.iterdir())
        )
        if foreign:
            raise OtherArtifactError(self.path, "it holds something else than a search engine")
        return self.path / f"{_PREFIX}1"

    def publish(self, generation: Path, options: dict[str, Any]) -> None:
        """Make a generation the engine in one step, and remove the one before."""
        meta = {
            "type": TYPE,
            "format": FORMAT,
            "package_hint": PACKAGE,
            "format_version": VERSION,
            "details": {"generation": generation.name, **options},
        }
        replace_file(self.path / META, signed(meta))
        self.discard()

    def discard(self) -> None:
        """Remove every generation but the one that is the engine."""
        current = self.current().folder if self.built() else None
        for generation in self.path.glob(f"{_PREFIX}*"):
            if generation != current:
                shutil.rmtree(generation)


def _none_here(path: Path) -> str:
    """Say that there is no engine, and whether the build of one was stopped."""
    if path.is_dir() and any(path.glob(f"{_PREFIX}*")):
        return "the build of this search engine is not complete; the call or command that began it continues it"
    call = "mathamr build POSTS -o ENGINE, or SearchEngine.build(posts, path)"
    return f"there is no search engine; one is built by {call}"
