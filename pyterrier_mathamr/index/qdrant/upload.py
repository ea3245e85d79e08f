"""Upload: entries become points in batches; readers see them in one step, when all are stored.

``create`` and ``overwrite`` fill the collection that is not behind the alias, and then move the alias. ``append``
stores its points under a number that readers filter out until the call is complete. A call that ends with an error
removes its points, unless it has ``resume``; then, and where the process was killed, they wait unseen for a call with
``resume``, or are dropped by one without. One process may write a collection at a time: Qdrant has no lock for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

import numpy as np

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.index.building.builder import warn_of_repeated
from pyterrier_mathamr.index.building.content import check_values
from pyterrier_mathamr.index.building.entries import TEXTS, Entry
from pyterrier_mathamr.index.errors import EmbeddingError, check_model
from pyterrier_mathamr.index.protocols import Numbers
from pyterrier_mathamr.store import DuplicateIdError, ExistsError, Mode

from .collection import BUILD, VECTORS, Collection, CollectionMeta, CollectionOptions, point_id
from .errors import QdrantError

BATCH_NUMBERS = 1 << 18
"""Numbers sent in one request: 8,192 rows of 32, about 5 MB as JSON. A server reads at most 32 MB."""

BATCH_POINTS = 512

MOST_NUMBERS = (1 << 20) - 1
"""The greatest number of values in the rows of one point that a server accepts: about 23 MB as JSON."""

_UNIT = 1.0001
"""The greatest length of unit rows; a longer one is recorded before it is stored."""


def upload(
    collection: Collection,
    mode: Mode,
    entries: Iterator[Entry],
    options: CollectionOptions,
    *,
    model: str | None,
    resume: bool,
) -> None:
    """Build a collection, replace it or add to it; readers see the change in one step at the end, or not at all.

    Args:
        collection: the collection.
        mode: ``create`` refuses an existing collection, ``overwrite`` replaces it, ``append`` adds to it.
        entries: the entries; read once.
        options: how a new collection is created.
        model: the identity of the model of the vectors.
        resume: continue an interrupted earlier call, and keep the stored points if this one is interrupted.

    Raises:
        MathAMRIndexError: one of its kinds; readers see what they saw before.
    """
    present = collection.read()
    if present is not None and mode == "create":
        raise ExistsError(collection.address, "the collection exists already")
    base = present if mode == "append" else None
    if base is not None:
        check_model(collection.address, base.model, model)
        model = base.model or model
    first = next(entries, None)
    if first is None and base is not None:
        return
    stream = chain([] if first is None else [first], entries)
    if base is None or not base.dimensions:  # what has no width yet is built anew
        width, base = 0 if first is None else first.rows.shape[1], None
        meta = CollectionMeta(collection.other_slot(present), collection.layout, width, model, _UNIT, pending=1)
    else:
        meta = base.changed(model=model, pending=base.pending or base.build + 1)
    Upload(collection, meta, present, base, options, resume).run(stream)


class Upload:
    """One upload: into a collection beside the one that readers see, or into that one, hidden from them.

    Args:
        collection: the collection.
        meta: its metadata during the call.
        present: the metadata of the collection that readers see, if any.
        base: the same where this call adds to it.
        options: how a new collection is created.
        resume: continue an interrupted call, and keep the stored points if this one is interrupted.
    """

    def __init__(
        self,
        collection: Collection,
        meta: CollectionMeta,
        present: CollectionMeta | None,
        base: CollectionMeta | None,
        options: CollectionOptions,
        resume: bool,
    ) -> None:
        self.collection, self.meta, self.resume = collection, meta, resume
        self.present, self.base, self.number = present, base, meta.pending
        self.before = self.stored = 0
        self.looking = base is not None  # ask before each batch which of its points are stored already
        self._came: set[str] = set()  # about 150 bytes a document
        self._again: list[str] = []
        if base is not None:
            if base.pending and not resume:
                self._remove()
            self.before = collection.count(base.slot, base.pending)
            collection.write(meta)
            return
        earlier = collection.read(meta.slot) if resume else None
        if earlier is not None and earlier.changed(max_norm=meta.max_norm) == meta:
            self.meta, self.looking = earlier, True
            return
        if collection.exists(meta.slot):
            collection.drop(meta.slot)
        collection.create(meta, options)

    def run(self, entries: Iterable[Entry]) -> None:
        """Store all entries and make them visible."""
        try:
            for batch in _batches(entries):
                self.store(batch)
            self.finish()
        except BaseException as error:
            if not self.resume:
                with suppress(MathAMRError):  # the error that ended the call is the one to raise
                    self.take_back()
            elif type(error) is QdrantError:
                reason = f"{error.reason}; run the indexer again with resume=True to continue"
                raise QdrantError(error.address, reason, error.status) from error
            raise
        warn_of_repeated(self.collection.address, self._again)

    def store(self, batch: Sequence[Entry]) -> None:
        """Check a batch and send the points that are not stored yet.

        Raises:
            EmbeddingError: a document cannot be stored; nothing of the batch is.
            DuplicateIdError: a docno occurred before.
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
            raise EmbeddingError(entry.docno, f"it has {rows} rows, and Qdrant accepts at most {MOST_NUMBERS // width}")
        try:
            "".join(entry.texts).encode("utf-8")
        except UnicodeEncodeError as error:
            raise EmbeddingError(entry.docno, f"Qdrant accepts only valid Unicode ({error.reason})") from error

    def _point(self, entry: Entry) -> dict[str, object]:
        layout = self.meta.layout
        payload = dict(zip(TEXTS[layout], entry.texts, strict=True))
        vector: dict[str, object] = {VECTORS[layout]["doc"]: entry.rows[-1].tolist()}
        if layout == "documents":
            vector[VECTORS[layout]["all"]] = entry.rows.tolist()
        return {"id": point_id(entry.docno), "vector": vector, "payload": {**payload, BUILD: self.meta.pending}}

    def _new(self, batch: Sequence[Entry]) -> list[Entry]:
        """Leave out entries that this call stored before it was interrupted; refuse others that are stored."""
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

    def finish(self) -> None:
        """Make the stored points visible, in one step."""
        there, least = self.collection.count(self.meta.slot), self.before + self.stored
        if there < least:
            reason = f"it contains {there} points of {least}; did another process write it? Run the indexer again"
            raise QdrantError(self.collection.address, reason)
        self.meta = self.meta.changed(build=self.meta.pending, pending=0)
        self.collection.write(self.meta)
        if self.base is None:
            self.collection.swap(self.meta, self.present)

    def take_back(self) -> None:
        """Remove the stored points; a new collection with them, unless readers see it already."""
        if self.base is not None:
            self._remove()
            self.collection.write(self.meta.changed(pending=0))
            return
        present = self.collection.read()
        if present is None or present.slot != self.meta.slot:
            self.collection.drop(self.meta.slot, retries=0)

    def _remove(self) -> None:
        models = self.collection.connection.models
        where = models.FilterSelector(filter=models.Filter(must=[self.collection.of_build(self.number)]))
        doing = "removing the points of an unfinished call"
        self.collection.call("delete", doing, collection_name=self.meta.slot, points_selector=where, wait=True)


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Gather entries into batches of at most so many numbers and points, at least one entry each."""
    batch: list[Entry] = []
    numbers = 0
    for entry in entries:
        if batch and (numbers + entry.rows.size > BATCH_NUMBERS or len(batch) == BATCH_POINTS):
            yield batch
            batch, numbers = [], 0
        batch.append(entry)
        numbers += entry.rows.size
    if batch:
        yield batch


def stored_ids(collection: Collection, docnos: Sequence[str], mode: Mode) -> set[str]:
    """Return those of the given documents that an interrupted call has stored.

    Args:
        collection: the collection.
        docnos: any docnos.
        mode: the mode of that call.
    """
    present = collection.read()
    adding = mode == "append" and present is not None
    meta = present if adding else collection.read(collection.other_slot(present))
    if meta is None or not meta.pending or not docnos:
        return set()
    names = {point_id(docno): docno for docno in docnos}
    found = collection.call(
        "retrieve", "looking for points", collection_name=meta.slot, ids=list(names), with_payload=[BUILD]
    )
    return {names[str(point.id)] for point in found if point.payload[BUILD] == meta.pending}
