"""``QdrantFormulaIndex``: a collection with one point for each formula virtual node (MathAMR+, section 3.5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.index.options import search_of
from pyterrier_mathamr.index.typed import TypedFormulas
from pyterrier_mathamr.store import Mode

from .base import QdrantBase
from .indexers import QdrantFormulaIndexer
from .meta import CollectionOptions
from .retrievers import QdrantFormulaRetriever


class QdrantFormulaIndex(TypedFormulas, QdrantBase):
    """One vector for each formula virtual node in a Qdrant collection, for formula retrieval (ARQMath Task 2).

    It has the methods of ``MathAMRFormulaIndex``, with the same columns; in exact mode the rankings are the same too::

        formulas = QdrantFormulaIndex("http://localhost:6333", "arqmath-formulas")
        (graphs >> model.doc_encoder() >> formulas.indexer()).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> formulas.retriever()

    The arguments are those of :class:`~.base.QdrantBase`.
    """

    LAYOUT = "formulas"

    def indexer(
        self,
        mode: Mode = "create",
        *,
        visual_ids: Mapping[str, str] | None = None,
        options: CollectionOptions | None = None,
        model: str | None = None,
        resume: bool = False,
        verbose: bool = False,
        total: int | None = None,
    ) -> QdrantFormulaIndexer:
        """Consumes ``{docno, doc_embs, formula_ids}`` and fills, replaces or extends this collection.

        Args:
            mode: ``create`` refuses a collection that is there, ``overwrite`` replaces it, ``append`` adds to it.
            visual_ids: formula id to visual id; formulas that are not in it get the empty string.
            options: shards, replicas, disk and int8 quantisation of a new collection.
            model: the identity of the model that makes the vectors; by default what the records carry in ``doc_model``.
            resume: go on with what an earlier such call that died had stored, and leave it if this one dies too.
            verbose: show a progress bar.
            total: how many documents will come, for the bar.
        """
        others = {"model": model, "resume": resume, "verbose": verbose, "total": total}
        return QdrantFormulaIndexer(self, mode, options=options, visual_ids=visual_ids, **others)

    def retriever(
        self,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hnsw_ef: int = 128,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> QdrantFormulaRetriever:
        """Ranks formulas by one row of ``query_embs``, that of ``query_formula_id`` in ``query_formula_ids``.

        Args:
            num_results: formulas for each query.
            exact: ``True`` for exact search (the default), ``False`` for HNSW.
            search: the same by name: ``exact`` or ``approximate``.
            hnsw_ef: how broadly the graph is walked in approximate search.
            verbose: show a progress bar.
            batch_size: queries taken at once.
            device: ``None`` or ``cpu``.
        """
        return QdrantFormulaRetriever(
            self,
            num_results=num_results,
            search=search_of(exact, search),
            hnsw_ef=hnsw_ef,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The same as ``retriever()(inp)``."""
        result: pd.DataFrame = self.retriever()(inp)
        return result

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """The formulas: ``docno`` (its id), ``post_id``, ``visual_id`` and ``formula_vec``, float32 ``[d]``."""
        for entry in progress(self.snapshot().entries(), "reading", "formula", verbose=verbose):
            docno, post_id, visual_id = entry.texts
            yield {"docno": docno, "post_id": post_id, "visual_id": visual_id, "formula_vec": entry.rows[0]}
