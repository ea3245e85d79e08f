"""Upload: entries become points in batches; a collection becomes the one that counts only when all are there.

``create`` and ``overwrite`` fill the collection that does not stand behind the name, and then move the name. ``append``
stores its points under a number that readers leave out until the call is whole. A call that ends with an error takes
back what it stored, unless it was made with ``resume``; then, and where the process was killed, what it stored waits
unseen for a call with ``resume``, or is dropped by one without. One process may write a collection at a time:
Qdrant has no lock for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from pyterrier_mathamr.index.errors import EmptyStreamError, check_model
from pyterrier_mathamr.index.records import Entry
from pyterrier_mathamr.store import ExistsError, Mode

from .collection import Collection
from .meta import BUILD, CollectionMeta, CollectionOptions, point_id
from .sending import Call

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
