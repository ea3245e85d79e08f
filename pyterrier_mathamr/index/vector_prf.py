"""Pseudo-relevance feedback over the rows of documents, as ColBERT-PRF (Wang et al., ICTIR 2021).

::

    ranking ──best fb_docs──▶ their rows ──k-means──▶ centers ──document frequency──▶ the rarest fb_embs
                                                                                           │ weight β · idf
    query_embs  [q₁ … | centers | document]      query_weights  [1 … | β · idf … | 1]   ◀──┘

ColBERT-PRF counts the documents that contain the token nearest to a center. Rows of other models belong to no token, so
a document contains a center here if one of its rows is about as similar to it (:data:`SIMILAR`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import empty_output, ordered_by_score, with_objects
from pyterrier_mathamr._common.parameters import COUNT, Rule, between
from pyterrier_mathamr.posts.topics import distinct_queries, with_query

from .backend import Backend, Numbers, Rows, Weights, blocks, query_batch
from .search.maxsim import BLOCK_ROWS
from .transformers import IndexTransformer

SIMILAR = 0.8  # the product of a center with the best row of a document from which the document contains it
SAMPLE = 1000  # documents that document frequencies are counted in: all of a small index, else as many, evenly spread
_ROUNDS = 20  # of k-means


class VectorPRF(IndexTransformer):
    """Expands queries with rows of the best documents of a ranking (ColBERT-PRF), for a second search by MaxSim.

    The rows of these documents are clustered. The centers that the fewest documents contain become rows of
    ``query_embs``, before the last one, with the weight β · ln((n + 1) / (df + 1)) in ``query_weights``: df of n
    documents contain the center. Nothing is encoded, and the same ranking gives the same rows. ``index.prf()``
    constructs one.

    Example::

        colbert = index.colbert()
        encode >> colbert >> index.prf(fb_docs=3) >> colbert

    Args:
        index: the index.
        fb_docs: documents of the ranking that are read, the best ones.
        fb_clusters: clusters of their rows.
        fb_embs: centers that are added.
        fb_beta: β, the weight of what is added; 1 in the paper.
        batch_size: queries expanded together; the results are the same.
    """

    label = "MathAMR PRF"
    checks: ClassVar[Mapping[str, Rule]] = {
        **IndexTransformer.checks,
        **dict.fromkeys(("fb_docs", "fb_clusters", "fb_embs"), COUNT),
        "fb_beta": between(0),
    }

    def __init__(
        self,
        index: Any,
        *,
        fb_docs: int = 3,
        fb_clusters: int = 24,
        fb_embs: int = 10,
        fb_beta: float = 0.05,
        batch_size: int = 128,
    ) -> None:
        super().__init__(index)
        self.fb_docs, self.fb_clusters, self.fb_embs, self.fb_beta = fb_docs, fb_clusters, fb_embs, fb_beta
        self.batch_size = batch_size

    def compile(self, verbose: bool = False) -> pt.Transformer:
        """Return this stage after a cutoff at the documents that it reads."""
        return pt.RankCutoff(self.fb_docs) >> self

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Queries are not cut off."""
        return None

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Expand the rows of each query.

        Args:
            inp: ``qid``, ``docno``, ``score`` and ``query_embs``; cells of ``query_embs`` may be empty on some rows of
                a query.

        Returns:
            A row for each query with its columns, except ``query_graph``, whose nodes the rows are no longer, with new
            ``query_embs`` and ``query_weights``.

        Raises:
            UnknownIdError: the index does not contain some of the documents that are read.
        """
        pt.validate.result_frame(inp, extra_columns=["score", "query_embs"], context=self)
        queries = with_query(distinct_queries(inp, ["docno", "score", "rank", "query_graph"]))
        if queries.empty:
            return empty_output(queries, ["query_weights"])
        backend: Backend = self.index.snapshot()
        ranked = ordered_by_score(inp[["qid", "docno"]], inp["score"])
        best = ranked[ranked["rank"] < self.fb_docs].groupby("qid", sort=False)["docno"].agg(list)
        sample = backend.rows(backend.sample(SAMPLE))
        embs: dict[str, Rows] = {}
        weights: dict[str, Weights] = {}
        for batch in query_batch(inp, backend).of_size(self.batch_size):
            documents = [backend.find(list(map(str, best[qid]))) for qid in batch.qids]
            centers = [cluster_centers(backend.rows(numbers)[0], self.fb_clusters) for numbers in documents]
            frequencies = document_frequencies(np.concatenate(centers), *sample)
            rarity = np.log(len(sample[1]) / (frequencies + 1))  # of n + 1: there is an offset more than documents
            ends = np.cumsum([len(of_query) for of_query in centers])[:-1]
            for query, of_query, rare in zip(batch.of_size(1), centers, np.split(rarity, ends), strict=True):
                rarest = np.argsort(-rare, kind="stable")[: self.fb_embs]
                last, known = len(query.rows) - 1, np.ones(len(query.rows)) if query.weights is None else query.weights
                rows = query.rows[:last], of_query[rarest], query.rows[last:]  # the document's row stays the last
                embs[query.qids[0]] = np.concatenate(rows)
                weights[query.qids[0]] = np.concatenate([known[:last], self.fb_beta * rare[rarest], known[last:]])
        nothing = np.empty((0, backend.meta.dimensions), dtype=np.float32)
        return with_objects(
            queries,
            query_embs=[embs.get(qid, nothing) for qid in queries["qid"]],
            query_weights=[weights.get(qid, np.empty(0)) for qid in queries["qid"]],
        )


def document_frequencies(centers: Rows, rows: Rows, offsets: Numbers) -> Numbers:
    """Count the documents with a row that is similar to each center: int64 ``[c]``."""
    counts = np.zeros(len(centers), dtype=np.int64)
    for first, last in blocks(offsets, BLOCK_ROWS):
        products = rows[offsets[first] : offsets[last]] @ centers.T
        best = np.maximum.reduceat(products, offsets[first:last] - offsets[first], axis=0)
        counts += np.count_nonzero(best >= SIMILAR, axis=0)
    return counts


def cluster_centers(rows: Rows, count: int) -> Rows:
    """Cluster unit rows by spherical k-means that begins with rows far from each other; the largest clusters first.

    Args:
        rows: float32 ``[r, d]``.
        count: clusters at most; there are no more than distinct rows.

    Returns:
        Unit rows, float32 ``[c, d]``. The same rows give the same centers.
    """
    wide = rows.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)  # of int8, lengths are only about 1
    first = int(np.argmax(wide @ wide.sum(axis=0)))
    chosen, nearest = [first], wide @ wide[first]
    while len(chosen) < count and nearest.min() < 1 - 1e-6:
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, wide @ wide[chosen[-1]])
    centers = wide[chosen]
    for _ in range(_ROUNDS):
        owners = np.argmax(wide @ centers.T, axis=1)
        sums = np.zeros_like(centers)
        np.add.at(sums, owners, wide)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = np.where(lengths > 1e-6, sums / np.maximum(lengths, 1e-6), centers)
        if np.allclose(moved, centers, atol=1e-7):
            break
        centers = moved
    sizes = np.bincount(owners, minlength=len(centers))
    order = np.argsort(-sizes, kind="stable")
    return centers[order[sizes[order] > 0]].astype(np.float32)
