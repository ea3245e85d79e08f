"""The strategies of MathAMR+ over a Qdrant collection (section 3.5.2), with the columns of those over a folder.

All of them take ``qid`` and ``query_embs`` (float32 ``[q, d]``) and give the query's columns with ``docno``, ``score``
and ``rank``. Exact search gives the rankings and scores of ``MathAMRIndex``; see :mod:`.search` for why.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from pyterrier_mathamr.index.arrays import Field
from pyterrier_mathamr.index.formula import formula_batch
from pyterrier_mathamr.index.options import IndexRetriever, Search, check_count
from pyterrier_mathamr.index.queries import query_batch
from pyterrier_mathamr.index.search import Hits, rank
from pyterrier_mathamr.index.searched import SearchedIndex

from .search import search
from .snapshot import QdrantSnapshot


class QdrantRetriever(IndexRetriever):
    """Ranks documents by one of the collection's vectors; subclasses say by which.

    Args:
        index: the index.
        num_results: documents for each query.
        search: ``exact``, or ``approximate`` by Qdrant's HNSW.
        hnsw_ef: how broadly the graph is walked in approximate search; the paper's is 128.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries taken at once.
        device: ``None`` or ``cpu``.
    """

    field: ClassVar[Field]
    _search: Search
    hnsw_ef: int
    normalise: bool

    def __init__(
        self,
        index: SearchedIndex,
        *,
        num_results: int = 1000,
        search: Search = "exact",
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        check_count("hnsw_ef", hnsw_ef)
        options = {"num_results": num_results, "search": search, "hnsw_ef": hnsw_ef, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: QdrantSnapshot) -> list[Hits]:
        """The best documents of each distinct query."""
        batch = query_batch(queries, snapshot, normalise=self.normalise)
        qids = list(dict.fromkeys(queries["qid"]))
        return search(snapshot, batch, qids, self.num_results, self.field, self._search, self.hnsw_ef)


class QdrantSingleVectorRetriever(QdrantRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` makes one::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)
    """

    label = "Qdrant single"
    field = "doc"


class QdrantColBERTRetriever(QdrantRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4), by Qdrant's multivector search.

    ``index.colbert()`` makes one, and so does ``index.retriever()``::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)
    """

    label = "Qdrant ColBERT"
    field = "all"


class QdrantDocVNRetriever(QdrantRetriever):
    """Takes candidates by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` makes one::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)

    Args:
        index: the index.
        candidates: documents of the first stage for each query.
        num_results: documents for each query.
        search: how the first stage searches; the second is always exact.
        hnsw_ef: how broadly the graph is walked in approximate search.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries taken at once.
        device: ``None`` or ``cpu``.
    """

    label = "Qdrant doc-VN"
    field = "doc"
    candidates: int

    def __init__(
        self,
        index: SearchedIndex,
        *,
        candidates: int = 5000,
        num_results: int = 1000,
        search: Search = "exact",
        hnsw_ef: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        check_count("candidates", candidates)
        self.candidates = candidates
        options = {"num_results": num_results, "search": search, "hnsw_ef": hnsw_ef, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)  # type: ignore[arg-type]

    def find_hits(self, queries: pd.DataFrame, snapshot: QdrantSnapshot) -> list[Hits]:
        """The best documents of each distinct query among its candidates."""
        batch = query_batch(queries, snapshot, normalise=self.normalise)
        qids = list(dict.fromkeys(queries["qid"]))
        found = search(snapshot, batch, qids, self.candidates, "doc", self._search, self.hnsw_ef)
        return [rank(snapshot, batch.one(i), np.sort(of.numbers), self.num_results) for i, of in enumerate(found)]


class QdrantFormulaRetriever(QdrantRetriever):
    """Ranks formulas by the similarity of their VIRTUAL_FORMULA with that of the query's formula (section 3.5.2).

    ``formula_index.retriever()`` makes one::

        graphs >> model.query_encoder() >> formula_index.retriever(num_results=1000)
    """

    label = "Qdrant formulas"
    field = "doc"
    needs = ("query_embs", "query_formula_ids", "query_formula_id")
    gives = ("docno", "post_id", "visual_id")

    def find_hits(self, queries: pd.DataFrame, snapshot: QdrantSnapshot) -> list[Hits]:
        """The best formulas of each distinct query."""
        batch, qids = formula_batch(queries, snapshot), list(dict.fromkeys(queries["qid"]))
        return search(snapshot, batch, qids, self.num_results, "doc", self._search, self.hnsw_ef)
