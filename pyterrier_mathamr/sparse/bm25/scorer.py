"""BM25 of given documents, and what each token contributes to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import distinct_queries, empty_output, is_missing, ordered_by_score
from pyterrier_mathamr._common.parameters import Rule
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.explain import AskedError, Explanation, QueryRow, read_asked
from pyterrier_mathamr.sparse.documents import contributions, numbers_of

from .explanation import explain_tokens
from .tokens import post_tokens
from .weighting import OPTIONS, QueryWeights, Scheme, Weighting

if TYPE_CHECKING:
    from pyterrier_mathamr.posts import MathPost

    from .index import BM25Index, BM25Snapshot


class BM25Scorer(Leaf, Transformer):
    """Scores each document of a ranking by BM25, whatever found it.

    The rows come back by query (as they come), descending score, ascending docno, with all their columns. A document
    without a token of the query scores 0.

    Args:
        bm25_index: the index.
        k1: see :class:`BM25Retriever`, as the other options.
        b: likewise.
        query_weights: likewise.
        delta: likewise.
        weighting: likewise.

    Example::

        graphs >> model.query_encoder() >> index.colbert() >> bm25_index.scorer()
    """

    checks: ClassVar[Mapping[str, Rule]] = OPTIONS
    label = "BM25 scorer"

    def __init__(
        self,
        bm25_index: BM25Index,
        *,
        k1: float | None = None,
        b: float | None = None,
        query_weights: QueryWeights | None = None,
        delta: float | None = None,
        weighting: Scheme = "bm25",
    ) -> None:
        super().__init__()
        self.bm25_index, self.k1, self.b = bm25_index, k1, b
        self.query_weights, self.delta, self.weighting = query_weights, delta, weighting
        self.settings()  # refuses a delta of TF-IDF

    def settings(self) -> Weighting:
        """Return the options with their defaults."""
        return Weighting.of(self.weighting, self.k1, self.b, self.query_weights, self.delta)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking."""
        with pt.validate.any(inp, context=self) as validation:
            validation.result_frame(extra_columns=["query"])
            validation.result_frame(extra_columns=["title", "body"])
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot = self.bm25_index.snapshot()
        codes, _ = pd.factorize(inp["qid"])
        scores = np.empty(len(inp))
        for number, query in enumerate(distinct_queries(inp).to_dict("records")):
            rows = np.flatnonzero(codes == number)
            terms = query_terms(snapshot, snapshot.read_query(query), self.settings().query_weights)
            numbers = numbers_of(snapshot, inp["docno"].iloc[rows].astype(str).tolist())
            scores[rows] = self._contributions(snapshot, terms, numbers).sum(axis=1)
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each word and the symbols of each formula of a query contribute to the score of a document."""
        asked = read_asked(query, docno, self.label)
        if all(is_missing(asked.row.get(name)) for name in ("query", "title", "body")):
            raise AskedError(self.label, "the row has no query", "Give it `query`, or `title` and `body`.")
        snapshot = self.bm25_index.snapshot()
        post, options = snapshot.read_query(asked.row), snapshot.tokens
        return explain_tokens(asked.docno, self.shares(post, asked.docno), post, asked.document_reading(), options)

    def shares(self, query: MathPost, docno: str) -> dict[str, float]:
        """Compute what each token of a query contributes to the score of a document, where it is not zero."""
        snapshot = self.bm25_index.snapshot()
        terms = query_terms(snapshot, query, self.settings().query_weights)
        shares = self._contributions(snapshot, terms, numbers_of(snapshot, [docno]))[0]
        return {token: share for token, share in zip(terms, shares.tolist(), strict=True) if share}

    def greatest_score(self, query: MathPost) -> float:
        """Bound the score of a query: that of a document which repeats each of its tokens without end."""
        snapshot = self.bm25_index.snapshot()
        terms = query_terms(snapshot, query, self.settings().query_weights)
        if not terms:
            return 0.0
        postings, weighting = snapshot.postings, self.settings()
        numbers = np.array([postings.terms[token] for token in terms], dtype=np.int64)
        return weighting.most * float(np.dot(weighting.rarity(postings, numbers), list(terms.values())))

    def _contributions(
        self, snapshot: BM25Snapshot, terms: Mapping[str, float], numbers: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Compute what each token of a query contributes to the score of some documents."""
        postings = snapshot.postings
        weights = snapshot.weights(self.settings(), [postings.terms[token] for token in terms])
        return contributions(postings, weights, terms, numbers)


def query_terms(snapshot: BM25Snapshot, post: MathPost, weights: QueryWeights) -> dict[str, float]:
    """Weigh the tokens of a query that the index has."""
    tokens, terms = Counter(post_tokens(post, snapshot.tokens)), snapshot.postings.terms
    return {
        token: 1 + math.log(times) if weights == "log" else float(times)
        for token, times in sorted(tokens.items())
        if token in terms
    }
