"""What the two indexes in Qdrant share: an address, a collection, and who they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index.artifact import merged_model
from pyterrier_mathamr.index.face import IndexFace
from pyterrier_mathamr.index.options import check_count
from pyterrier_mathamr.index.records import Layout

from .collection import Collection
from .connection import Connection
from .errors import QdrantCollectionError
from .meta import CollectionOptions, point_id
from .snapshot import QdrantSnapshot
from .upload import upload


class QdrantBase(IndexFace):
    """An index in Qdrant. Making the object sends no request; the collection need not exist yet.

    Args:
        location: the URL of a server or cluster (``https://host:6333``), or a folder for Qdrant's local mode, which
            needs no server and is meant for some ten thousand documents. Local mode keeps its points as pickles: open
            only folders that you trust.
        collection: its name.
        api_key: the server's key; by default the environment variable ``QDRANT_API_KEY``. It is not shown, compared or
            pickled: a copy in another process takes it from its own environment.
        timeout: whole seconds to wait for an answer.
        retries: how often a request that failed for a passing reason is sent again.
        pause: seconds before it is sent again the first time; the pause doubles each time.
    """

    LAYOUT: ClassVar[Layout]

    def __init__(
        self,
        location: str | Path,
        collection: str = "mathamr",
        *,
        api_key: str | None = None,
        timeout: int = 60,
        retries: int = 6,
        pause: float = 0.5,
    ) -> None:
        super().__init__()
        check_count("timeout", timeout)
        if retries < 0:
            raise ConfigError("retries", retries, "a whole number of at least 0")
        if not collection or set(collection) & set('<>:"/\\|?*\0\x1f'):
            raise ConfigError("collection", collection, 'a name without any of < > : " / \\ | ? *')
        self.location, self.name = str(location), collection
        self.timeout, self.retries, self.pause = timeout, retries, pause
        self.collection = Collection(
            Connection(self.location, api_key, timeout, retries, pause), collection, self.LAYOUT
        )

    @property
    def path(self) -> str:
        """Where it lies, for errors: the address and the collection."""
        return self.collection.address

    def _options(self) -> dict[str, Any]:
        return {"timeout": self.timeout, "retries": self.retries, "pause": self.pause}

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self.location, self.name, self._options())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QdrantBase):
            return NotImplemented
        return (type(other), other.location, other.name) == (type(self), self.location, self.name)

    def __hash__(self) -> int:
        return hash((type(self), self.location, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r}, {self.name!r})"

    def built(self) -> bool:
        """Whether the collection is there and whole; an upload that is under way or died does not count.

        Raises:
            QdrantError: the server cannot be asked, or the collection is another's.
        """
        return self.collection.read() is not None

    def snapshot(self) -> QdrantSnapshot:
        """The collection as it is now.

        Raises:
            QdrantCollectionError: there is none, or it is of another kind.
            QdrantError: another of its kinds.
        """
        return QdrantSnapshot(self.collection)

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """None: the index is a store, not a stage."""
        return {}

    @classmethod
    def merge(
        cls,
        location: str | Path,
        collection: str,
        *indexes: QdrantBase,
        options: CollectionOptions | None = None,
        **connection: Any,
    ) -> Self:
        """Build a new collection of all entries of some others, in their order; readers see it in one step at the end.

        Args:
            location: where the new collection lies: a URL, or a folder for Qdrant's local mode.
            collection: its name.
            indexes: what is merged, wherever it lies; one alone is copied.
            options: shards, replicas, disk and int8 quantisation of the new collection.
            connection: ``api_key``, ``timeout``, ``retries`` and ``pause`` of the new index.

        Raises:
            ExistsError: there is such a collection.
            DuplicateIdError: two of them hold the same document; of a formula the first is kept, with a warning.
            EmbeddingError: their dimensions differ.
            ModelMismatchError: their models differ.
            QdrantError: one of its kinds.
        """
        index = cls(location, collection, **connection)
        for source in indexes:
            if type(source) is not cls:
                raise QdrantCollectionError(source.path, f"only a {cls.__name__} can be merged here")
        model = merged_model(index.path, indexes)
        entries = chain.from_iterable(source.snapshot().entries() for source in indexes)
        upload(index.collection, "create", entries, options or CollectionOptions(), model=model, resume=False)
        return index

    def delete(self, docnos: Iterable[str]) -> None:
        """Remove documents (or formulas, by their ids).

        Args:
            docnos: what goes; one that comes twice counts once.

        Raises:
            UnknownIdError: the collection does not hold some of them; it names them, and nothing is removed.
        """
        names = list(dict.fromkeys(docnos))
        snapshot = self.snapshot()
        snapshot.find(names)
        models = self.collection.connection.models
        for start in range(0, len(names), 1000):
            ids = [point_id(name) for name in names[start : start + 1000]]
            snapshot.call("delete", "deleting", points_selector=models.PointIdsList(points=ids), wait=True)


def _rebuilt(kind: type[QdrantBase], location: str, name: str, options: Mapping[str, Any]) -> QdrantBase:
    """What a pickle calls; the key is not in it."""
    return kind(location, name, **options)
