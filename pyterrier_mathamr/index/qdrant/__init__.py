"""The indexes in Qdrant: the same methods as those in a folder, over a server, a cluster, or its local mode."""

from .collection import CollectionOptions
from .errors import (
    QdrantCollectionError,
    QdrantConnectionError,
    QdrantError,
    QdrantIncompleteError,
    QdrantKeyError,
    QdrantRefusedError,
    QdrantTimeoutError,
)
from .index import QdrantFormulaIndex, QdrantIndex

__all__ = [
    "CollectionOptions",
    "QdrantCollectionError",
    "QdrantConnectionError",
    "QdrantError",
    "QdrantFormulaIndex",
    "QdrantIncompleteError",
    "QdrantIndex",
    "QdrantKeyError",
    "QdrantRefusedError",
    "QdrantTimeoutError",
]
