"""The indexes of vectors and what searches them; everything a user of the room needs is named here."""

from .artifact import IndexArtifact
from .errors import (
    DtypeMismatchError,
    EmbeddingError,
    EmptyStreamError,
    MathAMRIndexError,
    ModelMismatchError,
    ModelNeededError,
    QueryError,
)
from .formula import FormulaRetriever, MathAMRFormulaIndex
from .indexers import DocumentIndexer, FormulaIndexer
from .multi import MathAMRIndex
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
from .retrievers import ColBERTRetriever, DocVNRetriever, SingleVectorRetriever
from .scorer import MaxSimScorer, VectorLoader

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
