"""``MathAMRIndex``: all virtual nodes of each document, and every strategy of the paper over them."""

from __future__ import annotations

from .base import DocumentVectorIndex, IndexArtifact, example_documents, example_folder
from .building.indexers import DocumentIndexer
from .building.kinds import DOCUMENTS
from .transformers import ColBERTRetriever, DocVNRetriever, SingleVectorRetriever, method


class MathAMRIndex(DocumentVectorIndex, IndexArtifact):
    """The vectors of all virtual nodes of each document (MathAMR+, section 3.5), memory-mapped in a folder.

    Called directly it takes queries as :meth:`retriever`, rankings as :meth:`scorer` and documents as
    :meth:`vec_loader`::

        index = MathAMRIndex("arqmath.mathamr")
        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> index.colbert(num_results=100)

    Args:
        path: the folder; constructing the object reads nothing, and it need not exist yet.
    """

    KIND = DOCUMENTS
    ARTIFACT_TYPE, ARTIFACT_FORMAT = KIND.type, KIND.format

    indexer = method(DocumentIndexer)
    single_vector = method(SingleVectorRetriever)
    doc_vn = method(DocVNRetriever)
    colbert = retriever = method(ColBERTRetriever)

    @staticmethod
    def example() -> MathAMRIndex:
        """Return a small index of random vectors in a temporary folder that is removed when Python ends."""
        return MathAMRIndex(example_folder() / "example.mathamr").index(example_documents())
