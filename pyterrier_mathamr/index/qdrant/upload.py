"""Upload: entries become points in batches; readers see them in one step, when all are stored.

``create`` and ``overwrite`` fill the collection that is not behind the alias, and then move the alias. ``append``
stores its points under a number that readers filter out until the call is complete. A call that ends with an error
removes its points, unless it can be resumed; then, and where the process was killed, they wait unseen for a call that
continues it, or are dropped by one that does not resume. The last request of a call may be carried out although no
answer came; the same call then finds its own header, compares all of its entries and ends well. One process may write a
collection at a time: Qdrant has no lock for it, and no place for a job of the store, so a call's header is kept in the
metadata of its collection.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning
from pyterrier_mathamr.index.backend import Numbers
from pyterrier_mathamr.index.errors import EmbeddingError, QdrantError, check_model, resumed_model
from pyterrier_mathamr.index.indexing import warn_of_repeated
from pyterrier_mathamr.index.parts import TEXTS, Entry, check_values
from pyterrier_mathamr.index.subsets import kept_columns
from pyterrier_mathamr.store import (
    DuplicateIdError,
    Mode,
    UnfinishedJobError,
    WriteError,
    changed_row,
    differences,
    row_fingerprint,
)

from .collection import (
    BUILD,
    KEPT,
    PRINT,
    SOURCE,
    TRANSIENT,
    VECTORS,
    Collection,
    CollectionMeta,
    CollectionOptions,
    point_id,
)

BATCH_NUMBERS = 1 << 18
"""Numbers sent in one request: 8,192 rows of 32, about 5 MB as JSON. A server reads at most 32 MB."""

BATCH_POINTS = 512

MOST_NUMBERS = (1 << 20) - 1
"""The greatest number of values in the rows of one point that a server accepts: about 23 MB as JSON."""

_UNIT = 1.0001  # the greatest length of unit rows; a longer one is recorded before it is stored


def discard(collection: Collection) -> None:
    present = collection.read()
    collection.drop(collection.other_slot(present))
    if present is not None and present.pending:
        collection.remove(present.slot, present.pending)
        collection.write(replace(present, pending=0, job=""))


class Upload:
    """One call that fills a collection separate from the one that readers see, or adds to that one, hidden from them.

    Args:
        collection: the collection.
        mode: of the call.
        fingerprint: the inputs of the vectors, besides the documents, as plain values: the call continues an
            interrupted one of the same fingerprint, and can be continued itself. ``None`` for neither.
    """

    meta: CollectionMeta

    def __init__(self, collection: Collection, mode: Mode, fingerprint: Mapping[str, Any] | None = None) -> None:
        self.collection, self.mode = collection, mode
        self._header = None if fingerprint is None else json.loads(json.dumps({"mode": mode, **fingerprint}))
        self._base: CollectionMeta | None = None
        self._resumed = False
        self._sources: dict[str, str] = {}  # fingerprints of the documents of the corpus, until they are stored
        self._left_out: dict[str, str] = {}  # the points of the documents that `pending` left out, and their docnos
        self._came: set[str] = set()  # about 150 bytes a document
        self._again: list[str] = []
        self._moving = False  # the alias, to a collection that is complete

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int) -> Iterator[Mapping[str, Any]]:
        """Leave out the batches in which every document is stored."""
        present, records = self.collection.read(), iter(stream)
        done = self._completed(present)
        continued = replace(done, pending=done.build) if done else self._interrupted(present)
        while batch := list(islice(records, batch_size)):
            names = [record["docno"] for record in batch]
            prints = {record["docno"]: f"{row_fingerprint(record):016x}" for record in batch}
            ids = {point_id(name): name for name in names}
            stored = self.collection.stored(continued.slot, list(ids), BUILD, SOURCE) if continued else {}
            sources = {
                name: values[SOURCE]
                for point, name in ids.items()
                if (values := stored.get(point)) and continued and values[BUILD] == continued.pending
                if values.get(SOURCE)
            }
            changed = [name for name, source in sources.items() if source != prints[name]]
            if changed and done is None:
                raise changed_row(self.collection.address, changed[0])
            if changed or len(sources) < len(ids):
                self._sources.update(prints)
                yield from batch
                continue
            if again := [name for point, name in ids.items() if point in self._left_out or names.count(name) > 1]:
                raise DuplicateIdError(self.collection.address, again)
            self._left_out.update(ids)

    def _completed(self, present: CollectionMeta | None) -> CollectionMeta | None:
        """Return the metadata of a complete call that may be this one, repeated; ``None`` where there is none.

        An ``overwrite`` never is: it replaces what is there, by other documents or the same.
        """
        if self._header is None or self.mode == "overwrite" or present is None or present.pending or not present.done:
            return None
        return present if json.loads(present.done)[0] == self._header else None

    def _compared(self, done: CollectionMeta, entries: Iterator[Entry]) -> tuple[list[str], Iterator[Entry]]:
        """Pass over the batches that a complete call stored; return their docnos, and the entries from there on."""
        known, batches = dict(self._left_out), _batches(entries)
        for batch in batches:
            names = [point_id(entry.docno) for entry in batch]
            points = self.collection.stored(done.slot, names, BUILD, PRINT)
            compared = {}
            for entry, name in zip(batch, names, strict=True):
                stored = points.get(name, {BUILD: 0})
                repeated = name in known or name in compared or 0 < stored[BUILD] < done.build
                if repeated and done.layout == "formulas":  # it was left out
                    continue
                if repeated or stored[BUILD] != done.build or stored[PRINT] != _print(entry):
                    return list(known.values()), chain(batch, chain.from_iterable(batches))
                compared[name] = entry.docno
            known.update(compared)
        return list(known.values()), iter(())

    def _interrupted(self, present: CollectionMeta | None) -> CollectionMeta | None:
        """Return the metadata of the interrupted call that this one continues; ``None`` where there is none."""
        if self._header is None:
            return None
        base = self._extended(present)
        meta = base or self.collection.read(self.collection.other_slot(present))
        if meta is None or not meta.dimensions:
            return None
        if not meta.pending and (base is not None or not meta.job):  # a new one may be complete except for the alias
            return None
        header = json.loads(meta.job)[0] if meta.job else {}
        if header != self._header:
            raise UnfinishedJobError(self.collection.address, differences(header, self._header))
        return replace(meta, pending=meta.pending or meta.build)

    def _extended(self, present: CollectionMeta | None) -> CollectionMeta | None:
        """Return the collection to add to; ``None`` where a new one is filled, as one without a width needs."""
        return present if self.mode == "append" and present is not None and present.dimensions else None

    def run(
        self, entries: Iterator[Entry], options: CollectionOptions, model: str | None, keep: tuple[str, ...] = ()
    ) -> None:
        """Store all entries; readers see the change in one step at the end, or not at all."""
        present = self.collection.read()
        stored: list[str] = []
        if (done := self._completed(present)) is not None:
            stored, entries = self._compared(done, entries)
            first = next(entries, None)
            if first is None and len(stored) == self.collection.count(done.slot, self.collection.of_build(done.build)):
                text = "the same call was complete before, and nothing was changed"
                warnings.warn(MathAMRWarning(f"{self.collection.address}: {text}."), stacklevel=2)
                return
            entries = entries if first is None else chain([first], entries)
        if present is not None and self.mode == "create":
            choice = "Use mode='overwrite' to replace it, mode='append' to add to it, or another name"
            raise WriteError(self.collection.address, f"the collection exists already. {choice}")
        if self.mode == "append" and present is not None:
            check_model(self.collection.address, present.model, model)
            model = present.model or model
        if stored and self.collection.layout == "documents":
            raise DuplicateIdError(self.collection.address, stored)
        self._again += stored
        earlier = self._interrupted(present)
        first = next(entries, None)
        if first is None and self.mode == "append" and present is not None and earlier is None:
            return
        self._base, self._resumed = self._extended(present), earlier is not None
        if earlier is not None:
            self.meta = earlier
            model = resumed_model(self.collection.address, json.loads(earlier.job)[1], model)
        else:
            width, slot = 0 if first is None else first.rows.shape[1], self.collection.other_slot(present)
            build = present.build if present is not None else 0
            meta = self._base or CollectionMeta(slot, self.collection.layout, width, None, _UNIT, build, keep=keep)
            job = json.dumps([self._header, model]) if self._header is not None else ""
            self.meta = replace(meta, pending=meta.pending or meta.build + 1, job=job)
        self._prepare(options)
        try:
            for batch in _batches(chain([] if first is None else [first], entries)):
                self._store(batch)
            self._finish(present, model)
        except BaseException as error:
            may_be_moved = self._moving and (not isinstance(error, QdrantError) or error.status in (0, *TRANSIENT))
            if self._header is None and not may_be_moved:
                with suppress(MathAMRError):  # the error that ended the call is the one to raise
                    self._take_back()
            elif isinstance(error, QdrantError) and error.status != 404:
                advice = "the server may still carry it out"
                if self._header is not None:
                    advice = "run the indexer again with resume=True to continue, or to find it complete"
                raise QdrantError(error.address, f"{error.reason}; {advice}", error.status) from error
            raise
        warn_of_repeated(self.collection.address, self._again)

    def _prepare(self, options: CollectionOptions) -> None:
        """Make the place for the points, without points of an interrupted call that is not continued."""
        slot = self.meta.slot
        if self._base is not None:
            if self._base.pending and not self._resumed:
                self.collection.remove(slot, self.meta.pending)
            self.collection.write(self.meta)
        elif not self._resumed:
            if self.collection.exists(slot):
                self.collection.drop(slot)
            self.collection.create(self.meta, options)

    def _store(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            self._check(entry)
        offsets: Numbers = np.cumsum([0, *(len(entry.rows) for entry in batch)], dtype=np.int64)
        norm = check_values(np.concatenate([entry.rows for entry in batch]), offsets, batch)
        if norm > self.meta.max_norm:
            self.meta = replace(self.meta, max_norm=norm)
            self.collection.write(self.meta)
        if new := self._new(batch):
            models = self.collection.models
            points = [models.PointStruct(**point) for point in new]
            slot = self.meta.slot
            self.collection.call("upsert", "storing points", collection_name=slot, points=points, wait=True)

    def _check(self, entry: Entry) -> None:
        width = entry.rows.shape[1]
        if width != self.meta.dimensions:
            known = self.meta.dimensions
            raise EmbeddingError(entry.docno, f"its rows have {width} dimensions, but the index has {known}")
        if entry.rows.size > MOST_NUMBERS:
            rows = len(entry.rows)
            raise EmbeddingError(entry.docno, f"it has {rows} rows, and Qdrant accepts at most {MOST_NUMBERS // width}")
        try:
            "".join((*entry.texts, entry.kept)).encode("utf-8")
        except UnicodeEncodeError as error:
            raise EmbeddingError(entry.docno, f"Qdrant accepts only valid Unicode ({error.reason})") from error

    def _new(self, batch: Sequence[Entry]) -> list[dict[str, Any]]:
        """Return the points of a batch to send: all that are not stored with the same values."""
        number, names, points = self.meta.pending, [point_id(entry.docno) for entry in batch], {}
        if self._resumed or self._base is not None:
            points = self.collection.stored(self.meta.slot, names, BUILD, PRINT, SOURCE)
        new, again = [], []
        for entry, name in zip(batch, names, strict=True):
            stored = points.get(name, {BUILD: number})
            if name in self._came or stored[BUILD] != number:
                again.append(entry.docno)
                continue
            self._came.add(name)
            point = self._point(name, entry)
            if any(stored.get(key) != value for key, value in point["payload"].items() if key in (PRINT, SOURCE)):
                new.append(point)
        if again and self.meta.layout == "documents":
            raise DuplicateIdError(self.collection.address, sorted(set(again)))
        self._again += again
        return new

    def _point(self, name: str, entry: Entry) -> dict[str, Any]:
        layout, source = self.meta.layout, self._sources.pop(entry.docno, "")
        vector = {VECTORS[layout]["doc"]: entry.rows[-1].tolist()}
        if layout == "documents":
            vector[VECTORS[layout]["all"]] = entry.rows.tolist()
        about = {BUILD: self.meta.pending, PRINT: _print(entry)}
        payload: dict[str, Any] = {**dict(zip(TEXTS[layout], entry.texts, strict=True)), **about}
        if entry.kept:
            payload[KEPT] = kept_columns(entry.kept)
        return {"id": name, "vector": vector, "payload": {**payload, SOURCE: source} if source else payload}

    def _finish(self, present: CollectionMeta | None, model: str | None) -> None:
        """Make the stored points visible, in one step."""
        number = self.meta.pending
        count = self.collection.count(self.meta.slot, self.collection.of_build(number))
        known = len(self._came | self._left_out.keys())
        if self._resumed and count > known:
            raise UnfinishedJobError(self.collection.address, {"points": (count, known)})
        if count != known:
            reason = f"it contains {count} points of {known}; did another process write it? Run the indexer again"
            raise QdrantError(self.collection.address, reason)
        self.meta = replace(self.meta, model=model, build=number, pending=0, done=self.meta.job)
        done = replace(self.meta, job="")
        if self._base is not None:
            self.collection.write(done)
            self.collection.seen = done.build
            return
        self.collection.write(self.meta)  # with its job, which is continued if the alias cannot be moved
        self._moving = True
        self.collection.swap(self.meta, present)
        if self._header is not None:
            with suppress(MathAMRError):  # readers see the collection already
                self.collection.write(done)

    def _take_back(self) -> None:
        """Remove the stored points; a new collection with them, unless readers see it already."""
        if self._base is not None:
            self.collection.remove(self.meta.slot, self._base.pending or self._base.build + 1)
            self.collection.write(replace(self.meta, pending=0, job=""))
            return
        present = self.collection.read()
        if present is None or present.slot != self.meta.slot:
            self.collection.drop(self.meta.slot, retries=0)


def _print(entry: Entry) -> str:
    texts = [*entry.texts, entry.kept] if entry.kept else entry.texts
    return hashlib.blake2b(json.dumps(texts).encode() + entry.rows.tobytes(), digest_size=8).hexdigest()


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
