"""Query expansion by pseudo-relevance feedback: RM3 with Terrier's formula and parameters.

::

    ranking ──best fb_docs──▶ p(w|R) = Σ_d p(d) · count(w, d) / |d|,  p(d) ∝ exp(score of d)
                                   │ best fb_terms, scaled to sum to 1
    query ──weights, scaled──▶ λ · q(w) + (1 − λ) · p(w|R)  ──query_toks──▶ BM25

As in Terrier, only terms are added that occur in at least two documents and in less than a tenth of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import empty_output, ordered_by_score, with_objects
from pyterrier_mathamr._common.parameters import COUNT, FRACTION, Rule
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.posts.topics import distinct_queries, with_query
from pyterrier_mathamr.store import Rows

from .bm25_search import INPUTS, read_query
from .postings import Postings

if TYPE_CHECKING:
    from .bm25 import BM25Index

_LEAST, _SHARE = 2, 0.1  # documents that contain a term: Terrier's prf.mindf and prf.maxdp


class RM3(Leaf, Transformer):
    """Expands queries with terms of the best documents of a ranking (RM3), for a second search by BM25.

    ``query_toks`` has the expanded query: token to weight. BM25, like PyTerrier's retrievers, reads it instead of the
    text. The text stays for encoders and is in ``query_0``, too: ``pt.rewrite.reset()`` may follow, as after Terrier's
    RM3. All postings are read once for a frame of queries.

    Args:
        bm25_index: the index that counts terms.
        fb_terms: terms that are taken from the documents.
        fb_docs: documents of the ranking that are read, the best ones.
        fb_lambda: the weight of the original query; the terms of the documents have the rest.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        bm25 = bm25_index.retriever()
        bm25 >> bm25_index.rm3(fb_terms=10, fb_docs=3) >> bm25
    """

    label, help_url = "RM3", "https://trec.nist.gov/pubs/trec13/papers/umass.novelty.hard.pdf"
    checks: ClassVar[Mapping[str, Rule]] = {"fb_terms": COUNT, "fb_docs": COUNT, "fb_lambda": FRACTION}

    def __init__(self, bm25_index: BM25Index, *, fb_terms: int = 10, fb_docs: int = 3, fb_lambda: float = 0.6) -> None:
        super().__init__()
        self.bm25_index, self.fb_terms, self.fb_docs, self.fb_lambda = bm25_index, fb_terms, fb_docs, fb_lambda

    def compile(self, verbose: bool = False) -> pt.Transformer:
        """Return this stage after a cutoff at the documents that it reads."""
        return pt.RankCutoff(self.fb_docs) >> self

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Expand the query of each ranking.

        Args:
            inp: a ranking with ``score``, and a query in each form that BM25 reads.

        Returns:
            A row for each query, with its columns, ``query_0`` and ``query_toks``.

        Raises:
            UnknownIdError: the index does not contain some of the documents.
        """
        with pt.validate.any(inp, context=self) as validation:
            for columns in INPUTS:
                validation.result_frame(extra_columns=["score", *columns])
        queries = with_query(distinct_queries(inp, ["docno", "score", "rank"]))
        pushed = pt.model.push_queries(queries, keep_original=True) if "query" in queries else queries
        if queries.empty:
            return empty_output(pushed, ["query_toks"])
        snapshot = self.bm25_index.snapshot()
        ranked = ordered_by_score(inp[["qid", "docno"]], inp["score"])
        best = ranked[ranked["rank"] < self.fb_docs]
        numbers, scores = snapshot.rows_of(list(map(str, best["docno"]))), best["score"].to_numpy(dtype=np.float64)
        hits, rows = snapshot.postings.of_documents(numbers), best.groupby("qid", sort=False).indices
        weigh, expanded = self.bm25_index.scorer().tokens_of, []
        for query in queries.to_dict("records"):
            of_query = rows[query["qid"]]
            read, read_scores = numbers[of_query], scores[of_query]
            tokens = weigh(read_query(query, snapshot), snapshot)
            total = sum(tokens.given.values()) or 1.0  # weights that cancel each other stay as they are
            weights = {token: self.fb_lambda * weight / total for token, weight in tokens.weights.items()}
            for token, share in _relevance(snapshot.postings, hits, read, read_scores, self.fb_terms).items():
                weights[token] = weights.get(token, 0.0) + (1 - self.fb_lambda) * share
            expanded.append(weights)
        return with_objects(pushed, query_toks=expanded)


def _relevance(
    postings: Postings, hits: tuple[Rows, Rows, Rows], documents: Rows, scores: npt.NDArray[np.float64], count: int
) -> dict[str, float]:
    """Estimate p(w|R) of the best terms from documents whose postings were found, ties by term."""
    shares = np.exp(scores - scores.max()) / np.maximum(postings.lengths[documents], 1)
    places = [slice(*np.searchsorted(hits[0], (number, number + 1))) for number in documents.tolist()]
    terms, of_posting = np.unique(np.concatenate([hits[1][rows] for rows in places]), return_inverse=True)
    masses = np.concatenate([share * hits[2][rows] for share, rows in zip(shares, places, strict=True)])
    relevance = np.bincount(of_posting, masses, len(terms))
    contained = postings.offsets[terms + 1] - postings.offsets[terms]
    usual = np.flatnonzero((contained >= _LEAST) & (contained < int(_SHARE * len(postings.lengths))))
    best = usual[np.argsort(-relevance[usual], kind="stable")[:count]]
    names = postings.names.take(terms[best])
    return dict(zip(names, (relevance[best] / relevance[best].sum()).tolist(), strict=True))
