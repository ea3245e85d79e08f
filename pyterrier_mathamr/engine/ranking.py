"""The ranking of an engine: candidates of two systems, and a score that is a sum of parts.

::

    query ──┬── BM25 ───────────┐
            └── encode ── MaxSim┴─▶ candidates ──▶ S(Q, D) = w BM25(Q, D) / B(Q) + v MaxSim(Q, D) / V(Q)

B(Q) is the BM25 score of a document that repeats each token of the query without end, V(Q) the sum of the weights of
the query's vectors. Both depend on the query alone: a score does not change with the other candidates, and it is the
sum of what each token and each vector contributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import empty_output, first_values, is_missing, ordered_by_score
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr._common.transformers import Retriever
from pyterrier_mathamr.explain import Explanation, QueryRow, read_asked
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.sparse import BM25Index
from pyterrier_mathamr.sparse.index import query_or_empty

SCALE = 100.0
"""A score of 100 is that of a document which says all that the query says, and says nothing else."""


class Weights(NamedTuple):
    """The weights of a blend.

    Attributes:
        words: w, of BM25.
        graph: v, of MaxSim.
    """

    words: float
    graph: float


_FITTED = {"mathamr-plus-mini": Weights(0.5, 0.5), "mathamr-plus-text": Weights(0.26, 0.74)}
"""Text: ``python -m studies blending``, on questions of six kinds of text. Mini: ARQMath's topics."""


def fitted_weights(model: str) -> Weights:
    """Return the fitted weights of a bundled model, and equal weights for any other."""
    return _FITTED.get(model, Weights(0.5, 0.5))


class BlendedRetriever(Retriever):
    """Ranks by the weighted sum of BM25 and MaxSim, each divided by the most that the query can reach.

    Args:
        bm25: the index of words.
        vectors: the index of vectors of the same documents.
        encode: queries to ``query_embs``.
        weights: of the two.
        candidates: documents that each of the two proposes.
        num_results: documents for each query.

    Example::

        posts = [{"id": "square", "text": "Show that $x^2 = 1$ has two solutions."}]
        engine = SearchEngine.build(posts, "my.engine", model="mathamr-plus-mini", verbose=False)
        pipeline = engine.retriever(num_results=100)
    """

    checks: ClassVar[Mapping[str, Rule]] = {"num_results": COUNT, "candidates": COUNT}
    label = "BM25 + MathAMR+"

    def __init__(
        self,
        bm25: BM25Index,
        vectors: MathAMRIndex,
        encode: pt.Transformer,
        weights: Weights,
        *,
        candidates: int = 1000,
        num_results: int = 1000,
    ) -> None:
        super().__init__()
        self.bm25, self.vectors, self.encode, self.weights = bm25, vectors, encode, Weights(*weights)
        self.candidates, self.num_results = candidates, num_results

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """The stages."""
        return {"encode": self.encode}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with each query.

        Args:
            inp: ``qid`` and ``query``.

        Returns:
            The columns of ``inp`` with ``docno``, ``score`` and ``rank``.
        """
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        if inp.empty:
            return empty_output(inp, ["docno", "score", "rank"])
        encoded = self.encode(inp)
        text = self.bm25.retriever(num_results=self.candidates)(inp)
        graph = self.vectors.colbert(num_results=self.candidates)(encoded)
        keys = ["qid", "docno"]
        found = pd.concat([text[keys], graph[keys]]).drop_duplicates()
        scored = self.score(found.merge(encoded.drop_duplicates("qid"), on="qid"))
        scored = scored[scored["rank"] < self.num_results]
        columns = [*inp.columns, *(name for name in ("docno", "score", "rank") if name not in inp.columns)]
        result: pd.DataFrame = scored[columns].reset_index(drop=True)
        return result

    def score(self, candidates: pd.DataFrame) -> pd.DataFrame:
        """Score and order candidates.

        Args:
            candidates: ``qid``, ``docno``, ``query`` and the columns of an encoded query.
        """
        keys = ["qid", "docno"]
        text = self.bm25.scorer()(candidates)[[*keys, "score"]]
        graph = self.vectors.scorer()(candidates)[[*keys, "score"]]
        both = candidates.merge(text, on=keys, suffixes=("", "_of_first")).rename(columns={"score": "_words"})
        both = both.merge(graph, on=keys).rename(columns={"score": "_graph"})
        bounds = {qid: self.bounds(row) for qid, row in query_rows(candidates).items()}
        words = np.array([bounds[qid][0] for qid in both["qid"]])
        vectors = np.array([bounds[qid][1] for qid in both["qid"]])
        parts = self.weights.words * both["_words"] / words + self.weights.graph * both["_graph"] / vectors
        return ordered_by_score(both.drop(columns=["_words", "_graph"]), SCALE * parts)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Say what each word and each part of a query contributes to the score of a post.

        Args:
            query: a row with ``query``, encoded or not, or a frame of one query; with the post's ``graph`` the parts
                have its texts.
            docno: any post, found or not; by default that of the row.

        Raises:
            AskedError: the row has no query, or no post is named.
            UnknownIdError: an index does not hold the post.
        """
        asked = read_asked(query, docno, self.label, ["query"])
        row = asked.row
        if is_missing(row.get("query_embs")):
            row = {**row, **query_rows(self.encode(asked.frame()))[str(row.get("qid", "explained"))]}
        words, graph = self.bounds(row)
        of_words = self.bm25.scorer().explain(row)
        of_graph = self.vectors.scorer().explain(row)
        return of_words.scaled(SCALE * self.weights.words / words) + of_graph.scaled(
            SCALE * self.weights.graph / graph, "MathAMR+"
        )

    def bounds(self, query: Mapping[str, Any]) -> tuple[float, float]:
        """Compute B(Q) and V(Q), 1 for a query without tokens or vectors.

        Args:
            query: a row of an encoded query.
        """
        words = self.bm25.scorer().greatest_score(query_or_empty(query))
        weights = query.get("query_weights")
        rows = len(query["query_embs"]) if weights is None else float(np.sum(weights))
        document = query.get("query_document_weight")
        return words or 1.0, (rows + (0.0 if document is None else float(document))) or 1.0


def query_rows(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the query columns of each query, each the first value that is there."""
    names = [name for name in frame.columns if name == "query" or name.startswith("query_")]
    values = {name: first_values(frame, name) for name in names}
    return {qid: {name: of[qid] for name, of in values.items()} for qid in dict.fromkeys(frame["qid"])}
