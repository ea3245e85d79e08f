"""``MathAMRIndex``: all virtual nodes of each document, and every strategy of the paper over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pyterrier_mathamr.store import Mode

from .base import DocumentFace, IndexArtifact, example_folder
from .building.entries import DType, stored_formula_ids
from .building.indexers import DocumentIndexer
from .building.kinds import DOCUMENTS
from .transformers import ColBERTRetriever, DocVNRetriever, SingleVectorRetriever, search_of


class MathAMRIndex(DocumentFace, IndexArtifact):
    """The vectors of all virtual nodes of each document (MathAMR+, section 3.5), memory-mapped in a folder.

    Called directly it takes queries as :meth:`retriever`, rankings as :meth:`scorer` and documents as
    :meth:`vec_loader`::

        index = MathAMRIndex("arqmath.mathamr")
        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> index.colbert(num_results=100)

    Args:
        path: the folder; making the object reads nothing, and it need not exist yet.
    """

    KIND = DOCUMENTS
    ARTIFACT_TYPE, ARTIFACT_FORMAT = KIND.type, KIND.format
    LAYOUT = "documents"

    def indexer(
        self,
        mode: Mode = "create",
        *,
        model: str | None = None,
        dtype: DType | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> DocumentIndexer:
        """Consumes ``{docno, doc_embs, (formula_ids)}`` and builds, replaces or extends this index.

        Args:
            mode: ``create`` refuses a built index, ``overwrite`` replaces it, ``append`` adds to it.
            model: who makes the vectors, a name or ``name@hash``; by default what the records carry in ``doc_model``.
            dtype: how rows are stored: ``float32``, or ``float16``, which takes half the room; all searches are then
                of the rounded rows, and exact for these. By default as the index that is added to has them, else
                float32.
            resume: take over what an earlier such call that died had finished; another's work is refused.
            sources: what the documents are made from, as plain values, by which such a call is recognised.
            verbose: show a progress bar.
            total: how many documents will come, for the bar.
        """
        options = {"dtype": dtype, "resume": resume, "sources": sources, "verbose": verbose, "total": total}
        return DocumentIndexer(self, mode, model=model, **options)  # type: ignore[arg-type]

    def single_vector(
        self,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> SingleVectorRetriever:
        """Ranks documents by their VIRTUAL_DOCUMENT: ``query_embs`` to ``docno``, ``score``, ``rank``.

        Args:
            num_results: documents for each query.
            exact: ``True`` for exact search (the default), ``False`` for HNSW.
            search: the same by name: ``exact`` or ``approximate``.
            verbose: show a progress bar.
            batch_size: queries scored in one pass over the data.
            device: accepted as everywhere; the processor computes this.
        """
        how = search_of(exact, search)
        return SingleVectorRetriever(
            self, num_results=num_results, search=how, verbose=verbose, batch_size=batch_size, device=device
        )

    def doc_vn(
        self,
        candidates: int = 5000,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> DocVNRetriever:
        """Ranks the best by VIRTUAL_DOCUMENT by exact MaxSim: ``query_embs`` to ``docno``, ``score``, ``rank``.

        Args:
            candidates: documents of the first stage for each query.
            num_results: documents for each query.
            exact: whether the first stage is exact (the default) or HNSW; the second is always exact.
            search: the same by name: ``exact`` or ``approximate``.
            normalise: divide scores by the query's number of rows (eq. 3.7).
            verbose: show a progress bar.
            batch_size: queries scored in one pass over the data.
            device: accepted as everywhere; the processor computes this.
        """
        return DocVNRetriever(
            self,
            candidates=candidates,
            num_results=num_results,
            search=search_of(exact, search),
            normalise=normalise,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    def colbert(
        self,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hits: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> ColBERTRetriever:
        """Ranks documents by MaxSim over all rows: ``query_embs`` to ``docno``, ``score``, ``rank``.

        Args:
            num_results: documents for each query.
            exact: ``True`` scans every document (the default), ``False`` those that HNSW finds by single rows.
            search: the same by name: ``exact`` or ``approximate``.
            hits: rows that HNSW finds for each row of the query.
            normalise: divide scores by the query's number of rows (eq. 3.7).
            verbose: show a progress bar.
            batch_size: queries scored in one pass over the data.
            device: ``cuda`` for a card that keeps the bytes and scans them; else the processor.
        """
        return ColBERTRetriever(
            self,
            num_results=num_results,
            search=search_of(exact, search),
            hits=hits,
            normalise=normalise,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    retriever = colbert

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """The documents as they were indexed: ``docno``, ``doc_embs``; ``formula_ids``, ``doc_model`` where known."""
        made_by = self.model
        for entry in self.entries(verbose=verbose):
            docno, ids = entry.texts
            known = {"formula_ids": stored_formula_ids(ids, self.path), "doc_model": made_by}
            known = {name: value for name, value in known.items() if value is not None}
            yield {"docno": docno, "doc_embs": entry.rows, **known}

    @classmethod
    def merge(cls, path: str | Path, *indexes: MathAMRIndex, dtype: DType | None = None) -> MathAMRIndex:
        """Build a new index of all documents of some others, in their order.

        Args:
            path: the new index's folder.
            indexes: what is merged; one alone is copied.
            dtype: how the new index stores rows, ``float32`` or ``float16``; by default as the others do.

        Raises:
            DtypeMismatchError: they store them in two ways, and ``dtype`` is not given.
            DuplicateIdError: two of them hold the same docno.
            EmbeddingError: their dimensions differ.
            ModelMismatchError: their models differ.
        """
        index = cls(path)
        index._merge(indexes, dtype)
        return index

    @staticmethod
    def example() -> MathAMRIndex:
        """A small index of random vectors in a temporary folder that is removed when Python ends."""
        random = np.random.default_rng(42)
        index = MathAMRIndex(example_folder() / "example.mathamr")
        rows = (random.standard_normal((n, 4)).astype(np.float32) for n in (3, 1, 5))
        unit = (of / np.linalg.norm(of, axis=1, keepdims=True) for of in rows)
        return index.index({"docno": f"d{i}", "doc_embs": of} for i, of in enumerate(unit, 1))
