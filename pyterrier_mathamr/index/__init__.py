"""The indexes of vectors and what searches them; everything a user of the room needs is named here."""

from .base import IndexArtifact
from .building.indexers import DocumentIndexer, FormulaIndexer
from .errors import (
    DtypeMismatchError,
    EmbeddingError,
    EmptyStreamError,
    MathAMRIndexError,
    ModelMismatchError,
    ModelNeededError,
    QueryError,
)
from .formula import MathAMRFormulaIndex
from .multi_vector import MathAMRIndex
from .qdrant import (
    CollectionOptions,
    QdrantCollectionError,
    QdrantConnectionError,
    QdrantError,
    QdrantFormulaIndex,
    QdrantIncompleteError,
    QdrantIndex,
    QdrantKeyError,
    QdrantRefusedError,
    QdrantTimeoutError,
)
from .transformers import (
    ColBERTRetriever,
    DocVNRetriever,
    FormulaRetriever,
    MaxSimScorer,
    SingleVectorRetriever,
    VectorLoader,
)

__all__ = [
    "ColBERTRetriever",
    "CollectionOptions",
    "DocVNRetriever",
    "DocumentIndexer",
    "DtypeMismatchError",
    "EmbeddingError",
    "EmptyStreamError",
    "FormulaIndexer",
    "FormulaRetriever",
    "IndexArtifact",
    "MathAMRFormulaIndex",
    "MathAMRIndex",
    "MathAMRIndexError",
    "MaxSimScorer",
    "ModelMismatchError",
    "ModelNeededError",
    "QdrantCollectionError",
    "QdrantConnectionError",
    "QdrantError",
    "QdrantFormulaIndex",
    "QdrantIncompleteError",
    "QdrantIndex",
    "QdrantKeyError",
    "QdrantRefusedError",
    "QdrantTimeoutError",
    "QueryError",
    "SingleVectorRetriever",
    "VectorLoader",
]
