"""Upload: entries become points in batches; a collection becomes the one that counts only when all are there.

``create`` and ``overwrite`` fill the collection that does not stand behind the name, and then move the name. ``append``
stores its points under a number that readers leave out until the call is whole. A call that ends with an error takes
back what it stored, unless it was made with ``resume``; then, and where the process was killed, what it stored waits
unseen for a call with ``resume``, or is dropped by one without. One process may write a collection at a time:
Qdrant has no lock for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

import numpy as np

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr.index.building.content import check_values
from pyterrier_mathamr.index.building.entries import Entry
from pyterrier_mathamr.index.errors import EmbeddingError, EmptyStreamError, check_model
from pyterrier_mathamr.index.protocols import Numbers
from pyterrier_mathamr.store import DuplicateIdError, ExistsError, Mode

from .collection import BUILD, PAYLOAD, VECTORS, Collection, CollectionMeta, CollectionOptions, point_id
from .errors import QdrantIncompleteError

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


_UNIT = 1.0001
"""The greatest length of rows that are meant to have length 1; a longer one is taken note of before it is stored."""


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
        mode: ``create`` refuses one that is there, ``overwrite`` replaces it, ``append`` adds to it.
        entries: what is stored; read once.
        options: how a new collection is created.
        model: the identity of the model that made the vectors.
        resume: go on with what an earlier such call that died had stored, and leave what this one stores if it dies.

    Raises:
        MathAMRIndexError: one of its kinds; what readers saw before they see still.
    """
    stands = collection.read()
    if stands is not None and mode == "create":
        raise ExistsError(collection.address, "there is such a collection already")
    adding = stands if mode == "append" else None
    if adding is not None:
        check_model(collection.address, adding.model, model)
    first = next(entries, None)
    if first is None:
        if adding is None:
            raise EmptyStreamError(collection.address)
        return
    stream = chain([first], entries)
    if adding is not None:
        Append(collection, adding, model, resume).run(stream)
    else:
        meta = CollectionMeta(
            collection.other_slot(stands), collection.layout, first.rows.shape[1], model, _UNIT, pending=1
        )
        Build(collection, meta, stands, options, resume).run(stream)


class Build(Call):
    """``create`` and ``overwrite``: a collection beside the one that stands."""

    def __init__(
        self,
        collection: Collection,
        meta: CollectionMeta,
        stands: CollectionMeta | None,
        options: CollectionOptions,
        resume: bool,
    ) -> None:
        self.stands = stands
        earlier = collection.read(meta.slot) if resume else None
        going_on = earlier is not None and earlier.changed(max_norm=meta.max_norm) == meta
        super().__init__(collection, earlier if earlier is not None and going_on else meta, resume, looking=going_on)
        if not going_on:
            if collection.exists(meta.slot):
                collection.drop(meta.slot)
            collection.create(meta, options)

    def finish(self) -> None:
        """Move the name to the new collection."""
        self._all_there(self.stored)
        self.meta = self.meta.changed(build=self.meta.pending, pending=0)
        self.collection.write(self.meta)
        self.collection.swap(self.meta, self.stands)

    def take_back(self) -> None:
        """Drop the new collection, unless the name stands for it already."""
        stands = self.collection.read()
        if stands is None or stands.slot != self.meta.slot:
            self.collection.drop(self.meta.slot, retries=0)


class Append(Call):
    """``append``: points in the collection that stands, unseen until the call is whole."""

    def __init__(self, collection: Collection, stands: CollectionMeta, model: str | None, resume: bool) -> None:
        if stands.pending and not resume:
            _remove(collection, stands, stands.pending)
        self.before = collection.count(stands.slot, stands.pending)
        meta = stands.changed(model=stands.model or model, pending=stands.pending or stands.build + 1)
        super().__init__(collection, meta, resume, looking=True)
        self.number = meta.pending
        collection.write(meta)

    def finish(self) -> None:
        """Let readers see the new points."""
        self._all_there(self.before + self.stored)
        self.meta = self.meta.changed(build=self.meta.pending, pending=0)
        self.collection.write(self.meta)

    def take_back(self) -> None:
        """Remove the points of this call."""
        _remove(self.collection, self.meta, self.number)
        self.collection.write(self.meta.changed(pending=0))


def _remove(collection: Collection, meta: CollectionMeta, build: int) -> None:
    """Remove the points of one call."""
    models = collection.connection.models
    where = models.FilterSelector(filter=models.Filter(must=[collection.of_build(build)]))
    doing = "removing the points of a call that did not end"
    collection.call("delete", doing, collection_name=meta.slot, points_selector=where, wait=True)


def stored_ids(collection: Collection, docnos: Sequence[str], mode: Mode) -> set[str]:
    """Which documents a call that died had stored, of those given.

    Args:
        collection: the collection.
        docnos: any docnos.
        mode: how that call was made.
    """
    stands = collection.read()
    adding = mode == "append" and stands is not None
    meta = stands if adding else collection.read(collection.other_slot(stands))
    if meta is None or not meta.pending or not docnos:
        return set()
    names = {point_id(docno): docno for docno in docnos}
    found = collection.call(
        "retrieve", "looking for points", collection_name=meta.slot, ids=list(names), with_payload=[BUILD]
    )
    return {names[str(point.id)] for point in found if point.payload[BUILD] == meta.pending}
