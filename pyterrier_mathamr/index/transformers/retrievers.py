"""The retrievers of MathAMR+ (section 3.5.2): queries in, a ranking out.

A query goes one way, each step one function::

    transform   read      frame → QueryBatch                  search.queries
                select    → candidates of each query          search.exact, search.approximate
                rank      → exact scores, best k              search.ranking
                ranking   → frame with docno, score, rank
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import distinct_queries, empty_output, ranking_frame
from pyterrier_mathamr._common.running.resources import return_free_memory
from pyterrier_mathamr.index.explain import Explaining
from pyterrier_mathamr.index.protocols import Field, Numbers, SearchableIndex, SearchableSnapshot
from pyterrier_mathamr.index.search.approximate import document_candidates, token_candidates
from pyterrier_mathamr.index.search.exact import select
from pyterrier_mathamr.index.search.queries import QueryBatch, formula_batch, query_batch
from pyterrier_mathamr.index.search.ranking import NO_HITS, Hits, rank

from .options import IndexTransformer, Search, check_device, search_of

if TYPE_CHECKING:
    from pyterrier_mathamr.index.snapshot import Snapshot


_MANY = 32
"""Queries in one call after which free memory goes back to the system; for few it takes longer than they leave."""


class IndexRetriever(Explaining, IndexTransformer):
    """Queries in, a ranking out; subclasses select candidates and say by which vectors these are ranked.

    The ranking keeps the columns of the queries and is ordered by query (in order of appearance), then by score
    descending, then by docno ascending; ``rank`` starts at 0 and ``score`` has the precision of float32.

    Args:
        index: the index.
        num_results: documents for each query at most.
        exact: ``True`` for exact search (the default), ``False`` for approximate search by HNSW.
        search: the same by name: ``exact`` or ``approximate``.
        verbose: show a progress bar.
        batch_size: queries that share passes over the data.
        device: ``cuda`` for a GPU that stores and scans the int8 codes, which only ``colbert`` uses; default the CPU.
    """

    needs: ClassVar[tuple[str, ...]] = ("query_embs",)
    gives: ClassVar[tuple[str, ...]] = ("docno",)
    """The texts of an entry that become columns."""
    field: ClassVar[Field] = "all"
    """The vectors that candidates are ranked by."""
    _search: Search

    def __init__(
        self,
        index: SearchableIndex,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        super().__init__(index)
        self.num_results, self._search, self._exact = num_results, search_of(exact, search), None
        self.verbose, self.batch_size, self.device = verbose, batch_size, device

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank documents for each distinct query.

        Args:
            inp: ``qid`` and the columns of :attr:`needs`.

        Returns:
            The columns of the queries, then ``docno`` (and the other columns of :attr:`gives`), ``score``, ``rank``.
        """
        pt.validate.query_frame(inp, extra_columns=list(self.needs), context=self)
        columns = [*self.gives, "score", "rank"]
        queries = distinct_queries(inp, columns)
        if queries.empty:
            return empty_output(queries, columns)
        snapshot = self.index.snapshot()
        batches = self.read(queries, snapshot).of_size(self.batch_size)
        hits: dict[str, Hits] = {}
        for batch in progress(batches, self.label, "batches", verbose=self.verbose):
            hits.update(zip(batch.qids, self.find(batch, snapshot), strict=True))
        found = ranking(queries, hits, snapshot, self.gives)
        if len(queries) >= _MANY:
            return_free_memory()
        return found

    def read(self, queries: pd.DataFrame, snapshot: SearchableSnapshot) -> QueryBatch:
        """Read the vectors of all distinct queries."""
        return query_batch(queries, snapshot, normalise=getattr(self, "normalise", False))

    def find(self, queries: QueryBatch, snapshot: Any) -> list[Hits]:
        """Find the best documents of each query."""
        ones = map(queries.one, range(len(queries)))
        selected = zip(ones, self.select(queries, snapshot), strict=True)
        return [rank(snapshot, query, numbers, self.num_results, self.field) for query, numbers in selected]

    def select(self, queries: QueryBatch, snapshot: Snapshot) -> list[Numbers]:
        """Select the candidates of each query: int64 numbers, ascending."""
        raise NotImplementedError

    def _nearest(self, queries: QueryBatch, snapshot: Snapshot, k: int) -> list[Numbers]:
        """Select the documents (or formulas) whose own vector is nearest to each query's last row."""
        if self._search == "approximate":
            return document_candidates(snapshot, queries, k)
        return select(snapshot, queries, k, "doc")


class SingleVectorRetriever(IndexRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` constructs one; the options are those of :class:`IndexRetriever`.

    Example::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)
    """

    label = "MathAMR single"
    field = "doc"

    def select(self, queries: QueryBatch, snapshot: Snapshot) -> list[Numbers]:
        """Select by the product of the document vectors."""
        return self._nearest(queries, snapshot, self.num_results)


class FormulaRetriever(SingleVectorRetriever):
    """Ranks formulas by the similarity of their VIRTUAL_FORMULA with that of the query's formula (section 3.5.2).

    The query's vector is the row of ``query_embs`` at the place of ``query_formula_id`` in ``query_formula_ids``.
    ``formula_index.retriever()`` constructs one; the options are those of :class:`IndexRetriever`.

    Example::

        graphs >> model.query_encoder() >> formula_index.retriever(num_results=1000)
    """

    label = "MathAMR formulas"
    needs = ("query_embs", "query_formula_ids", "query_formula_id")
    gives = ("docno", "post_id", "visual_id")

    def read(self, queries: pd.DataFrame, snapshot: SearchableSnapshot) -> QueryBatch:
        """Read the vector of the formula that each distinct query asks for."""
        return formula_batch(queries, snapshot)


class DocVNRetriever(IndexRetriever):
    """Selects candidates by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` constructs one.

    Example::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)

    Args:
        index: the index.
        candidates: documents of the first stage for each query, which ``exact`` and ``search`` are about; the second
            is always exact.
        num_results: and the others, as for :class:`IndexRetriever`.
        normalise: divide scores by the query's number of rows (eq. 3.7).
    """

    label = "MathAMR doc-VN"

    def __init__(
        self,
        index: SearchableIndex,
        candidates: int = 5000,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        shared: dict[str, Any] = {"verbose": verbose, "batch_size": batch_size, "device": device}
        super().__init__(index, num_results=num_results, exact=exact, search=search, **shared)
        self.candidates, self.normalise = candidates, normalise

    def select(self, queries: QueryBatch, snapshot: Snapshot) -> list[Numbers]:
        """Select the best by the product of the document vectors."""
        nearest = self._nearest(queries, snapshot, self.candidates)
        if self._search == "exact":  # those that are proven to contain the best; ranked, the best alone
            of_query = (rank(snapshot, queries.one(i), of, self.candidates, "doc") for i, of in enumerate(nearest))
            nearest = [np.sort(hits.numbers) for hits in of_query]
        return nearest


class ColBERTRetriever(IndexRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4).

    ``index.colbert()`` constructs one, and so does ``index.retriever()``.

    Example::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)

    Args:
        index: the index.
        num_results: and the others, as for :class:`IndexRetriever`. Exact search scans every document; approximate
            search scores the documents that own one of the nearest rows.
        hits: the nearest rows found for each row of the query in approximate search.
        normalise: divide scores by the query's number of rows (eq. 3.7).
    """

    label = "MathAMR ColBERT"

    def __init__(
        self,
        index: SearchableIndex,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        hits: int = 128,
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        shared: dict[str, Any] = {"verbose": verbose, "batch_size": batch_size, "device": device}
        super().__init__(index, num_results=num_results, exact=exact, search=search, **shared)
        self.hits, self.normalise = hits, normalise

    def select(self, queries: QueryBatch, snapshot: Snapshot) -> list[Numbers]:
        """Select by the scan of all documents, or by HNSW over all rows."""
        if self._search == "approximate":
            return token_candidates(snapshot, queries, self.hits)
        return select(snapshot, queries, self.num_results, "all", check_device(self.device))


def ranking(
    queries: pd.DataFrame, hits: Mapping[str, Hits], snapshot: SearchableSnapshot, texts: Sequence[str]
) -> pd.DataFrame:
    """Lay the hits of all queries out as one frame."""
    found = [hits.get(qid, NO_HITS) for qid in queries["qid"]]
    columns = {name: partial(snapshot.texts, name) for name in texts}
    return ranking_frame(queries, [(of.numbers, of.scores) for of in found], **columns)
