"""The indexes of vectors and the transformers over them; the names that a user needs.

::

    MathAMR.doc_encoder() ──▶ building/ ──▶ artifacts                  parts in a folder (store)
                                     └────▶ qdrant/                    points in a database
                                                │ snapshot             the state of an index as opened
    MathAMR.query_encoder() ──▶ transformers/ ──┤                      retrievers, scorer, loaders
                                  └─▶ search/ ──┘                      candidates, exact scores, ranking
    sharded/      several indexes searched as one, each in a process
    text_search   a typed query to a ranking, in one call
    explain       which virtual nodes met, and what each contributes to the score
    base          the methods that all indexes share
    protocols     the kinds of arrays, and what searching requires of an index
    float16       stored rows become float32
    errors
"""

from .artifacts import IndexArtifact, MathAMRFormulaIndex, MathAMRIndex
from .building.indexers import DocumentIndexer, FormulaIndexer
from .building.spreading import index_on
from .errors import (
    EmbeddingError,
    MathAMRIndexError,
    ModelMismatchError,
    QueryError,
)
from .from_graphs import index_documents, index_graph_store
from .qdrant import CollectionOptions, QdrantCollectionError, QdrantError, QdrantFormulaIndex, QdrantIndex
from .sharded import (
    PartChangedError,
    PartDiedError,
    PartFailedError,
    PartsError,
    PartTimeoutError,
    ShardedColBERTRetriever,
    ShardedDocVNRetriever,
    ShardedIndex,
    ShardedMaxSimScorer,
    ShardedRetriever,
    ShardedSingleVectorRetriever,
)
from .transformers import (
    ColBERTRetriever,
    DocVNRetriever,
    FormulaRetriever,
    IndexRetriever,
    MaxSimScorer,
    SingleVectorRetriever,
    TextLoader,
    VectorLoader,
)

__all__ = [
    "ColBERTRetriever",
    "CollectionOptions",
    "DocVNRetriever",
    "DocumentIndexer",
    "EmbeddingError",
    "FormulaIndexer",
    "FormulaRetriever",
    "IndexArtifact",
    "IndexRetriever",
    "MathAMRFormulaIndex",
    "MathAMRIndex",
    "MathAMRIndexError",
    "MaxSimScorer",
    "ModelMismatchError",
    "PartChangedError",
    "PartDiedError",
    "PartFailedError",
    "PartTimeoutError",
    "PartsError",
    "QdrantCollectionError",
    "QdrantError",
    "QdrantFormulaIndex",
    "QdrantIndex",
    "QueryError",
    "ShardedColBERTRetriever",
    "ShardedDocVNRetriever",
    "ShardedIndex",
    "ShardedMaxSimScorer",
    "ShardedRetriever",
    "ShardedSingleVectorRetriever",
    "SingleVectorRetriever",
    "TextLoader",
    "VectorLoader",
    "index_documents",
    "index_graph_store",
    "index_on",
]
