"""One part, where it is: what the processes and actors that search parts compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyterrier_mathamr.index.artifacts import MathAMRIndex
from pyterrier_mathamr.index.building.entries import DType
from pyterrier_mathamr.index.protocols import ExactScores, Field, Numbers, Rows
from pyterrier_mathamr.index.search.exact import select
from pyterrier_mathamr.index.search.queries import QueryBatch
from pyterrier_mathamr.index.search.ranking import exact_scores, rank
from pyterrier_mathamr.index.snapshot import Snapshot

from .errors import PartChangedError, portable


@dataclass(frozen=True, slots=True)
class PartState:
    """What one part says of itself.

    Attributes:
        identity: the checksum of its manifest.
        numbers: of documents, deleted ones included: they are numbered from 0.
        documents: those that are not deleted.
        dimensions: the width of its rows; 0 while it has none.
        model: the identity of the model of its vectors, where known.
        dtype: how it stores rows.
        max_norm: the length of its longest row, rounded up.
        size: bytes of its files.
    """

    identity: str
    numbers: int
    documents: int
    dimensions: int
    model: str | None
    dtype: DType
    max_norm: float
    size: int


class Found(NamedTuple):
    """The best documents of one query in one part: numbers, scores and docnos, best first, ties by docno."""

    numbers: Numbers
    scores: ExactScores
    docnos: list[str]


class PartReader:
    """Answers the requests about one part. Each but :meth:`state` names the state that its numbers are of."""

    def __init__(self, path: Path) -> None:
        self._index = MathAMRIndex(path)

    def state(self) -> PartState:
        """Open the part as it is now."""
        snapshot = self._index.snapshot()
        meta = snapshot.meta
        size = sum(part.meta.size for part in snapshot.parts)
        counts = int(snapshot.bases[-1]), len(snapshot)
        return PartState(snapshot.identity, *counts, meta.dimensions, meta.model, meta.dtype, snapshot.max_norm, size)

    def best(self, identity: str, queries: QueryBatch, k: int, field: Field, device: str | None) -> list[Found]:
        """Find the best ``k`` documents of each query."""
        return self.ranked(identity, queries, select(self._of(identity), queries, k, field, device), k, field)

    def ranked(
        self, identity: str, queries: QueryBatch, candidates: Sequence[Numbers], k: int, field: Field
    ) -> list[Found]:
        """Rank some documents for each query, int64 numbers of distinct ones, ascending."""
        snapshot, found = self._of(identity), []
        for query, numbers in enumerate(candidates):
            hits = rank(snapshot, queries.one(query), numbers, k, field)
            found.append(Found(hits.numbers, hits.scores, snapshot.texts("docno", hits.numbers)))
        return found

    def scores(
        self, identity: str, queries: QueryBatch, candidates: Sequence[Numbers], field: Field
    ) -> list[ExactScores]:
        """Score some documents for each query."""
        snapshot = self._of(identity)
        of_query = enumerate(candidates)
        return [exact_scores(snapshot, queries.one(query), numbers, field) for query, numbers in of_query]

    def look_up(self, identity: str, docnos: Sequence[str]) -> Numbers:
        """Look up the number of each document: -1 for one that is not in the part."""
        return self._of(identity).look_up(docnos)

    def texts(self, identity: str, name: str, numbers: Numbers) -> list[str]:
        """Return one text of each document."""
        return self._of(identity).texts(name, numbers)

    def lengths(self, identity: str, numbers: Numbers, field: Field) -> Numbers:
        """Return the number of rows of each document."""
        return self._of(identity).lengths(numbers, field)

    def rows(self, identity: str, numbers: Numbers, field: Field) -> tuple[Rows, Numbers]:
        """Return the vectors of some documents, end to end, and their offsets."""
        return self._of(identity).rows(numbers, field)

    def in_order(self, identity: str) -> Numbers:
        """Return the documents that are not deleted, in the order of indexing."""
        snapshot = self._of(identity)
        of_shards = zip(snapshot.shards, snapshot.bases.tolist(), strict=False)
        return np.concatenate([np.empty(0, dtype=np.int64), *(shard.in_order() + base for shard, base in of_shards)])

    def _of(self, identity: str) -> Snapshot:
        """Return the state that the caller knows."""
        snapshot = self._index.snapshot()
        if snapshot.identity != identity:
            raise PartChangedError([self._index.path])
        return snapshot


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the parts at one place.

    Attributes:
        method: of :class:`PartReader`.
        arguments: by the number of the part.
    """

    method: str
    arguments: Mapping[int, tuple[Any, ...]]


class Readers:
    """The parts at one place: of one process, or of one actor."""

    def __init__(self, paths: Mapping[int, Path]) -> None:
        self._paths = dict(paths)
        self._readers = {number: PartReader(path) for number, path in paths.items()}

    def answer(self, request: Request) -> dict[int, Any] | Exception:
        """Answer for each part, or return the error of the first that has one."""
        answers = {}
        for number, arguments in request.arguments.items():
            try:
                answers[number] = getattr(self._readers[number], request.method)(*arguments)
            except Exception as error:
                return portable(error, [self._paths[number]])
        return answers
