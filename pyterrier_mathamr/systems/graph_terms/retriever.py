"""Searching an index of graph terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import MissingValueError, first_values, ranking_frame
from pyterrier_mathamr._common.parameters import Rule
from pyterrier_mathamr.explain import Explanation, QueryRow
from pyterrier_mathamr.sparse.ranking import SparseRetriever, best_first

from .fields import OPTIONS, field_weights, sought_terms
from .terms import FIELDS, GraphField, terms_of_graph

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import MathAMRGraph

    from .index import GraphTermsIndex, GraphTermsSnapshot
    from .scorer import GraphTermsScorer


class GraphTermsRetriever(SparseRetriever):
    """Ranks documents by the terms that their graphs share with that of a query: ``query_graph`` to a ranking.

    The score is the weighted sum of BM25 within each field. Documents with the same score are in order of ``docno``; a
    graph without a known term, such as that of a blank query, finds nothing.

    Args:
        graph_terms_index: the index.
        num_results: the number of documents for each query; those without a common term are left out.
        fields: the kinds of terms that are searched.
        weights: of each of the fields, 0 or more; ``None`` for 1.
        k1: at least 0; how slowly repetition in a document saturates.
        b: 0 to 1; how much long documents are discounted.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range, or there are not as many weights as fields.

    Example::

        mathamr.GraphBuilder() >> graph_terms_index.retriever(fields=["edges", "concepts"], weights=[1, 0.5])
    """

    label = "Graph terms"
    inputs = (("query_graph",),)
    outputs = ("docno", "score", "rank")
    checks: ClassVar[Mapping[str, Rule]] = {**SparseRetriever.checks, **OPTIONS}

    def __init__(
        self,
        graph_terms_index: GraphTermsIndex,
        num_results: int = 1000,
        *,
        fields: Sequence[GraphField] = FIELDS,
        weights: Sequence[float] | None = None,
        k1: float = 2.0,
        b: float = 1.0,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.graph_terms_index, self.num_results, self.fields, self.weights = (
            graph_terms_index,
            num_results,
            fields,
            weights,
        )
        self.k1, self.b, self.verbose = k1, b, verbose
        field_weights(fields, weights)  # refuses another number of weights

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row.

        Raises:
            MissingValueError: queries without a graph; it names them.
        """
        snapshot, graphs = self.graph_terms_index.snapshot(), first_values(queries, "query_graph")
        if missing := [qid for qid in queries["qid"] if qid not in graphs]:
            raise MissingValueError("query_graph", "qid", missing)
        found = []
        for graph in progress(list(graphs.values()), self.label, "queries", verbose=self.verbose):
            scores = self.scores(snapshot, graph)
            matching = np.flatnonzero(scores > 0)
            found.append(best_first(matching, scores[matching], self.num_results, snapshot.docnos))
        return ranking_frame(queries, found, docno=snapshot.docnos)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what formulas, concepts and relations contribute to a score; see :meth:`GraphTermsScorer.explain`."""
        return self.scorer().explain(query, docno)

    def scorer(self) -> GraphTermsScorer:
        """Return the scorer with the same options."""
        options: dict[str, Any] = {"fields": self.fields, "weights": self.weights, "k1": self.k1, "b": self.b}
        return self.graph_terms_index.scorer(**options)

    def scores(self, snapshot: GraphTermsSnapshot, graph: MathAMRGraph) -> npt.NDArray[np.float64]:
        """Score all documents of an index for one query: float64 ``[m]``, 0 without a common term."""
        scores = np.zeros(len(snapshot))
        weights = field_weights(self.fields, self.weights)
        for _, postings, of_postings, terms in sought_terms(snapshot, terms_of_graph(graph), weights, self.k1, self.b):
            for term, weight in terms.items():
                number = postings.terms[term]
                here = slice(postings.offsets[number], postings.offsets[number + 1])
                scores[postings.documents[here]] += np.multiply(of_postings[here], weight, dtype=np.float64)
        return scores
