"""The journal of an upload: what a call that was interrupted has stored, and which call may go on with it.

It is the store's protocol, with the collection in place of a folder. The metadata of the collection contains what
identifies the call, and each point the fingerprint of its document. A call goes on only after one that is identified
alike, with the same documents, all of which come again; any other is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pyterrier_mathamr.store import (
    DuplicateIdError,
    Mode,
    UnfinishedJobError,
    changed_row,
    differences,
    row_fingerprint,
)

from .collection import BUILD, SOURCE, Collection, CollectionMeta, point_id


class Journal:
    """One call that can be continued.

    Args:
        collection: the collection.
        mode: of the call.
        fingerprint: what determines the vectors, beside the documents, as plain values.

    Attributes:
        left_out: the points of the documents that :meth:`pending` left out of the corpus.
    """

    def __init__(self, collection: Collection, mode: Mode, fingerprint: Mapping[str, Any]) -> None:
        self.collection, self.mode = collection, mode
        self.header: dict[str, Any] = json.loads(json.dumps({"mode": mode, **fingerprint}))
        self.left_out: set[str] = set()
        self._sources: dict[str, str] = {}

    def interrupted(self, present: CollectionMeta | None) -> CollectionMeta | None:
        """Return the metadata of the interrupted call that this one continues; ``None`` where there is none."""
        base = extended(present, self.mode)
        found = base or self.collection.read(self.collection.other_slot(present))
        stopped = found is not None and (
            found.pending or (found.job and base is None)
        )  # or complete, but for the alias
        if found is None or not stopped or not found.dimensions:
            return None
        kept = json.loads(found.job)[0] if found.job else {}
        if kept != self.header:
            raise UnfinishedJobError(self.collection.address, differences(kept, self.header))
        return found.changed(pending=found.pending or found.build)

    def pending(self, stream: Iterable[Mapping[str, Any]], batch_size: int) -> Iterator[Mapping[str, Any]]:
        """Leave out of a corpus the batches of which every document is stored."""
        found, records = self.interrupted(self.collection.read()), iter(stream)
        while some := list(islice(records, batch_size)):
            names = [str(record["docno"]) for record in some]
            prints = {name: f"{row_fingerprint(of):016x}" for name, of in zip(names, some, strict=True)}
            ids = {point_id(name): name for name in names}
            stored = self.collection.stored(found.slot, list(ids), BUILD, SOURCE) if found else {}
            done = {
                name: stored[of][SOURCE]
                for of, name in ids.items()
                if found and of in stored and stored[of][BUILD] == found.pending and stored[of].get(SOURCE)
            }
            if changed := [name for name, source in done.items() if source != prints[name]]:
                raise changed_row(self.collection.address, changed[0])
            if len(done) < len(ids):
                self._sources.update(prints)
                yield from some
                continue
            if again := [name for of, name in ids.items() if of in self.left_out or names.count(name) > 1]:
                raise DuplicateIdError(self.collection.address, again)
            self.left_out.update(ids)

    def source(self, docno: str) -> str:
        """Return the fingerprint of a document of the corpus; an empty text where it is not known."""
        return self._sources.pop(docno, "")


def extended(present: CollectionMeta | None, mode: Mode) -> CollectionMeta | None:
    """Return the collection that a call adds to; ``None`` where it fills a new one, as one without a width needs."""
    return present if mode == "append" and present is not None and present.dimensions else None
