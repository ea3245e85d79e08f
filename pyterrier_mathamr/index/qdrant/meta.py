"""What a collection holds and says of itself: vectors, payload, ids of points, metadata."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from pyterrier_mathamr.index.arrays import Field
from pyterrier_mathamr.index.records import Layout

from .errors import QdrantCollectionError

FORMAT_VERSION = 1
"""The format of collections; it counts changes of what stands above."""

VECTORS: dict[Layout, dict[Field, str]] = {
    "documents": {"doc": "doc", "all": "all"},
    "formulas": {"doc": "formula", "all": "formula"},
}
"""The named vector that holds each field."""

PAYLOAD: dict[Layout, tuple[str, ...]] = {
    "documents": ("docno", "formula_ids"),
    "formulas": ("docno", "post_id", "visual_id"),
}
"""The texts of an entry as they stand in the payload."""

BUILD = "build"


@dataclass(frozen=True)
class CollectionOptions:
    """How a collection is created; local mode has none of it.

    Args:
        shard_number: shards of a cluster; ``None`` lets the server choose.
        replication_factor: copies of each shard; ``None`` lets the server choose.
        on_disk: keep vectors and payload on disk, mapped into memory, instead of in memory.
        quantise: keep an int8 code of each vector in memory for approximate search; exact search does not read it.
    """

    shard_number: int | None = None
    replication_factor: int | None = None
    on_disk: bool = False
    quantise: bool = False


@dataclass(frozen=True)
class CollectionMeta:
    """What a collection says of itself, in Qdrant's collection metadata.

    Args:
        slot: the collection behind the alias.
        layout: what a point is.
        dimensions: the width of its rows.
        model: the identity of the model that made the vectors, where it was given.
        max_norm: no row is longer.
        build: the number of the last whole call that stored points.
        pending: the number of a call that is under way or died, whose points are not seen; 0 where there is none.
    """

    slot: str
    layout: Layout
    dimensions: int
    model: str | None
    max_norm: float
    build: int = 0
    pending: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As it is stored: without null, which would delete a key."""
        kept = {**asdict(self), "model": self.model or ""}
        return {"package": "pyterrier-mathamr", "format_version": FORMAT_VERSION, **kept}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None, address: str) -> CollectionMeta:
        """Read what :meth:`to_dict` made.

        Raises:
            QdrantCollectionError: it was made by something else, or in a format this release does not read.
        """
        if not data or data.get("package") != "pyterrier-mathamr":
            raise QdrantCollectionError(address, "the collection was not made by this package")
        if data.get("format_version") != FORMAT_VERSION:
            found = data.get("format_version")
            raise QdrantCollectionError(
                address, f"the collection has format {found}, this release reads {FORMAT_VERSION}"
            )
        try:
            known = {field.name: data[field.name] for field in fields(cls)}
        except KeyError as error:
            raise QdrantCollectionError(address, f"the collection's metadata lacks {error}") from error
        return cls(**{**known, "model": known["model"] or None})

    def changed(self, **values: Any) -> CollectionMeta:
        """The same with other values."""
        return replace(self, **values)


def point_id(docno: str) -> str:
    """The id of a document's point: a UUID of the BLAKE2b hash of its docno, the same on every machine."""
    return str(uuid.UUID(bytes=hashlib.blake2b(docno.encode("utf-8", "surrogatepass"), digest_size=16).digest()))
