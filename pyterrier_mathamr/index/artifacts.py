"""The indexes that are folders: ``MathAMRIndex`` and ``MathAMRFormulaIndex``."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Self

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr.store import OtherArtifactError, StoredArtifact

from .base import (
    DocumentVectorIndex,
    FormulaVectorIndex,
    VectorIndex,
    example_documents,
    example_folder,
    merged_model,
)
from .building.builder import Build
from .building.entries import DType, Post
from .building.indexers import DocumentIndexer, FormulaIndexer
from .building.kinds import DOCUMENTS, FORMULAS
from .building.resume import Corpus
from .snapshot import Snapshot
from .transformers import (
    ColBERTRetriever,
    DocVNRetriever,
    FormulaRetriever,
    SingleVectorRetriever,
)


class IndexArtifact(StoredArtifact, VectorIndex):
    """An index in a folder.

    Args:
        path: the folder.
    """

    @classmethod
    def example(cls) -> Self:
        """Return a small index of random vectors in a temporary folder that is removed when Python ends."""
        return cls(example_folder() / "example.mathamr").index(example_documents())

    def open_snapshot(self) -> Snapshot:
        """Open the index."""
        return Snapshot(self.path, self.KIND)

    def snapshot(self) -> Snapshot:
        """Return the index as it is now; see :meth:`StoredArtifact.snapshot`."""
        found: Snapshot = super().snapshot()  # type: ignore[assignment]
        return found

    def more_counts(self) -> list[str]:
        """List the number of vectors, deleted ones included, with their width, and the model."""
        snapshot = self.snapshot()
        vectors = counted(sum(len(part["rows"]) for part in snapshot.parts), "vector")
        made_by = [f"by {snapshot.meta.model}"] if snapshot.meta.model else []
        return [f"{vectors} of {counted(snapshot.meta.dimensions, 'dimension')}", *made_by]

    @classmethod
    def merge(cls, path: str | Path, *indexes: Self, dtype: DType | None = None) -> Self:
        """Build a new index of all entries of some others, in their order; of a formula the first is kept.

        Args:
            path: the new index's folder.
            indexes: the indexes that are merged; one alone is copied.
            dtype: how the new index stores rows, ``float32`` or ``float16``; by default as the others do.

        Raises:
            ConfigError: they store rows in two ways, and ``dtype`` is not given.
            DuplicateIdError: two of them contain the same docno.
            EmbeddingError: their dimensions differ.
            ModelMismatchError: their models differ.
        """
        model = merged_model(str(path), indexes)
        for source in indexes:
            if type(source) is not cls:
                raise OtherArtifactError(source.path, f"only a {cls.__name__} can be merged here")
        dtypes: dict[DType, None] = dict.fromkeys(source.snapshot().meta.dtype for source in indexes)
        if dtype is None and len(dtypes) > 1:
            allowed = f"'float32' or 'float16': the indexes store rows as {' and '.join(sorted(dtypes))}"
            raise ConfigError("dtype", dtype, allowed)
        entries = chain.from_iterable(source.entries() for source in indexes)
        posts = (Post(entry.docno, [entry]) for entry in entries)
        index = cls(path)
        with index.job("create", {}, resume=False) as job:
            Build(job, cls.LAYOUT, Corpus(index.path, ()), model, dtype or next(iter(dtypes), None)).run(posts)
        return index


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
    HOLDS = "document"
    ARTIFACT_TYPE, ARTIFACT_FORMAT = KIND.type, KIND.format

    indexer = method(DocumentIndexer)
    single_vector = method(SingleVectorRetriever)
    doc_vn = method(DocVNRetriever)
    colbert = retriever = method(ColBERTRetriever)


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
    HOLDS = "formula"
    ARTIFACT_TYPE, ARTIFACT_FORMAT = KIND.type, KIND.format

    indexer = method(FormulaIndexer)
    retriever = method(FormulaRetriever)
