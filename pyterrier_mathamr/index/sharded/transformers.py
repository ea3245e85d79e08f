"""The retrievers and the scorer over an index in parts: the exact strategies, each answered by all parts.

::

    best        each part finds its best k; the best k of these are the best of all
    doc-VN      the best candidates of all parts by one vector, then each part ranks its own of these
    scorer      each part scores its own documents of a ranking

The score of a document is computed from its own rows alone, so it is the score that one index of all documents gives.
Approximate search finds other documents in parts than in one index, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import Rule, one_of
from pyterrier_mathamr.index.protocols import ExactScores, Numbers
from pyterrier_mathamr.index.search.queries import QueryBatch
from pyterrier_mathamr.index.search.ranking import Hits
from pyterrier_mathamr.index.transformers import (
    ColBERTRetriever,
    DocVNRetriever,
    IndexRetriever,
    IndexTransformer,
    MaxSimScorer,
    SingleVectorRetriever,
)

from .snapshot import ShardedSnapshot


class ShardedRetriever(IndexRetriever):
    """Ranks the documents of all parts; ``search`` can only be ``exact``.

    The options are those of :class:`~pyterrier_mathamr.index.IndexRetriever`. ``batch_size`` queries are one request,
    to which the time limit of the index applies.
    """

    checks: ClassVar[Mapping[str, Rule]] = {**IndexTransformer.checks, "search": one_of("exact")}

    def find(self, queries: QueryBatch, snapshot: ShardedSnapshot) -> list[Hits]:
        """Find the best documents of each query."""
        return snapshot.best(queries, self.num_results, self.field, self.device)


class ShardedSingleVectorRetriever(ShardedRetriever, SingleVectorRetriever):
    """Ranks documents by the product of their VIRTUAL_DOCUMENT with the query's, its last row.

    ``index.single_vector()`` constructs one; the options are those of :class:`ShardedRetriever`.

    Example::

        graphs >> model.query_encoder() >> index.single_vector(num_results=1000)
    """


class ShardedDocVNRetriever(ShardedRetriever, DocVNRetriever):
    """Selects candidates of all parts by the VIRTUAL_DOCUMENT and ranks them by exact MaxSim over all rows.

    ``index.doc_vn()`` constructs one; the options are those of :class:`~pyterrier_mathamr.index.DocVNRetriever`.

    Example::

        graphs >> model.query_encoder() >> index.doc_vn(candidates=5000)
    """

    def find(self, queries: QueryBatch, snapshot: ShardedSnapshot) -> list[Hits]:
        """Find the best documents of each query among its candidates."""
        return snapshot.best_of(queries, snapshot.best(queries, self.candidates, "doc"), self.num_results)


class ShardedColBERTRetriever(ShardedRetriever, ColBERTRetriever):
    """Ranks documents by MaxSim, S(Q, D) = Σᵢ maxⱼ qᵢ · dⱼ (eq. 3.4).

    ``index.colbert()`` constructs one, and so does ``index.retriever()``; the options are those of
    :class:`~pyterrier_mathamr.index.ColBERTRetriever`, of which ``hits`` has no effect.

    Example::

        graphs >> model.query_encoder() >> index.colbert(num_results=1000)
    """


class ShardedMaxSimScorer(MaxSimScorer):
    """Scores each document of a ranking by exact MaxSim (eq. 3.4), in the part that has it.

    ``index.scorer()`` constructs one; the options are those of :class:`~pyterrier_mathamr.index.MaxSimScorer`, of which
    ``batch_size`` is the number of queries in one request.

    Example::

        bm25 >> graphs >> model.query_encoder() >> index.scorer()
    """

    def _scores(self, inp: pd.DataFrame, numbers: Numbers, snapshot: Any) -> ExactScores:
        """Score each row of a ranking, whose documents have the given numbers, int64 ``[r]``."""
        scores = np.zeros(len(inp))
        rows_of = inp.groupby("qid", sort=False).indices
        batches = self.read(inp, snapshot).of_size(self.batch_size)
        for batch in progress(batches, self.label, "batches", verbose=self.verbose):
            rows = [rows_of[qid] for qid in batch.qids]
            distinct = [np.unique(numbers[of], return_inverse=True) for of in rows]
            found = snapshot.scores(batch, [of for of, _ in distinct], self.field)
            for of, own, (_, of_row) in zip(rows, found, distinct, strict=True):
                scores[of] = own[of_row]
        return scores
