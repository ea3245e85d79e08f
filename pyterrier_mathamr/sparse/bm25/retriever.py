"""Searching a BM25 index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import ranking_frame
from pyterrier_mathamr._common.parameters import Rule
from pyterrier_mathamr.explain import Explanation, QueryRow
from pyterrier_mathamr.sparse.ranking import SparseRetriever, best_first
from pyterrier_mathamr.sparse.reading import warn_of_queries

from .scorer import query_terms
from .weighting import OPTIONS, QueryWeights, Scheme, Weighting

if TYPE_CHECKING:
    from pyterrier_mathamr.posts import MathPost

    from .index import BM25Index, BM25Snapshot
    from .scorer import BM25Scorer


class BM25Retriever(SparseRetriever):
    """Ranks documents by BM25: queries to ``docno``, ``score``, ``rank``, with the query's columns.

    A query is ``title`` and ``body`` where a frame has them, else ``query``: HTML, or text with formulas between
    dollars. Documents with the same score are in order of ``docno``. A blank query finds nothing, with a warning.

    Args:
        bm25_index: the index.
        num_results: the number of documents for each query; those without a common token are left out.
        k1: at least 0; how slowly repetition in a document saturates. ``None`` for 2, with TF-IDF 1.2.
        b: 0 to 1; how much long documents are discounted. ``None`` for 1, with TF-IDF .75.
        query_weights: the weight of a token that occurs ``f`` times in the query: ``1 + ln f`` (``log``), since posts
            as queries repeat themselves, or ``f`` (``linear``). ``None`` for ``log``, with TF-IDF ``linear``.
        delta: of BM25+ (Lv and Zhai, CIKM 2011), at least 0, 1 there; ``None`` for BM25.
        weighting: ``"tf-idf"`` for Terrier's TF-IDF, the baseline of ARQMath; its index has ``PLAIN_TOKENS``. One index
            serves all weightings, since it keeps counts.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range, or TF-IDF has a delta.

    Example::

        index.retriever(num_results=100) >> encode >> mathamr_index.scorer()
    """

    label, help_url = "BM25", "https://github.com/xhluca/bm25s"
    inputs = (("query",), ("title", "body"))
    outputs = ("docno", "score", "rank")
    checks: ClassVar[Mapping[str, Rule]] = {**SparseRetriever.checks, **OPTIONS}

    def __init__(
        self,
        bm25_index: BM25Index,
        num_results: int = 1000,
        *,
        k1: float | None = None,
        b: float | None = None,
        query_weights: QueryWeights | None = None,
        delta: float | None = None,
        weighting: Scheme = "bm25",
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.bm25_index, self.num_results, self.k1, self.b = bm25_index, num_results, k1, b
        self.query_weights, self.delta, self.weighting, self.verbose = query_weights, delta, weighting, verbose
        self.settings()  # refuses a delta of TF-IDF

    def settings(self) -> Weighting:
        """Return the options with their defaults."""
        return Weighting.of(self.weighting, self.k1, self.b, self.query_weights, self.delta)

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row."""
        snapshot = self.bm25_index.snapshot()
        posts = [snapshot.read_query(row) for row in queries.to_dict("records")]
        blank = [qid for qid, post in zip(queries["qid"], posts, strict=True) if not post.text.strip()]
        warn_of_queries(blank, "they are blank", "Give each a text in `query`, or in `title` and `body`.")
        found = []
        for post in progress(posts, "BM25", "queries", verbose=self.verbose):
            scores = self.scores(snapshot, post)
            matching = np.flatnonzero(scores > 0)
            found.append(best_first(matching, scores[matching], self.num_results, snapshot.docnos))
        return ranking_frame(queries, found, docno=snapshot.docnos)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each word and formula of a query contributes to a score; see :meth:`BM25Scorer.explain`."""
        return self.scorer().explain(query, docno)

    def scorer(self) -> BM25Scorer:
        """Return the scorer with the same options."""
        options: dict[str, Any] = {
            "query_weights": self.query_weights,
            "delta": self.delta,
            "weighting": self.weighting,
        }
        return self.bm25_index.scorer(k1=self.k1, b=self.b, **options)

    def scores(self, snapshot: BM25Snapshot, post: MathPost) -> npt.NDArray[np.float32]:
        """Score all documents of an index for one query: float32 ``[m]``, 0 without a common token."""
        weighting = self.settings()
        by_weight: dict[float, list[int]] = defaultdict(list)
        for token, weight in query_terms(snapshot, post, weighting.query_weights).items():
            by_weight[weight].append(snapshot.postings.terms[token])
        scores = np.zeros(len(snapshot), dtype=np.float32)
        if by_weight:
            engine = snapshot.engine(weighting, chain.from_iterable(by_weight.values()))
            for weight, ids in sorted(by_weight.items()):
                scores += np.float32(weight) * engine.get_scores_from_ids(ids)
        return scores
