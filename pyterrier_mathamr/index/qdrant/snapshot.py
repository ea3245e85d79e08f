"""The state of a collection when it was opened: a searchable snapshot whose answers are requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyterrier_mathamr.index.building.entries import TEXTS, Entry
from pyterrier_mathamr.index.protocols import Field, Numbers, Rows
from pyterrier_mathamr.store import UnknownIdError

from .collection import BUILD, VECTORS, Collection, CollectionMeta, point_id
from .errors import QdrantCollectionError

PAGE = 256
"""Points asked for in one request: about 1.5 MB as JSON at the paper's 16 rows of 32 dimensions."""


class QdrantSnapshot:
    """A :class:`~..protocols.SearchableSnapshot` of a collection; points get numbers when they first occur."""

    def __init__(self, collection: Collection) -> None:
        meta = collection.read()
        if meta is None:
            raise QdrantCollectionError(collection.address, "there is no such collection; build it with indexer()")
        self.meta: CollectionMeta = meta
        self.collection = collection
        self.path = collection.address
        self.max_norm = meta.max_norm
        self.ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._payloads: dict[int, dict[str, Any]] = {}
        self._held: dict[int, Rows] = {}
        self._held_field: Field = "all"

    def __len__(self) -> int:
        return self.collection.count(self.meta.slot, hidden=self.meta.pending)

    def call(self, method: str, doing: str, **arguments: Any) -> Any:
        """Send one request about the collection that was behind the alias when it was opened."""
        return self.collection.call(method, doing, collection_name=self.meta.slot, **arguments)

    def visible(self) -> Any:
        """Return the filter that hides the points of an unfinished call; ``None`` where there is no such call."""
        if not self.meta.pending:
            return None
        return self.collection.connection.models.Filter(must_not=[self.collection.of_build(self.meta.pending)])

    def numbered(self, ids: Sequence[str]) -> Numbers:
        """Return the numbers of points by their ids: int64."""
        for name in ids:
            if name not in self._numbers:
                self._numbers[name] = len(self.ids)
                self.ids.append(name)
        return np.array([self._numbers[name] for name in ids], dtype=np.int64)

    def _retrieve(self, ids: Sequence[str], payload: Any, vectors: Any = False) -> Iterator[Any]:
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            yield from self.call("retrieve", "reading points", ids=page, with_payload=payload, with_vectors=vectors)

    def find(self, docnos: Sequence[str]) -> Numbers:
        """Return the number of each document."""
        ids = [point_id(docno) for docno in docnos]
        found = self._retrieve(list(dict.fromkeys(ids)), [BUILD])
        there = {str(point.id) for point in found if not self.meta.pending or point.payload[BUILD] != self.meta.pending}
        unknown = [docno for docno, name in zip(docnos, ids, strict=True) if name not in there]
        if unknown:
            raise UnknownIdError(self.path, unknown)
        return self.numbered(ids)

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """Return one text (``docno``, ``post_id`` …) of each point."""
        wanted = dict.fromkeys(numbers.tolist())
        missing = [self.ids[number] for number in wanted if number not in self._payloads]
        for point in self._retrieve(missing, list(TEXTS[self.meta.layout])):
            self._payloads[self._numbers[str(point.id)]] = point.payload
        self._all_there(wanted, self._payloads)
        return [str(self._payloads[number][name]) for number in numbers.tolist()]

    def _hold(self, numbers: Numbers, field: Field) -> None:
        """Read the vectors of some points, and drop those of all others."""
        wanted = dict.fromkeys(numbers.tolist())
        if field != self._held_field:
            self._held, self._held_field = {}, field
        if all(number in self._held for number in wanted):
            return
        self._held = {number: rows for number, rows in self._held.items() if number in wanted}
        missing = [self.ids[number] for number in wanted if number not in self._held]
        vector = VECTORS[self.meta.layout][field]
        for point in self._retrieve(missing, list(TEXTS[self.meta.layout]), [vector]):
            number = self._numbers[str(point.id)]
            rows = np.asarray(point.vector[vector], dtype=np.float32)
            self._held[number] = rows.reshape(-1, self.meta.dimensions)
            self._payloads[number] = point.payload
        self._all_there(wanted, self._held)

    def _all_there(self, wanted: dict[int, None], found: dict[int, Any]) -> None:
        if any(number not in found for number in wanted):
            raise QdrantCollectionError(self.path, "points vanished during the search; search again")

    def lengths(self, numbers: Numbers, field: Field = "all") -> Numbers:
        """Return the number of rows of each point in one field: int64 ``[m]``."""
        self._hold(numbers, field)
        return np.array([len(self._held[number]) for number in numbers.tolist()], dtype=np.int64)

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """Return the vectors of some points, end to end."""
        self._hold(numbers, field)
        parts = [self._held[number] for number in numbers.tolist()]
        offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return np.concatenate([np.empty((0, self.meta.dimensions), np.float32), *parts]), offsets

    def entries(self) -> Iterator[Entry]:
        """Yield every point, in the order of their ids, read a page at a time."""
        names, vector = TEXTS[self.meta.layout], VECTORS[self.meta.layout]["all"]
        place: Any = None
        while True:
            points, place = self.call(
                "scroll",
                "reading all points",
                scroll_filter=self.visible(),
                limit=PAGE,
                offset=place,
                with_payload=list(names),
                with_vectors=[vector],
            )
            for point in points:
                rows = np.asarray(point.vector[vector], dtype=np.float32).reshape(-1, self.meta.dimensions)
                yield Entry(tuple(str(point.payload[name]) for name in names), rows)
            if place is None:
                return
