"""What works on rankings and documents: the exact scorer behind any first stage, and the loader of vectors."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output, with_objects
from pyterrier_mathamr._common.progress import progress

from .arrays import Field, Numbers
from .options import IndexTransformer, Search
from .queries import query_batch
from .scan import QueryBatch
from .search import score
from .searched import Searched, SearchedIndex

Vectors = Literal["all", "document"]
"""What a scorer compares: all rows by MaxSim, or the two VIRTUAL_DOCUMENTs."""


class MaxSimScorer(IndexTransformer):
    """Scores each document of a ranking by exact MaxSim (eq. 3.4) with the vectors of the index.

    ``index.scorer()`` makes one::

        bm25 >> graphs >> model.query_encoder() >> index.scorer()

    With ``vectors="document"`` the score is the product of the two VIRTUAL_DOCUMENTs alone.

    The rows come back by query (as they come), score falling, docno rising, with all their columns; a docno that comes
    twice for a query is scored twice.

    Args:
        index: the index.
        num_results: documents kept for each query; ``None`` keeps all.
        vectors: ``all``, or ``document`` for the VIRTUAL_DOCUMENTs.
        search: ``exact``; a scorer has no other way, and the option is there because retrievers have it.
        normalise: divide scores by the query's number of rows (eq. 3.7).
        verbose: show a progress bar.
        batch_size: queries checked at once.
        device: accepted as everywhere; the processor computes this.
    """

    label = "MathAMR scorer"
    num_results: int | None
    vectors: Vectors
    normalise: bool
    verbose: bool

    def __init__(
        self,
        index: SearchedIndex,
        *,
        num_results: int | None = None,
        vectors: Vectors = "all",
        search: Search = "exact",
        normalise: bool = False,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> None:
        if search != "exact":
            raise ConfigError("search", search, "'exact': a scorer scores the documents it is given")
        if vectors not in get_args(Vectors):
            raise ConfigError("vectors", vectors, "'all' or 'document'")
        options = {"num_results": num_results, "vectors": vectors, "search": search, "normalise": normalise}
        super().__init__(index, **options, verbose=verbose, batch_size=batch_size, device=device)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno`` and ``query_embs``; cells of ``query_embs`` may be empty on some rows of a query.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.

        Raises:
            UnknownIdError: the index does not hold some of the documents; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["query_embs"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        snapshot = self.index.snapshot()
        codes, qids = pd.factorize(inp["qid"])
        documents, docnos = pd.factorize(inp["docno"], use_na_sentinel=False)
        names = [str(docno) for docno in docnos]
        numbers = snapshot.find(names)
        batch = query_batch(inp, snapshot, normalise=self.normalise)
        if self.vectors == "document":
            batch = batch.last_rows()
        scores = self._scores(codes, numbers[documents], batch, snapshot)
        by_name = np.empty(len(names), dtype=np.int64)
        by_name[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        order = np.lexsort((by_name[documents], -scores, codes))
        starts = np.searchsorted(codes[order], np.arange(len(qids)))
        ranks = np.arange(len(order), dtype=np.int64) - starts[codes[order]]
        result = inp.iloc[order].assign(score=scores[order].astype(np.float64), rank=ranks)
        if self.num_results is not None:
            result = result[result["rank"] < self.num_results]
        ordered: pd.DataFrame = result.reset_index(drop=True)
        return ordered

    def _scores(self, codes: Numbers, numbers: Numbers, batch: QueryBatch, snapshot: Searched) -> Any:
        """The score of each row of the ranking: float32."""
        scores = np.empty(len(codes), dtype=np.float32)
        field: Field = "doc" if self.vectors == "document" else "all"
        by_query = np.argsort(codes, kind="stable")
        parts = np.split(by_query, np.cumsum(np.bincount(codes, minlength=len(batch)))[:-1])
        for query, rows in enumerate(progress(parts, self.label, "q", verbose=self.verbose, total=len(parts))):
            distinct, places = np.unique(numbers[rows], return_inverse=True)
            scores[rows] = score(snapshot, batch.one(query), distinct, field)[places]
        return scores


class VectorLoader(IndexTransformer):
    """Adds the vectors of each document from the index.

    ``index.vec_loader()`` makes one::

        bm25 >> index.vec_loader()

    Args:
        index: the index.
        verbose: accepted as everywhere; there is nothing to show.
    """

    label = "MathAMR vectors"

    def __init__(self, index: SearchedIndex, *, verbose: bool = False) -> None:
        super().__init__(index, verbose=verbose)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_embs``.

        Args:
            inp: documents or a ranking, with ``docno``.

        Returns:
            The same rows with ``doc_embs``, float32 ``[n, d]``.

        Raises:
            UnknownIdError: the index does not hold some of the documents; it names them.
        """
        pt.validate.columns(inp, includes=["docno"], context=self)
        if inp.empty:
            return empty_output(inp, ["doc_embs"])
        snapshot = self.index.snapshot()
        places, docnos = pd.factorize(inp["docno"], use_na_sentinel=False)
        rows, offsets = snapshot.rows(snapshot.find([str(docno) for docno in docnos]))
        vectors = [rows[start:end] for start, end in pairwise(offsets.tolist())]
        return with_objects(inp, doc_embs=[vectors[place] for place in places])

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Cut first, then load only what is left."""
        return pt.RankCutoff(k) >> self
