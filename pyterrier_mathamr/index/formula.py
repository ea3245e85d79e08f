"""``MathAMRFormulaIndex``: one vector for each formula virtual node, for formula retrieval (ARQMath Task 2)."""

from __future__ import annotations

from .base import FormulaVectorIndex, IndexArtifact, example_documents, example_folder
from .building.indexers import FormulaIndexer
from .building.kinds import FORMULAS
from .transformers import FormulaRetriever, method


class MathAMRFormulaIndex(FormulaVectorIndex, IndexArtifact):
    r"""One vector for each formula virtual node (MathAMR+, section 3.5.1), memory-mapped in a folder.

    ``docno`` is the formula's id; ``post_id`` and ``visual_id`` come with it. Called directly it takes queries as
    :meth:`retriever`::

        formulas = MathAMRFormulaIndex("formulas.mathamr")
        encode = graphs >> model.doc_encoder()
        (encode >> formulas.indexer(visual_ids=formula_store)).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> formulas.retriever()
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")

    Args:
        path: the folder; constructing the object reads nothing, and it need not exist yet.
    """

    KIND = FORMULAS
    ARTIFACT_TYPE, ARTIFACT_FORMAT = KIND.type, KIND.format

    indexer = method(FormulaIndexer)
    retriever = method(FormulaRetriever)

    @staticmethod
    def example() -> MathAMRFormulaIndex:
        """Return a small index of random vectors in a temporary folder that is removed when Python ends."""
        return MathAMRFormulaIndex(example_folder() / "example.mathamr").index(example_documents())
