"""The strategies of MathAMR+ over one index (section 3.5.2): by one vector, in two stages, and ColBERT-style.

All of them take ``qid`` and ``query_embs`` (float32 ``[q, d]``) and give the query's columns with ``docno``, ``score``
and ``rank``. Where the frame has ``query_weights`` (a number for each row) or ``query_document_weight`` (a number a),
MaxSim is S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc, as everywhere in this room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .approximate import document_candidates, token_candidates
from .options import IndexRetriever, Search
from .queries import query_batch
from .scan import QueryBatch
from .search import Hits, rank, search_exact
from .snapshot import Snapshot

if TYPE_CHECKING:
    from .multi import MathAMRIndex

NO_HITS = Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))


class SingleVectorRetriever(IndexRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` makes one::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)

    Args:
        index: the index.
        num_results: documents for each query.
        search: ``exact``, or ``approximate`` by HNSW.
        verbose: show a progress bar.
        batch_size: queries scored in one pass over the data.
        device: accepted as everywhere; the processor computes this.
    """

    label = "MathAMR single"
    _search: Search

    def __init__(
        self,
        index: MathAMRIndex,
        *,
        num_results: int = 1000,
        search: Search = "exact",
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        options = {"num_results": num_results, "search": search, "verbose": verbose}
        super().__init__(index, **options, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: Snapshot) -> list[Hits]:
        """The best documents of each distinct query by one vector."""
        return nearest(snapshot, query_batch(queries, snapshot), self.num_results, self._search)


def nearest(snapshot: Snapshot, queries: QueryBatch, k: int, search: Search) -> list[Hits]:
    """The ``k`` entries whose own vector is nearest to each query's last row.

    Args:
        snapshot: the index, of documents or formulas.
        queries: the queries.
        k: how many, at least 1.
        search: ``exact``, or ``approximate`` by HNSW.
    """
    if not len(snapshot):
        return [NO_HITS] * len(queries)
    if search == "exact":
        return search_exact(snapshot, queries, k, "doc")
    queries = queries.last_rows()
    found = document_candidates(snapshot, queries, k)
    return [rank(snapshot, queries.one(i), of, k, "doc") for i, of in enumerate(found)]


class DocVNRetriever(IndexRetriever):
    """Takes candidates by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` makes one::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)

    Args:
        index: the index.
        candidates: documents of the first stage for each query; never fewer than ``num_results``.
        num_results: documents for each query.
        search: how the first stage searches, ``exact`` or ``approximate`` by HNSW; the second is always exact.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries scored in one pass over the data.
        device: accepted as everywhere; the processor computes this.
    """

    label = "MathAMR doc-VN"
    candidates: int
    _search: Search
    normalise: bool

    def __init__(
        self,
        index: MathAMRIndex,
        *,
        candidates: int = 5000,
        num_results: int = 1000,
        search: Search = "exact",
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        options = {"candidates": candidates, "num_results": num_results, "search": search, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: Snapshot) -> list[Hits]:
        """The best documents of each distinct query among its candidates."""
        batch = query_batch(queries, snapshot, normalise=self.normalise)
        if not len(snapshot):
            return [NO_HITS] * len(batch)
        if self._search == "exact":
            found = [hits.numbers for hits in search_exact(snapshot, batch, self.candidates, "doc")]
        else:
            found = document_candidates(snapshot, batch, self.candidates)
        return [rank(snapshot, batch.one(i), np.sort(of), self.num_results) for i, of in enumerate(found)]


class ColBERTRetriever(IndexRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4): all of them, or those that some row finds.

    ``index.colbert()`` makes one, and so does ``index.retriever()``::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)

    Args:
        index: the index.
        num_results: documents for each query.
        search: ``exact`` scans every document; ``approximate`` scores those that own one of the nearest rows.
        hits: the nearest rows taken for each row of the query in approximate search.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries scored in one pass over the data.
        device: ``cuda`` for a card that keeps the bytes and scans them; else the processor.
    """

    label = "MathAMR ColBERT"
    _search: Search
    hits: int
    normalise: bool

    def __init__(
        self,
        index: MathAMRIndex,
        *,
        num_results: int = 1000,
        search: Search = "exact",
        hits: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        options = {"num_results": num_results, "search": search, "hits": hits, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)

    def find_hits(self, queries: pd.DataFrame, snapshot: Snapshot) -> list[Hits]:
        """The best documents of each distinct query by MaxSim."""
        batch = query_batch(queries, snapshot, normalise=self.normalise)
        if not len(snapshot):
            return [NO_HITS] * len(batch)
        if self._search == "exact":
            return search_exact(snapshot, batch, self.num_results, "all", self._card)
        found = token_candidates(snapshot, batch, self.hits)
        return [rank(snapshot, batch.one(i), of, self.num_results) for i, of in enumerate(found)]
