"""What the indexes whose rows are documents share: counting documents, the counts of all parts, and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.store import (
    Appended,
    Array,
    Content,
    DuplicateIdError,
    Job,
    Part,
    Rows,
    Snapshot,
    scratch_array,
)

from . import index as sparse
from .postings import BLOCK, Postings, combine


class Counting(Protocol):
    """Counts documents one after another."""

    @property
    def nbytes(self) -> int:
        """The memory that is taken, about."""

    def source(self, document: Mapping[str, Any]) -> int:
        """Hash what is counted of a document."""

    def add(self, document: Mapping[str, Any]) -> None:
        """Count a document."""

    def take(self) -> dict[str, Array]:
        """Return the arrays of what was counted, and begin anew."""


class CountedDocuments:
    """Documents that are counted, and which are not written yet."""

    def __init__(self, job: Job, counting: Counting) -> None:
        self._job, self._counting = job, counting
        self._done = sparse.sources_of(job.done)
        self._sources: dict[DocNo, int] = {}

    def add(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Count new documents; write a part when it is large enough."""
        docnos = [str(document["docno"]) for document in documents]
        rows = self._job.rows_done(docnos).tolist()
        again = self._job.look_up(docnos)
        for docno, document, row, old in zip(docnos, documents, rows, again.tolist(), strict=True):
            source = self._counting.source(document)
            if row >= 0:
                if self._done[row] != source:
                    raise self._job.changed(docno)
                continue
            if old >= 0 or docno in self._sources:
                raise DuplicateIdError(self._job.path, [docno])
            self._sources[docno] = source
            self._counting.add(document)
            if self._counting.nbytes >= sparse.PART_BYTES:
                self.write()

    def write(self) -> None:
        """Write what was counted since the last part."""
        if self._sources:
            sources = np.fromiter(self._sources.values(), dtype=np.uint64, count=len(self._sources))
            self._job.add(Content(list(self._sources), {**self._counting.take(), "sources": sources}))
            self._sources = {}


def postings_of(parts: Sequence[Part], folder: Path | None = None, prefix: str = "") -> Postings:
    """Return the term counts of all documents that are not deleted: memory-mapped from one part, else combined."""
    if len(parts) == 1 and not len(parts[0].deleted):
        return Postings.of_part(parts[0], prefix)
    numbers: list[Rows] = []
    size = 0
    for part in parts:
        numbers.append(_numbers(part, size, folder))
        size += part.meta.live
    return combine([Postings.of_part(part, prefix) for part in parts], numbers, size, folder)


def _numbers(part: Part, first: int, folder: Path | None) -> Rows:
    """Number the rows of a part that are not deleted, from a number on: int64 ``[m]``, -1 for the others."""
    numbers = scratch_array(folder, len(part), np.dtype(np.int64))
    for start in range(0, len(part), BLOCK):
        alive = part.alive[start : start + BLOCK]
        numbers[start : start + BLOCK] = np.where(alive, first + np.cumsum(alive) - 1, -1)
        first += int(np.count_nonzero(alive))
    return numbers


def live_sources(parts: Sequence[Part]) -> Array:
    """Put the hashes of the documents of some parts one after another, without those deleted, beside the parts."""
    found = Appended(parts[0].path.parent, np.dtype(np.uint64))
    for part in parts:
        for start in range(0, len(part), BLOCK):
            found.append(part["sources"][start : start + BLOCK][part.alive[start : start + BLOCK]])
    return found.array()


def contributions(
    postings: Postings, weights: npt.NDArray[np.float32], terms: Mapping[str, float], numbers: Rows
) -> npt.NDArray[np.float64]:
    """Compute what each term of a query contributes to the score of some documents."""
    found = np.zeros((len(numbers), len(terms)))
    for column, (term, weight) in enumerate(terms.items()):
        start, end = postings.offsets[postings.terms[term]], postings.offsets[postings.terms[term] + 1]
        documents = postings.documents[start:end]
        places = np.minimum(np.searchsorted(documents, numbers), max(len(documents) - 1, 0))
        hits = documents[places] == numbers if len(documents) else np.zeros(len(numbers), dtype=bool)
        found[hits, column] = weight * weights[start + places[hits]].astype(np.float64)
    return found


def numbers_of(snapshot: Snapshot, docnos: list[str]) -> Rows:
    """Number documents as the postings do: int64 ``[m]``."""
    numbers: Rows = np.searchsorted(snapshot.live, snapshot.find(docnos))
    return numbers
