"""The common part of sparse indexes: they read posts, are one part after a build, merge, and rank.

::

    posts ── SparseIndexer ──▶ (a system: terms) ──▶ parts of a job ──▶ SparseIndex
                                                                            │
    queries ── SparseRetriever ──▶ (a system: scores) ── best_first ──▶ ranking: score descending, then name ascending
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr import posts
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning, listed
from pyterrier_mathamr._common.feedback import progress, reported_once
from pyterrier_mathamr._common.frames import best_places, empty_output
from pyterrier_mathamr._common.ids import identified
from pyterrier_mathamr._common.parameters import FLAG, Rule, one_of
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr._common.transformers import Composing, Indexer, Retriever
from pyterrier_mathamr.explain import Explanation, QueryRow
from pyterrier_mathamr.posts import DocumentError, MathPost
from pyterrier_mathamr.posts.topics import distinct_queries, with_query
from pyterrier_mathamr.store import (
    META,
    Array,
    DamagedError,
    Job,
    Mode,
    Parts,
    Rows,
    Snapshot,
    StoredArtifact,
    detail,
    merged,
)

Names = Callable[[Rows], list[str]]
"""Returns the texts of some numbers."""

Found = tuple[Rows, Array]
"""The numbers and scores of a query's results, best first."""

_REMEMBERED = 1 << 18


class SparseRetriever(Retriever):
    """Searches with each query of a frame, once for each ``qid``."""

    inputs: ClassVar[tuple[tuple[str, ...], ...]]
    """The columns of a query besides ``qid``, one tuple for each way."""
    outputs: ClassVar[tuple[str, ...]]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        with pt.validate.any(inp, context=self) as validation:
            for columns in self.inputs:
                validation.query_frame(extra_columns=list(columns))
        queries = with_query(distinct_queries(inp, self.outputs))
        return empty_output(queries, self.outputs) if queries.empty else self.search_all(queries)

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row."""
        raise NotImplementedError

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the score of a result; see :meth:`SparseIndex.explain`."""
        raise NotImplementedError


def best_first(numbers: Rows, scores: Array, count: int, names: Names) -> Found:
    """Rank by score descending, then by name ascending as Python compares texts."""
    best = best_places(scores, count, lambda places: names(numbers[places]))
    return numbers[best], scores[best]


class Remembered:
    """Reads texts by number and caches them, since many queries find the same documents."""

    def __init__(self, snapshot: Snapshot, read: Callable[[Any, Rows], list[str]]) -> None:
        self._snapshot, self._read = weakref.proxy(snapshot), read
        self._known: dict[int, str] = {}

    def __call__(self, numbers: Rows) -> list[str]:
        wanted, known = numbers.tolist(), self._known
        try:
            return list(map(known.__getitem__, wanted))
        except KeyError:
            if len(known) > _REMEMBERED:
                known = self._known = {}  # another thread may still read the old one
            missing = [number for number in dict.fromkeys(wanted) if number not in known]
            known.update(zip(missing, self._read(self._snapshot, np.asarray(missing, dtype=np.int64)), strict=True))
            return list(map(known.__getitem__, wanted))


def document_or_empty(document: Mapping[Any, Any], *, bare_formulas: bool = False) -> MathPost:
    """Read a document as :func:`~pyterrier_mathamr.posts.document_post`; one that cannot be read is empty."""
    try:
        return posts.document_post(document, bare_formulas=bare_formulas)
    except DocumentError as error:
        name = f"document {document.get('docno')!r}"
        warnings.warn(f"{name} cannot be read; it is used without text: {error}", MathAMRWarning, stacklevel=2)
        return MathPost("", ())


def warn_of_queries(qids: Sequence[str], which: str, advice: str) -> None:
    """Warn once of all queries that cannot find anything; ``which`` describes them."""
    if qids:
        warnings.warn(f"{which} find nothing: {listed(qids)}. {advice}", MathAMRWarning, stacklevel=4)


Options = TypeVar("Options")

PART_BYTES = 64 << 20
"""Counted in memory before a part is written, and lost if an indexer is killed."""
UNBOUNDED = 1 << 50
"""Size of a full part: an index that is built or compacted is one part, which is memory-mapped."""
BATCH = 256
"""Documents that are looked up together."""


def read_options(snapshot: Snapshot, name: str, read: Callable[[dict[str, Any]], Options]) -> Options:
    """Read the options that an index was built with."""
    values = detail(snapshot.manifest.details, name, dict, snapshot.path)
    try:
        return read(values)
    except (ConfigError, TypeError) as error:
        raise DamagedError(snapshot.path / META, f"its {name} are wrong ({error!s:.200})") from error


def sources_of(parts: Parts) -> npt.NDArray[np.uint64]:
    """Return the hashes of the documents of the rows of some parts, deleted rows included."""
    return np.concatenate([np.zeros(0, dtype=np.uint64), *(part["sources"] for part in parts.parts)])


class BuiltOnce(StoredArtifact, pt.Indexer):  # type: ignore[misc]
    """An artifact that is built from posts into a folder, in one step at the end."""

    KEEPS_FIRST: ClassVar[bool] = False
    """Whether a second row of an id is left out; otherwise it is an error."""
    indexer: Callable[..., SparseIndexer]

    def check_same(self, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Raise an error where the options ``stored`` in this index differ from those that are ``wanted``."""
        for name in dict.fromkeys([*wanted, *stored]):
            ours, theirs = stored.get(name, False), wanted.get(name, False)  # absent in an earlier release
            if ours != theirs:
                raise ConfigError(name, theirs, f"that of the index {self.path}: {ours}")

    @classmethod
    def merge(cls, path: str | Path, *indexes: Self) -> Self:
        """Build a new index at ``path`` of all rows of some other ``indexes`` with the same options, in their order."""
        target = cls(path)
        if not indexes or any(type(index) is not cls for index in indexes):
            raise ConfigError("indexes", indexes, f"at least one {cls.__name__}, and nothing else")
        snapshots = [index.open_snapshot() for index in indexes]
        details = snapshots[0].manifest.details
        for index, snapshot in zip(indexes, snapshots, strict=True):
            index.check_same(snapshot.manifest.details, details)
        with target.job("create", {**details, "job": "merge"}, resume=False) as job:
            for part in (part for snapshot in snapshots for part in snapshot.parts):
                if cls.KEEPS_FIRST:
                    part.deleted = np.union1d(part.deleted, np.flatnonzero(job.look_up(list(part.ids)) >= 0))
                job.add(merged([part]))
            job.commit(details, compact=True)
        return target

    def index(self, iter: pd.DataFrame | Iterable[Mapping[str, Any]]) -> Self:
        """Build the index with the defaults of :meth:`indexer`, and return it."""
        self.indexer().index(iter)
        return self

    def index_inputs(self) -> list[list[str]]:
        """Return the columns of a document, one list for each way."""
        return self.indexer().index_inputs()


class SparseIndex(Composing, BuiltOnce):
    """An index that is searched; called directly it is the retriever with its defaults."""

    retriever: Callable[..., SparseRetriever]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        return self.retriever().transform(inp)

    def transform_iter(self, inp: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return self.retriever().transform_iter(inp)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the score of the result ``docno`` for ``query``: ``retriever().explain(query, docno)``."""
        return self.retriever().explain(query, docno)

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Return the retriever that a rank cutoff fuses into."""
        return self.retriever().fuse_rank_cutoff(k)


class SparseIndexer(Indexer):
    """Builds a sparse index, or adds to one, in one step at the end."""

    checks: ClassVar[Mapping[str, Rule]] = {"mode": one_of(*get_args(Mode)), "bare_formulas": FLAG}
    mode: Mode
    bare_formulas: bool
    resume: bool
    verbose: bool
    executor: Executor | None = None
    """Where documents are read, by the indexers that have one."""

    def index_inputs(self) -> list[list[str]]:
        """Return the columns of a document, one list for each way."""
        return [["docno", name] for name in posts.DOCUMENT_COLUMNS]

    def batches(self, stream: pd.DataFrame | Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
        """Cut documents into batches, after a check of the first one."""
        peekable: Any = pt.utils.peekable(identified(stream))
        try:
            peekable.peek()
        except StopIteration:
            return
        with pt.validate.any_iter(peekable, context=self) as validation:
            for columns in self.index_inputs():
                validation.columns(includes=columns)
        title, total = self.label.replace("Indexer", "index"), getattr(stream, "__len__", lambda: None)()
        note = self.executor.doing if self.executor is not None else None
        shown = iter(progress(peekable, title, "documents", verbose=self.verbose, total=total, note=note))
        while batch := list(islice(shown, BATCH)):
            yield batch

    @contextmanager
    def begun(self, index: BuiltOnce, details: Mapping[str, Any], sources: Mapping[str, Any]) -> Iterator[Job]:
        """Open a job of the index, and publish the additions of the body.

        Args:
            index: to write.
            details: its options; an index that is added to must have the same.
            sources: what else determines its rows; a job with others is not resumed.
        """
        details = {**details, "bare_formulas": bool(self.bare_formulas)}
        with reported_once(), index.job(self.mode, {**details, **sources}, resume=self.resume) as job:
            if job.base is not None:
                index.check_same(job.base.details, details)
            yield job
            job.commit(details, compact=self.mode != "append")
