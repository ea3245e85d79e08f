"""One call that stores points: checked in batches, sent, and left out where they are there already."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr.index.arrays import Numbers
from pyterrier_mathamr.index.content import check_values
from pyterrier_mathamr.index.errors import EmbeddingError
from pyterrier_mathamr.index.records import Entry
from pyterrier_mathamr.store import DuplicateIdError

from .collection import Collection
from .errors import QdrantIncompleteError
from .meta import BUILD, PAYLOAD, VECTORS, CollectionMeta, point_id

BATCH_ROWS = 8192
"""Rows sent in one request: about 5 MB as JSON at 32 dimensions."""

BATCH_POINTS = 512

MOST_NUMBERS = 1 << 20
"""Numbers that Qdrant takes in the rows of one point."""


class Call:
    """One upload; subclasses say where it goes, how it counts in the end, and how it is taken back.

    Args:
        collection: the collection.
        meta: what it says of itself while the call is under way.
        resume: leave what is stored if this call dies.
        looking: ask before each batch which of its points are there already.
    """

    def __init__(self, collection: Collection, meta: CollectionMeta, resume: bool, looking: bool) -> None:
        self.collection, self.meta, self.resume, self.looking = collection, meta, resume, looking
        self.stored = 0
        self._came: set[str] = set()  # about 150 bytes a document
        self._again: list[str] = []

    def run(self, entries: Iterable[Entry]) -> None:
        """Store all entries and let them count."""
        try:
            for batch in _batches(entries):
                self.store(batch)
            self.finish()
        except BaseException:
            if not self.resume:
                with suppress(MathAMRError):  # the error that ended the call is the one to tell
                    self.take_back()
            raise
        if self._again:
            shown = ", ".join(sorted(set(self._again))[:5])
            text = f"{len(self._again)} formulas came again and were left out, the first place counts: {shown}"
            warnings.warn(MathAMRWarning(f"{self.collection.address}: {text}"), stacklevel=2)

    def store(self, batch: Sequence[Entry]) -> None:
        """Check a batch and send what is not there yet.

        Raises:
            EmbeddingError: a document cannot be stored; nothing of the batch is.
            DuplicateIdError: a docno came before.
        """
        for entry in batch:
            self._check(entry)
        offsets: Numbers = np.cumsum([0, *(len(entry.rows) for entry in batch)], dtype=np.int64)
        norm = check_values(np.concatenate([entry.rows for entry in batch]), offsets, batch)
        if norm > self.meta.max_norm:
            self.meta = self.meta.changed(max_norm=norm)
            self.collection.write(self.meta)
        new = self._new(batch)
        if new:
            models = self.collection.connection.models
            points = [models.PointStruct(**self._point(entry)) for entry in new]
            slot = self.meta.slot
            self.collection.call("upsert", "storing points", collection_name=slot, points=points, wait=True)

    def _check(self, entry: Entry) -> None:
        width = entry.rows.shape[1]
        if width != self.meta.dimensions:
            known = self.meta.dimensions
            raise EmbeddingError(entry.docno, f"its rows have {width} dimensions, those of the index {known}")
        if entry.rows.size > MOST_NUMBERS:
            rows = len(entry.rows)
            raise EmbeddingError(entry.docno, f"it has {rows} rows, and Qdrant takes at most {MOST_NUMBERS // width}")
        try:
            "".join(entry.texts).encode("utf-8")
        except UnicodeEncodeError as error:
            raise EmbeddingError(entry.docno, f"Qdrant takes valid Unicode alone ({error.reason})") from error

    def _point(self, entry: Entry) -> dict[str, object]:
        layout = self.meta.layout
        payload = dict(zip(PAYLOAD[layout], entry.texts, strict=True))
        vector: dict[str, object] = {VECTORS[layout]["doc"]: entry.rows[-1].tolist()}
        if layout == "documents":
            vector[VECTORS[layout]["all"]] = entry.rows.tolist()
        return {"id": point_id(entry.docno), "vector": vector, "payload": {**payload, BUILD: self.meta.pending}}

    def _new(self, batch: Sequence[Entry]) -> list[Entry]:
        """Leave out what this call stored before it died; refuse what came before otherwise."""
        ids = [point_id(entry.docno) for entry in batch]
        there = {}
        if self.looking:
            found = self.collection.call(
                "retrieve", "looking for points", collection_name=self.meta.slot, ids=ids, with_payload=[BUILD]
            )
            there = {str(point.id): point.payload[BUILD] for point in found}
        new, again = [], []
        for entry, name in zip(batch, ids, strict=True):
            if name in self._came or there.get(name, self.meta.pending) != self.meta.pending:
                again.append(entry.docno)
                continue
            self._came.add(name)
            self.stored += 1
            if name not in there:
                new.append(entry)
        if again and self.meta.layout == "documents":
            raise DuplicateIdError(self.collection.address, sorted(set(again)))
        self._again += again
        return new

    def _all_there(self, at_least: int) -> None:
        there = self.collection.count(self.meta.slot)
        if there < at_least:
            raise QdrantIncompleteError(self.collection.address, f"it holds {there} points of {at_least}")

    def finish(self) -> None:
        """Let what was stored count, in one step."""
        raise NotImplementedError

    def take_back(self) -> None:
        """Remove what was stored."""
        raise NotImplementedError


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Gather entries into batches of at most so many rows and points, at least one entry each."""
    batch: list[Entry] = []
    rows = 0
    for entry in entries:
        if batch and (rows + len(entry.rows) > BATCH_ROWS or len(batch) == BATCH_POINTS):
            yield batch
            batch, rows = [], 0
        batch.append(entry)
        rows += len(entry.rows)
    if batch:
        yield batch
