"""Searching a BM25 index."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output
from pyterrier_mathamr._common.parameters import ByParameters
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.systems.sparse.ranking import best_first, ranking_frame
from pyterrier_mathamr.systems.sparse.reading import query_post

from .tokens import post_tokens

if TYPE_CHECKING:
    from .index import BM25Index
    from .snapshot import BM25Snapshot

QueryWeights = Literal["log", "linear"]
RESULT_COLUMNS = ("docno", "score", "rank")


class BM25Retriever(ByParameters, pt.Transformer):  # type: ignore[misc]
    """Ranks documents by BM25: queries to ``docno``, ``score``, ``rank``, the query's columns repeated.

    A query is ``title`` and ``body`` where a frame has them, else ``query``: HTML, or text with formulas between
    dollars. Documents with the same score are in order of ``docno``.

    Args:
        bm25_index: the index.
        num_results: at most so many documents for each query.
        k1: at least 0; how slowly repetition in a document saturates.
        b: 0 to 1; how much long documents are discounted.
        query_weights: ``log`` counts a token that stands ``f`` times in the query ``1 + ln f``, ``linear`` ``f``.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        index.retriever(num_results=100) >> encode >> mathamr_index.scorer()
    """

    schematic: ClassVar[dict[str, str]] = {"label": "BM25", "help_url": "https://github.com/xhluca/bm25s"}

    def __init__(
        self,
        bm25_index: BM25Index,
        *,
        num_results: int = 1000,
        k1: float = 2.0,
        b: float = 1.0,
        query_weights: QueryWeights = "log",
        verbose: bool = False,
    ) -> None:
        _check("num_results", num_results, num_results >= 1, "a whole number of at least 1")
        _check("k1", k1, k1 >= 0, "a number of at least 0")
        _check("b", b, 0 <= b <= 1, "a number between 0 and 1")
        _check("query_weights", query_weights, query_weights in ("log", "linear"), "'log' or 'linear'")
        super().__init__()
        self.bm25_index, self.num_results, self.k1, self.b = bm25_index, num_results, float(k1), float(b)
        self.query_weights, self.verbose = query_weights, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with each query.

        Args:
            inp: ``qid`` with ``query``, or with ``title`` and ``body``.

        Returns:
            The columns of ``inp`` with ``docno``, ``score`` (float64, positive, descending for each query) and
            ``rank`` (int64, from 0); no row for a query that shares no token with any document.
        """
        with pt.validate.any(inp, context=self) as validation:
            validation.query_frame(extra_columns=["query"])
            validation.query_frame(extra_columns=["title", "body"])
        queries = inp.drop(columns=[name for name in RESULT_COLUMNS if name in inp.columns])
        if queries.empty:
            return empty_output(queries, RESULT_COLUMNS)
        names, snapshot = list(queries.columns), self.bm25_index.snapshot()
        found = []
        for values in progress(_tuples(queries), "BM25", "q", verbose=self.verbose, total=len(queries)):
            scores = self._scores(snapshot, dict(zip(names, values, strict=True)))
            matching = np.flatnonzero(scores > 0)
            found.append(best_first(matching, scores[matching], self.num_results, snapshot.docnos))
        return ranking_frame(queries, found, docno=snapshot.docnos)

    def _scores(self, snapshot: BM25Snapshot, query: dict[str, Any]) -> npt.NDArray[np.float32]:
        """Score all documents: float32 ``[m]``, 0 without a common token."""
        tokens, terms = Counter(post_tokens(query_post(query), snapshot.tokens)), snapshot.postings.terms
        by_weight: dict[float, list[int]] = defaultdict(list)
        for token, times in sorted(tokens.items()):
            if token in terms:
                by_weight[1 + math.log(times) if self.query_weights == "log" else times].append(terms[token])
        scores = np.zeros(len(snapshot), dtype=np.float32)
        if by_weight:
            engine = snapshot.engine(self.k1, self.b)
            for weight, ids in sorted(by_weight.items()):
                scores += np.float32(weight) * engine.get_scores_from_ids(ids)
        return scores

    def fuse_rank_cutoff(self, k: int) -> BM25Retriever:
        """Search for ``k`` documents in place of cutting the ranking at ``k``.

        Args:
            k: the cutoff that follows this transformer.

        Returns:
            A retriever of ``k`` documents, or this one where it gives no more.
        """
        if k >= self.num_results:
            return self
        fused: BM25Retriever = pt.inspect.transformer_apply_attributes(self, num_results=k)
        return fused


def _tuples(frame: pd.DataFrame) -> Any:
    """Iterate over the rows as plain tuples."""
    return frame.itertuples(index=False, name=None)


def _check(option: str, value: object, good: bool, allowed: str) -> None:
    if not good:
        raise ConfigError(option, value, allowed)
