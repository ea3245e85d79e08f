"""What an index of documents offers beside its retrievers, wherever its vectors lie: in a folder or in Qdrant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyterrier as pt

from .explain import explain
from .face import IndexFace
from .options import search_of
from .records import stored_formula_ids
from .scorer import MaxSimScorer, VectorLoader, Vectors

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph


class DocumentFace(IndexFace):
    """Scorer, loader of vectors, explanation, and what an index does that is itself a stage of a pipeline."""

    def scorer(
        self,
        *,
        num_results: int | None = None,
        vectors: Vectors = "all",
        exact: bool | None = None,
        search: str | None = None,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> MaxSimScorer:
        """Scores a ranking by exact MaxSim: ``query_embs`` and ``docno`` to ``score``, ``rank``.

        Args:
            num_results: documents kept for each query; ``None`` keeps all.
            vectors: ``all`` for MaxSim, ``document`` for the product of the document vectors alone.
            exact: ``True`` or ``None``; a scorer is exact.
            search: ``exact`` or ``None``.
            normalise: divide scores by the query's number of rows (eq. 3.7).
            verbose: show a progress bar.
            batch_size: accepted as everywhere; a scorer goes query by query.
            device: accepted as everywhere; the processor computes this.
        """
        return MaxSimScorer(
            self,
            num_results=num_results,
            vectors=vectors,
            search=search_of(exact, search),
            normalise=normalise,
            verbose=verbose,
            batch_size=batch_size,
            device=device,
        )

    def vec_loader(self, *, verbose: bool = False) -> VectorLoader:
        """Adds ``doc_embs``, float32 ``[n, d]``, to documents or rankings by ``docno``."""
        return VectorLoader(self, verbose=verbose)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Queries are retrieved for, rankings scored, documents given their vectors; by the columns of ``inp``."""
        with pt.validate.any(inp, context=self) as mode:
            mode.query_frame(extra_columns=["query_embs"], mode="retriever")
            mode.result_frame(extra_columns=["query_embs"], mode="scorer")
            mode.document_frame(mode="vec_loader")
        result: pd.DataFrame = getattr(self, mode.mode)()(inp)
        return result

    def explain(
        self,
        query_embs: Any,
        docno: str,
        *,
        query_formula_ids: Sequence[str] | None = None,
        query_weights: Any = None,
        query_document_weight: float | None = None,
        query_graph: MathAMRGraph | None = None,
        document_graph: MathAMRGraph | None = None,
        query_texts: Sequence[str] | None = None,
        document_texts: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Say which virtual node of a document each node of a query met, and what that gave to the score.

        Args:
            query_embs: float32 ``[q, d]``.
            docno: the document.
            query_formula_ids: the ids of the query's formulas, which are its first rows.
            query_weights: a number for each row of the query; 1 where not given.
            query_document_weight: what the product of the two document vectors counts beside MaxSim; nothing where
                not given.
            query_graph: the graph that the query's vectors were made from: it says what each row is and keeps the LaTeX
                of formulas and the text of sentences (column ``query_graph`` of an encoded query).
            document_graph: the same of the document (column ``graph``, as a ``GraphStore`` loads it).
            query_texts: what each row of the query stands for, instead of what the graph says.
            document_texts: the same for the rows of the document.

        Returns:
            One row for each row of the query, and one more where the documents' product counts, the greatest
            contribution first: ``term`` (``MaxSim`` or ``document``), ``query_row``, ``query_kind`` (formula,
            sentence or document), ``query_formula_id``, ``query_text`` (LaTeX, a sentence or the post; empty without
            graph and texts), the same four of the ``document``, ``similarity``, ``weight`` and ``contribution`` (they
            sum to the score).

        Raises:
            UnknownIdError: the index does not hold the document.
            QueryError: the query's vectors or weights do not fit, or a graph is not that of the vectors.
            MissingTextsError: a graph keeps no texts, and none are given.
        """
        snapshot = self.snapshot()
        ids = snapshot.texts("formula_ids", snapshot.find([docno]))[0]
        return explain(
            snapshot,
            query_embs,
            docno,
            query_formula_ids=query_formula_ids,
            document_formula_ids=stored_formula_ids(ids, snapshot.path),
            query_weights=query_weights,
            query_document_weight=query_document_weight,
            query_graph=query_graph,
            document_graph=document_graph,
            query_texts=query_texts,
            document_texts=document_texts,
        )
