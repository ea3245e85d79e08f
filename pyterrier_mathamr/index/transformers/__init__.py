"""The transformers over an index: the retrievers of MathAMR+ (section 3.5.2), the scorer and the loaders.

::

    retrievers   queries → ranking       read, select, rank, lay out
    scorer       ranking → ranking       exact MaxSim of its documents
    loaders      documents → vectors, or the texts that the index stores
    options      what they share: the index and the options

All retrievers and the scorer take ``query_embs`` (float32 ``[q, d]``). With ``query_weights`` (a number for each row)
or ``query_document_weight`` (a number a), MaxSim is S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc. A query without
rows finds nothing.
"""

from .loaders import TextLoader, VectorLoader
from .options import IndexTransformer
from .retrievers import (
    ColBERTRetriever,
    DocVNRetriever,
    FormulaRetriever,
    IndexRetriever,
    SingleVectorRetriever,
)
from .scorer import MaxSimScorer

__all__ = [
    "ColBERTRetriever",
    "DocVNRetriever",
    "FormulaRetriever",
    "IndexRetriever",
    "IndexTransformer",
    "MaxSimScorer",
    "SingleVectorRetriever",
    "TextLoader",
    "VectorLoader",
]
