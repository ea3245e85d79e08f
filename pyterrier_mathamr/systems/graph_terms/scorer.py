"""The score of given documents by graph terms, and what each term contributes to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import MissingValueError, empty_output, first_values, ordered_by_score
from pyterrier_mathamr._common.parameters import Rule
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.explain import Explanation, QueryRow, read_asked
from pyterrier_mathamr.sparse.documents import contributions, numbers_of
from pyterrier_mathamr.store import Rows

from .explanation import explain_terms
from .fields import OPTIONS, field_weights, sought_terms
from .terms import FIELDS, GraphField, GraphTerms, terms_of_graph

if TYPE_CHECKING:
    from .index import GraphTermsIndex, GraphTermsSnapshot

Contributions = dict[GraphField, tuple[list[str], npt.NDArray[np.float64]]]
"""Of each field the terms, and what each contributes to some documents: float64 ``[m, t]``."""


class GraphTermsScorer(Leaf, Transformer):
    """Scores each document of a ranking by graph terms, whatever found it.

    The rows come back by query (as they come), descending score, ascending docno, with all their columns. A document
    without a term of the query scores 0.

    Args:
        graph_terms_index: the index.
        fields: see :class:`GraphTermsRetriever`, as the other options.
        weights: likewise.
        k1: likewise.
        b: likewise.

    Example::

        bm25 >> mathamr.GraphBuilder() >> graph_terms_index.scorer()
    """

    checks: ClassVar[Mapping[str, Rule]] = OPTIONS
    label = "Graph terms scorer"

    def __init__(
        self,
        graph_terms_index: GraphTermsIndex,
        *,
        fields: Sequence[GraphField] = FIELDS,
        weights: Sequence[float] | None = None,
        k1: float = 2.0,
        b: float = 1.0,
    ) -> None:
        super().__init__()
        self.graph_terms_index, self.fields, self.weights, self.k1, self.b = graph_terms_index, fields, weights, k1, b
        field_weights(fields, weights)  # refuses another number of weights

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno`` and ``query_graph``.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.

        Raises:
            MissingValueError: queries without a graph in any row; it names them.
            UnknownIdError: the index does not hold some of the documents.
        """
        pt.validate.result_frame(inp, extra_columns=["query_graph"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot, graphs = self.graph_terms_index.snapshot(), first_values(inp, "query_graph")
        codes, qids = pd.factorize(inp["qid"])
        if missing := [qid for qid in qids if qid not in graphs]:
            raise MissingValueError("query_graph", "qid", missing)
        scores = np.empty(len(inp))
        for number, qid in enumerate(qids):
            rows = np.flatnonzero(codes == number)
            numbers = numbers_of(snapshot, inp["docno"].iloc[rows].astype(str).tolist())
            shares = self._contributions(snapshot, terms_of_graph(graphs[qid]), numbers)
            scores[rows] = sum(of_terms.sum(axis=1) for _, of_terms in shares.values())
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what formulas, concepts and relations of a query contribute to the score of a document.

        Args:
            query: a row with ``query_graph``, or a frame of one query. With the document's ``graph`` the parts name the
                formula that has most of the terms.
            docno: any document of the index; by default that of the row.

        Raises:
            AskedError: the row has no graph, or no document is named.
            UnknownIdError: the index does not hold the document.
        """
        asked, snapshot = read_asked(query, docno, self.label, ["query_graph"]), self.graph_terms_index.snapshot()
        graph = asked.row["query_graph"]
        terms = terms_of_graph(graph)
        shares = {
            field: {term: share for term, share in zip(known, of_terms[0].tolist(), strict=True) if share}
            for field, (known, of_terms) in self._contributions(
                snapshot, terms, numbers_of(snapshot, [asked.docno])
            ).items()
        }
        return explain_terms(asked, shares, graph, terms)

    def _contributions(self, snapshot: GraphTermsSnapshot, terms: GraphTerms, numbers: Rows) -> Contributions:
        """Compute what each term of a query contributes to the score of some documents."""
        weights = field_weights(self.fields, self.weights)
        return {
            field: (list(known), contributions(postings, of_postings, known, numbers))
            for field, postings, of_postings, known in sought_terms(snapshot, terms, weights, self.k1, self.b)
        }
