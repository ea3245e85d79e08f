"""What the sparse indexes share: one part after a build, options that must agree, and merging."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress, told_once
from pyterrier_mathamr._common.parameters import FLAG, Rule, one_of
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr._common.transformers import Indexer
from pyterrier_mathamr.explain import Explanation, QueryRow
from pyterrier_mathamr.store import META, DamagedError, Job, Mode, Parts, Snapshot, StoredArtifact, detail, merged

from .ranking import SparseRetriever
from .reading import DOCUMENT_COLUMNS, checked_documents

Options = TypeVar("Options")
Details = Mapping[str, Any]
"""The options of an index by their name, as its manifest keeps them."""

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


def reads_bare_formulas(snapshot: Snapshot) -> bool:
    """Tell whether an index was built of formulas without delimiters, too; its queries are read likewise."""
    return bool(snapshot.manifest.details.get("bare_formulas"))


def sources_of(parts: Parts) -> npt.NDArray[np.uint64]:
    """Return the hashes of the documents of the rows of some parts, deleted rows included."""
    return np.concatenate([np.zeros(0, dtype=np.uint64), *(part["sources"] for part in parts.parts)])


class BuiltOnce(StoredArtifact, pt.Indexer):  # type: ignore[misc]
    """What is built from posts into a folder, in one step at the end."""

    KEEPS_FIRST: ClassVar[bool] = False
    """Whether a second row of an id is left out; otherwise it is an error."""
    indexer: Callable[..., SparseIndexer]

    def check_same(self, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Compare the options of this index with others."""
        for name in dict.fromkeys([*wanted, *found]):
            ours, theirs = found.get(name, False), wanted.get(name, False)  # absent in an earlier release
            if ours != theirs:
                raise ConfigError(name, theirs, f"that of the index {self.path}: {ours}")

    @classmethod
    def merge(cls, path: str | Path, *indexes: Self) -> Self:
        """Build a new index of all rows of some others, in their order."""
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
        return [list(columns) for columns in DOCUMENT_COLUMNS]


class SparseIndex(BuiltOnce):
    """An index of term counts in a folder; called directly it searches with the defaults of its retriever."""

    retriever: Callable[..., SparseRetriever]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with the defaults of :meth:`retriever`."""
        return self.retriever().transform(inp)

    def transform_iter(self, inp: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Search with the defaults of :meth:`retriever`."""
        return self.retriever().transform_iter(inp)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what contributes to the score of a result: ``retriever().explain(query, docno)``."""
        return self.retriever().explain(query, docno)

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Return the retriever that a rank cutoff fuses into."""
        return self.retriever().fuse_rank_cutoff(k)


Batch = list[Mapping[str, Any]]


class Growing(Protocol):
    """A part that is counted in memory."""

    def add(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Count documents; write a part when it is large enough."""

    def write(self) -> None:
        """Write what was counted since the last part."""


Part = TypeVar("Part", bound=Growing)


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
        return [list(columns) for columns in DOCUMENT_COLUMNS]

    def read(self, part: Any, batches: Iterator[Batch]) -> Generator[Any, None, None]:
        """Prepare batches of documents for the part that counts them; by default they are left to it."""
        yield from batches

    def build(
        self,
        index: BuiltOnce,
        stream: pd.DataFrame | Iterable[Mapping[str, Any]],
        details: Details,
        sources: Mapping[str, Any],
        begin: Callable[[Job], Part],
    ) -> Part:
        """Count documents and write them as parts of a job; they become the index at the end."""
        total = getattr(stream, "__len__", lambda: None)()
        with self.begun(index, details, sources, begin) as part:
            checked, title = checked_documents(stream, self), self.label.replace("Indexer", "index")
            beside = self.executor.doing if self.executor is not None else None
            shown = progress(checked, title, "documents", verbose=self.verbose, total=total, beside=beside)
            documents = iter(shown)
            with closing(self.read(part, iter(lambda: list(islice(documents, BATCH)), []))) as batches:
                for batch in batches:
                    part.add(batch)
        return part

    @contextmanager
    def begun(
        self,
        index: BuiltOnce,
        details: Details,
        sources: Mapping[str, Any],
        begin: Callable[[Job], Part],
    ) -> Iterator[Part]:
        """Open a job of the index, and publish what the body has counted; see :meth:`build`."""
        details = {**details, "bare_formulas": bool(self.bare_formulas)}
        with told_once(), index.job(self.mode, {**details, **sources}, resume=self.resume) as job:
            if job.base is not None:
                index.check_same(job.base.details, details)
            part = begin(job)
            yield part
            part.write()
            job.commit(details, compact=self.mode != "append")
