"""``QdrantIndex``: the strategies of the paper over the database that the paper used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.index.artifact import example_folder
from pyterrier_mathamr.index.documents import DocumentFace
from pyterrier_mathamr.index.options import search_of
from pyterrier_mathamr.index.records import stored_formula_ids
from pyterrier_mathamr.store import Mode

from .base import QdrantBase
from .indexers import QdrantDocumentIndexer
from .meta import CollectionOptions
from .retrievers import QdrantColBERTRetriever, QdrantDocVNRetriever, QdrantSingleVectorRetriever


class QdrantIndex(DocumentFace, QdrantBase):
    """The vectors of all virtual nodes of each document in a Qdrant collection (MathAMR+, section 3.5.1).

    It has the methods of ``MathAMRIndex``, with the same columns; in exact mode the rankings and scores are the same
    too, equal scores by docno::

        index = QdrantIndex("http://localhost:6333", "arqmath")        # or a folder: Qdrant's local mode
        (graphs >> model.doc_encoder() >> index.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> index.colbert(num_results=100)

    Called directly it takes queries as :meth:`retriever`, rankings as :meth:`scorer` and documents as
    :meth:`vec_loader`. The arguments are those of :class:`~.base.QdrantBase`.
    """

    LAYOUT = "documents"

    def indexer(
        self,
        mode: Mode = "create",
        *,
        options: CollectionOptions | None = None,
        model: str | None = None,
        resume: bool = False,
        verbose: bool = False,
        total: int | None = None,
    ) -> QdrantDocumentIndexer:
        """Consumes ``{docno, doc_embs, (formula_ids)}`` and fills, replaces or extends this collection.

        Args:
            mode: ``create`` refuses a collection that is there, ``overwrite`` replaces it, ``append`` adds to it.
            options: shards, replicas, disk and int8 quantisation of a new collection.
            model: the identity of the model that makes the vectors; by default what the records carry in ``doc_model``.
            resume: go on with what an earlier such call that died had stored, and leave it if this one dies too.
            verbose: show a progress bar.
            total: how many documents will come, for the bar.
        """
        others = {"model": model, "resume": resume, "verbose": verbose, "total": total}
        return QdrantDocumentIndexer(self, mode, options=options, **others)

    def single_vector(
        self,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> QdrantSingleVectorRetriever:
        """Ranks documents by their VIRTUAL_DOCUMENT: ``query_embs`` to ``docno``, ``score``, ``rank``.

        Args:
            num_results: documents for each query.
            exact: ``True`` for exact search (the default), ``False`` for HNSW.
            search: the same by name: ``exact`` or ``approximate``.
            hnsw_ef: how broadly the graph is walked in approximate search.
            verbose: show a progress bar.
            batch_size: queries taken at once.
            device: ``None`` or ``cpu``.
        """
        return QdrantSingleVectorRetriever(
            self,
            num_results=num_results,
            search=search_of(exact, search),
            hnsw_ef=hnsw_ef,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    def doc_vn(
        self,
        candidates: int = 5000,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> QdrantDocVNRetriever:
        """Ranks the best by VIRTUAL_DOCUMENT by exact MaxSim: ``query_embs`` to ``docno``, ``score``, ``rank``.

        Args:
            candidates: documents of the first stage for each query.
            num_results: documents for each query.
            exact: whether the first stage is exact (the default) or HNSW; the second is always exact.
            search: the same by name: ``exact`` or ``approximate``.
            hnsw_ef: how broadly the graph is walked in approximate search.
            normalise: divide scores by the query's number of rows (eq. 3.7).
            verbose: show a progress bar.
            batch_size: queries taken at once.
            device: ``None`` or ``cpu``.
        """
        return QdrantDocVNRetriever(
            self,
            candidates=candidates,
            num_results=num_results,
            search=search_of(exact, search),
            hnsw_ef=hnsw_ef,
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
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> QdrantColBERTRetriever:
        """Ranks documents by MaxSim over all rows: ``query_embs`` to ``docno``, ``score``, ``rank``.

        ``query_weights`` must not be negative here, which Qdrant cannot search by; ``query_document_weight`` may.

        Args:
            num_results: documents for each query.
            exact: ``True`` searches every document (the default), ``False`` those that HNSW finds.
            search: the same by name: ``exact`` or ``approximate``.
            hnsw_ef: how broadly the graph is walked in approximate search.
            normalise: divide scores by the query's number of rows (eq. 3.7).
            verbose: show a progress bar.
            batch_size: queries taken at once.
            device: ``None`` or ``cpu``.
        """
        return QdrantColBERTRetriever(
            self,
            num_results=num_results,
            search=search_of(exact, search),
            hnsw_ef=hnsw_ef,
            normalise=normalise,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    retriever = colbert

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """The documents in the order of their points, with the fields that ``MathAMRIndex`` gives."""
        snapshot = self.snapshot()
        made_by = {} if snapshot.meta.model is None else {"doc_model": snapshot.meta.model}
        for entry in progress(snapshot.entries(), "reading", "doc", verbose=verbose):
            docno, ids = entry.texts
            known = {"formula_ids": stored_formula_ids(ids, self.path)} if ids else {}
            yield {"docno": docno, "doc_embs": entry.rows, **known, **made_by}

    @staticmethod
    def example() -> QdrantIndex:
        """A small index of random vectors in local mode, in a temporary folder that is removed when Python ends."""
        random = np.random.default_rng(42)
        index = QdrantIndex(example_folder(), "example")
        rows = (random.standard_normal((n, 4)).astype(np.float32) for n in (3, 1, 5))
        unit = (of / np.linalg.norm(of, axis=1, keepdims=True) for of in rows)
        return index.index({"docno": f"d{i}", "doc_embs": of} for i, of in enumerate(unit, 1))
