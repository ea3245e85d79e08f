"""The indexes of vectors and what searches them; everything a user of the room needs is named here."""

from .artifact import IndexArtifact
from .errors import (
    DtypeMismatchError,
    DuplicateDocnoError,
    EmbeddingError,
    EmptyStreamError,
    IndexCorruptError,
    IndexExistsError,
    IndexFormatError,
    IndexLockedError,
    IndexWriteError,
    MathAMRIndexError,
    ModelMismatchError,
    ModelNeededError,
    NotAnIndexError,
    QueryError,
    UnknownDocnoError,
)
from .files import FORMAT_VERSION, OLDEST_READABLE_VERSION, IndexFile
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
    "FORMAT_VERSION",
    "OLDEST_READABLE_VERSION",
    "ColBERTRetriever",
    "CollectionOptions",
    "DocVNRetriever",
    "DocumentIndexer",
    "DtypeMismatchError",
    "DuplicateDocnoError",
    "EmbeddingError",
    "EmptyStreamError",
    "FormulaIndexer",
    "FormulaRetriever",
    "IndexArtifact",
    "IndexCorruptError",
    "IndexExistsError",
    "IndexFile",
    "IndexFormatError",
    "IndexLockedError",
    "IndexWriteError",
    "MathAMRFormulaIndex",
    "MathAMRIndex",
    "MathAMRIndexError",
    "MaxSimScorer",
    "ModelMismatchError",
    "ModelNeededError",
    "NotAnIndexError",
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
    "UnknownDocnoError",
    "VectorLoader",
]
