"""Resuming an interrupted index job: which documents of the corpus it has finished.

Each part stores two numbers of every document that it was made from: a hash of its docno and the fingerprint of its
content. A batch of the corpus is left out where all its documents are done; any other is encoded whole, in the same
batch as the first time, so that its vectors are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr.index.protocols import Sources
from pyterrier_mathamr.store import DuplicateIdError, Job, Part, UnfinishedJobError, changed_row, row_fingerprint


class Corpus:
    """The documents of a corpus: those that an unfinished job has indexed, and those that are encoded now."""

    def __init__(self, path: Path, parts: Sequence[Part]) -> None:
        self.path, self._parts = path, [part.meta.name for part in parts]
        found = np.concatenate([np.zeros((0, 2), dtype=np.uint64), *(part["sources"] for part in parts)])
        self._order = np.argsort(found[:, 0], kind="stable")
        self._names, self._prints = np.ascontiguousarray(found[self._order].T)
        self._cuts = np.cumsum([0, *(len(part["sources"]) for part in parts)])
        self._met = np.zeros(len(found), dtype=np.bool_)
        self._new: dict[str, tuple[int, int]] = {}
        self._encoded_again: set[str] = set()

    @property
    def done(self) -> int:
        """How many documents are done."""
        return len(self._met)

    def __contains__(self, docno: object) -> bool:
        """Return whether a document is done and encoded again only because others of its batch are not."""
        return docno in self._encoded_again

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int) -> Iterator[Mapping[str, Any]]:
        """Leave out the batches of which every document is done."""
        records = iter(stream)
        while batch := list(islice(records, batch_size)):
            docnos = [str(record["docno"]) for record in batch]
            names = [row_fingerprint({"docno": name}) for name in docnos]
            pairs = list(zip(names, map(row_fingerprint, batch), strict=True))
            done = self._meet(docnos, np.array(pairs, dtype=np.uint64))
            if not done.all():
                self._new.update(zip(docnos, pairs, strict=True))
                self._encoded_again.update(name for name, there in zip(docnos, done.tolist(), strict=True) if there)
                yield from batch

    def _meet(self, docnos: Sequence[str], pairs: Sources) -> npt.NDArray[np.bool_]:
        """Record documents of the corpus; return which of them are done."""
        if not len(self._names):
            return np.zeros(len(pairs), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._names, pairs[:, 0]), len(self._names) - 1)
        done: npt.NDArray[np.bool_] = self._names[places] == pairs[:, 0]
        if (other := np.flatnonzero(done & (self._prints[places] != pairs[:, 1]))).size:
            raise changed_row(self.path, docnos[other[0]])
        met = self._order[places[done]]
        again = self._met[met]
        again |= ~np.isin(np.arange(len(met)), np.unique(met, return_index=True)[1])
        if again.any():
            raise DuplicateIdError(self.path, [docnos[place] for place in np.flatnonzero(done)[again]])
        self._met[met] = True
        return done

    def sources(self, docnos: Iterable[str]) -> Sources:
        """Return the stored numbers of some documents, uint64 ``[s, 2]``; none where one is unknown."""
        known = [self._new.pop(docno, None) for docno in docnos]
        pairs = [pair for pair in known if pair]
        return np.array(pairs if len(pairs) == len(known) else [], dtype=np.uint64).reshape(-1, 2)

    def tell(self, job: Job) -> None:
        """Tell a resumed job which of its rows were left out of the stream."""
        there = [part.meta.name for part in job.done.parts]
        if self._met.any() and there != self._parts:
            raise UnfinishedJobError(self.path, {"parts": (self._parts, there)})
        for (first, last), base, part in zip(
            pairwise(self._cuts), job.done.bases.tolist(), job.done.parts, strict=False
        ):
            if first < last and self._met[first:last].all():
                job.came_again(np.arange(base, base + len(part)))
