"""The ranking of an engine: candidates of two systems, a score that is a sum of parts, and how good a match it is.

::

    query ──read, encode──▶ ReadQuery ──┬── BM25 of all documents ───┐
                                        └── bounds of all MaxSim ────┴─▶ the few that can be best ──▶ exact scores

    S(Q, D) = w BM25(Q_words, D) / B(Q_words) + t BM25(Q_trees, D) / B(Q_trees) + v MaxSim(Q, D) / V(Q)

Q_trees are the structures of the query's formulas (`sparse.tokens`), in which letters have no names; Q_words are all
its other tokens. B is the BM25 score of a document that repeats each token without end, V the sum of the weights of the
query's vectors. Structures count as much as they say: t grows with B(Q_trees), and is 0 for a query without formulas;
the sum of w, t and v is 1. A document whose name the query is (`names`) gets 1 more, and so comes first; a statement
gets 2, and so precedes the section or file of its name. All of it depends only on the query: a score does not change
with the other candidates, and it is the sum of its parts.

Each of the two proposes its best documents as candidates. A scan bounds every score, so most candidates are known to be
too low, and only the others are scored exactly. Stages pass on arrays, in which document ``i`` is the ``i``-th in the
index of vectors.

Whether a post answers a question at all is estimated from the collection itself::

    M(Q, D) = S(Q, D) · c(Q)      the score, and the share of the question that the collection knows
    match   = the share of unrelated pairs of question and post with a lower M, 0 to 1

Unrelated pairs are random sentences and titles of posts with random other posts, not of the same thread or file. A
question that is a formula, with three words at most, is compared with random formulas instead: it has few parts, so
that some post nearly always has something similar. If all posts are on one subject, or nearly the same, even these
pairs score high; no score counts as higher than the one at the same level of ARQMath, so that a right answer stays a
good match.

S by itself is high for a question on another subject that shares one word with some post, and for words that the model
has never seen, whose vectors are similar: ``zzz qqq`` has 50 points. So c lowers all scores of a question whose words
no post has; the ranking is unchanged. See docs/archive/engine.md for how often the threshold is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr._common.frames import best_places, is_missing, ranking_frame
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr._common.transformers import Leaf
from pyterrier_mathamr.explain import Asked, Explanation, QueryRow, read_asked
from pyterrier_mathamr.explain.explanation import Part
from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.fusion.fusions import fused_standard
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.graph.mathamr import EMPTY_AMR
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.index.backend import QueryBatch, batch_of
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import PLACEHOLDER, Document, MathPost, PostFormula, post_from_any, post_from_html
from pyterrier_mathamr.posts.topics import TOPIC_FORMS
from pyterrier_mathamr.sparse import BM25Index, TangentIndex
from pyterrier_mathamr.sparse.bm25_search import QueryTokens, explain_tokens
from pyterrier_mathamr.sparse.expressions import formula_trees, query_formula
from pyterrier_mathamr.sparse.index import SparseRetriever, warn_of_queries
from pyterrier_mathamr.sparse.patterns import NONE_SIMILAR, SimilarFormulas
from pyterrier_mathamr.store import Rows
from pyterrier_mathamr.store.saved import field, finite

from .posts import PostStore

SCALE = 100.0
"""The score of a document that contains exactly the content of the query."""
HALF = 400.0
"""B(Q_trees) of a query whose structures have half of their weight; half of ARQMath's questions have less than 100."""
Floats = npt.NDArray[np.float64]


class Weights(NamedTuple):
    """The weights of a blend.

    Attributes:
        words: of BM25 by words and symbols.
        graph: of MaxSim.
        structures: of BM25 by structures of formulas, for a query with very many.
    """

    words: float
    graph: float
    structures: float = 0.0

    def of_query(self, bound: npt.ArrayLike) -> tuple[Any, Any, Any]:
        """Compute w, v and t of queries from B(Q_trees)."""
        structures = self.structures * np.asarray(bound) / (np.asarray(bound) + HALF)
        total = self.words + self.graph + structures
        return self.words / total, self.graph / total, structures / total


_FITTED = {
    "mathamr-plus-mini": Weights(0.5, 0.5, 0.7),
    "mathamr-plus-text": Weights(0.26, 0.74, 0.7),
    "mathamr-plus-text-large": Weights(0.08, 0.92, 0.87),
}
"""Words and graph: of text and the large model by ``python -m studies blending``, on six kinds of text; of mini on
ARQMath's topics. Structures: on validation questions of ARQMath with the default model, as written and with other
letters; the large model's have the same ratio to the graph."""


def fitted_weights(model: str) -> Weights:
    """Return the weights of a bundled model; for any other, words and vectors have equal ones."""
    return _FITTED.get(model, Weights(0.5, 0.5, 0.7))


class ReadQuery(NamedTuple):
    """A query that was read and encoded once, for every stage of a search."""

    post: MathPost  # the query
    row: dict[str, Any]  # the columns of the encoded query
    tokens: QueryTokens  # its tokens, for BM25
    vectors: QueryBatch  # its vectors, for MaxSim; empty if it has none
    weighed: QueryTokens  # its tokens with their weights in S, before `SCALE`
    bound: float  # V(Q), 0 for a query without vectors
    graph: float  # v / V(Q), the weight of MaxSim in S before `SCALE`; 0 without vectors
    named: Rows  # the documents that the query names, int64, ascending
    statements: Rows  # those that are statements, not sections, files or records

    def blend(self, words: Floats, graph: Floats) -> Floats:
        """Return S without what documents have more for their names."""
        return SCALE * (words + self.graph * graph)

    def bonus(self, documents: Rows) -> Floats:
        """Return what documents have more for their names: float64 ``[documents]``."""
        return SCALE * (np.isin(documents, self.named).astype(np.float64) + np.isin(documents, self.statements))


class BlendedRetriever(Leaf, SparseRetriever):
    """Ranks by the weighted sum of BM25 and MaxSim, each divided by the most that the query can reach.

    Args:
        bm25: the index of words.
        vectors: the index of vectors of the same documents.
        graphs: builds the graphs of queries.
        model: the model of the vectors.
        weights: of the two.
        posts: the store of the same documents; one whose name is the query ranks first. Without it, names have no
            effect.
        candidates: documents that each of the two proposes.
        num_results: documents for each query.

    Example::

        posts = [{"id": "square", "text": "Show that $x^2 = 1$ has two solutions."}]
        engine = SearchEngine.build(posts, "my.engine", model="mathamr-plus-mini", verbose=False)
        pipeline = engine.retriever(num_results=100)
    """

    checks: ClassVar[Mapping[str, Rule]] = {"num_results": COUNT, "candidates": COUNT}
    label = "BM25 + MathAMR+"
    inputs, outputs = TOPIC_FORMS, ("docno", "score", "rank")

    def __init__(
        self,
        bm25: BM25Index,
        vectors: MathAMRIndex,
        graphs: GraphBuilder,
        model: MathAMR,
        weights: Weights,
        posts: PostStore | None = None,
        *,
        candidates: int = 1000,
        num_results: int = 1000,
    ) -> None:
        super().__init__()
        self.bm25, self.vectors, self.graphs, self.model, self.posts = bm25, vectors, graphs, model, posts
        self.weights, self.candidates, self.num_results = Weights(*weights), candidates, num_results

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        bm25 = self.bm25.snapshot()
        posts = {str(row["qid"]): bm25.read_query(row) for row in queries.to_dict("records")}
        blank = [qid for qid, post in posts.items() if not post.text.strip()]
        warn_of_queries(blank, "blank queries", "Give each a text in `query`.")
        rankings = [self.best(query, self.num_results) for query in self.read(posts)]
        return ranking_frame(queries, rankings, docno=self.docnos)

    def read(self, posts: Mapping[str, MathPost]) -> list[ReadQuery]:
        """Encode queries by qid."""
        full = {qid: post for qid, post in posts.items() if post.text}
        built = dict(zip(full, self.graphs.build(full), strict=True))
        graphs = [built.get(qid) or MathAMRGraph(EMPTY_AMR, id=qid) for qid in posts]
        encoded = self.model.post_rows().of_queries(graphs)
        of_each = zip(posts.items(), graphs, encoded, strict=True)
        return [self._read(post, {"qid": qid, "query_graph": graph, **row}) for (qid, post), graph, row in of_each]

    def of_row(self, row: Mapping[Any, Any]) -> ReadQuery:
        """Read a query that is the row of an encoded frame."""
        return self._read(self.bm25.snapshot().read_query(row), row)

    def _read(self, post: MathPost, row: Mapping[Any, Any]) -> ReadQuery:
        qid = str(row["qid"])
        encoded = {name: value for name, value in row.items() if name.startswith("query_") and not is_missing(value)}
        vectors = batch_of({name: {qid: value} for name, value in encoded.items()}, self.vectors.snapshot())
        weights, documents = vectors.weights, vectors.document_weights
        bound = float(len(vectors.rows) if weights is None else weights.sum())
        bound += 0.0 if documents is None else float(documents.sum())
        tokens = self.bm25.scorer().tokens_of(post)
        of_words, of_structures = tokens.greatest(structures=False), tokens.greatest(structures=True)
        w, v, t = self.weights.of_query(of_structures)
        words, graph, structures = (
            float(weight / most) if most else 0.0 for weight, most in ((w, of_words), (v, bound), (t, of_structures))
        )
        called = self.posts.called(text_of(post)) if self.posts else {}
        named = np.sort(self.documents(list(called)))
        statements = np.sort(self.documents([docno for docno, is_statement in called.items() if is_statement]))
        return ReadQuery(
            post, {**row}, tokens, vectors, tokens.scaled(words, structures), bound, graph, named, statements
        )

    def best(
        self, query: ReadQuery, count: int, system: str = "blend", among: Rows | None = None
    ) -> tuple[Rows, Floats]:
        """Return the best ``count`` documents, or fewer, and their scores by ``blend``, ``bm25`` or ``mathamr``.

        Args:
            query: the query, as :meth:`read` returns it.
            count: the most documents returned.
            system: ``blend``, ``bm25`` or ``mathamr``.
            among: the documents to rank, int64, ascending; by default all.
        """
        rows = self._bm25_rows()
        among = np.arange(len(rows)) if among is None else among

        def first(places: Rows, scores: npt.NDArray[Any], most: int) -> Rows:
            """Return which of some places in ``among`` have the best scores, ties by docno."""
            order: Rows = best_places(scores, most, lambda some: self.docnos(among[places[some]]))
            return order

        tokens = query.tokens if system == "bm25" else query.weighed
        words = tokens.scores()[rows[among]]
        if system == "bm25":
            places = np.flatnonzero(words > 0)
            best = places[first(places, words[places], count)]
            return among[best], words[best].astype(np.float64)

        # The candidates: the best by words, the named ones, and the best by MaxSim, as far as its bounds decide it.
        limit = self.candidates if system == "blend" else count
        bonus, proposed = np.zeros(len(among)), np.zeros(len(among), dtype=np.bool_)
        if system == "blend":
            least_words = max(_greatest(words, limit), 0.0)
            proposed = words > least_words
            tied = np.flatnonzero(words == least_words) if least_words else np.empty(0, dtype=np.int64)
            proposed[tied[first(tied, words[tied], limit - int(proposed.sum()))]] = True
            bonus = query.bonus(among)
            proposed |= bonus > 0
        least = most = np.zeros(len(among))
        possible = sure = np.zeros(len(among), dtype=np.bool_)
        if len(query.vectors):
            least, most = (bounds[among] for bounds in self.vectors.snapshot().bounds(query.vectors, count))
            possible, sure = most >= _greatest(least, limit), least > _greatest(most, limit + 1)

        # Candidates that may be among the best: by the bounds of their scores, then by exact ones.
        total = (lambda words, graph: graph) if system == "mathamr" else query.blend
        slack = 2.0**-22 * (1 + len(tokens.weights)) * words.astype(np.float64)  # of sums in float32
        lower, upper = total(words - slack, least) + bonus, total(words + slack, most) + bonus
        places = np.flatnonzero((proposed | possible) & (upper >= _greatest(lower[proposed | sure], count)))
        if not (proposed | sure)[places].all():  # whether some are candidates depends on their exact scores
            unsure = np.flatnonzero(possible & ~sure)
            sure[unsure[first(unsure, self._exact(query, among[unsure])[1], limit - int(sure.sum()))]] = True
            places = places[(proposed | sure)[places]]
        scores = total(*self._exact(query, among[places])) + bonus[places]
        order = first(places, scores, count)
        return among[places[order]], scores[order]

    def score(self, query: ReadQuery, documents: Rows) -> Floats:
        """Score ``documents``, found or not, for ``query`` by the blend: float64 ``[documents]``."""
        return query.blend(*self._exact(query, documents)) + query.bonus(documents)

    def _exact(self, query: ReadQuery, documents: Rows) -> tuple[Floats, Floats]:
        """Score documents by weighed BM25 and by MaxSim."""
        words, vectors = query.weighed.shares(self._bm25_rows()[documents]).sum(axis=1), self.vectors.snapshot()
        if not len(query.vectors):
            return words, np.zeros(len(documents))
        return words, vectors.score(query.vectors, [vectors.live[documents]])[0]

    def _bm25_rows(self) -> Rows:
        """Return the row of each document in the index of words: int64 ``[m]``."""
        words, vectors = self.bm25.snapshot(), self.vectors.snapshot()
        rows: Rows | None = vectors.caches.get(name := f"rows in {words.identity}")
        if rows is None:
            rows = vectors.caches[name] = words.rows_of(vectors.texts("docno", vectors.live))
        return rows

    def docnos(self, documents: Rows) -> list[str]:
        return self.bm25.snapshot().docnos(self._bm25_rows()[documents])

    def documents(self, docnos: Sequence[str]) -> Rows:
        """Look up documents (raises ``UnknownIdError``): int64 ``[docnos]``."""
        vectors = self.vectors.snapshot()
        return np.searchsorted(vectors.live, vectors.find(docnos))

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each word and each part of a query to the score of a post.

        Args:
            query: a row with ``query``, encoded or not, or a frame of one query; with the post's ``graph`` the parts
                have its texts.
            docno: any post, found or not; by default the one in the row.

        Raises:
            AskedError: the row has no query, or no post is named.
            UnknownIdError: an index does not hold the post.
        """
        asked = read_asked(query, docno, self.label, ["query"])
        row = {"qid": "explained", **asked.row}
        if not is_missing(row.get("query_embs")):
            return self.explain_read(self.of_row(row), asked)
        [read] = self.read({str(row["qid"]): self.bm25.snapshot().read_query(row)})
        return self.explain_read(read, asked)

    def explain_read(self, query: ReadQuery, asked: Asked) -> Explanation:
        """Explain the score for ``query`` of the document that ``asked`` names."""
        asked = asked._replace(row={**query.row, **asked.row})
        of_words = explain_tokens(asked, query.post, query.weighed, self.bm25.snapshot())
        of_graph = self.vectors.scorer().explain(asked.row, asked.docno)
        blend = of_words.scaled(SCALE) + of_graph.scaled(SCALE * query.graph, "MathAMR+")
        [bonus] = query.bonus(self.documents([asked.docno])).tolist()
        named = Part("names", "name", text_of(query.post), "document", asked.docno, contribution=bonus)
        return blend.plus(named) if bonus else blend


class SimilarFormulaRetriever(SparseRetriever):
    """Ranks formulas by the sum of their standard scores by Tangent and by formula vectors, as ``ZScoreFusion`` does.

    Each of the two proposes ``candidates`` formulas; ``vectors`` need not be built.
    """

    label = "Similar formulas"
    inputs = (("latex",),)
    outputs = ("docno", "post_id", "score", "rank")
    checks: ClassVar[Mapping[str, Rule]] = BlendedRetriever.checks

    def __init__(
        self,
        tangent: TangentIndex,
        vectors: MathAMRFormulaIndex,
        graphs: GraphBuilder,
        model: MathAMR,
        *,
        candidates: int = 1000,
        num_results: int = 1000,
    ) -> None:
        super().__init__()
        self.tangent, self.vectors, self.graphs, self.model = tangent, vectors, graphs, model
        self.candidates, self.num_results = candidates, num_results

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        rankings = [self.best(query_formula(row).latex) for row in queries.to_dict("records")]
        ids = [docno for formulas in rankings for docno in formulas.docnos]
        posts = [formulas.places[docno][0] for formulas in rankings for docno in formulas.docnos]
        ranked = [(range(len(formulas.docnos)), formulas.scores) for formulas in rankings]
        return ranking_frame(queries, ranked, docno=lambda _: ids, post_id=lambda _: posts)

    def best(self, latex: str) -> SimilarFormulas:
        if not latex:
            return NONE_SIMILAR
        tangent = self.tangent.retriever(num_results=self.candidates)
        snapshot, [pair] = tangent.snapshot(), formula_trees([PostFormula(latex)], None)
        numbers, scores = tangent.best(snapshot, pair)
        rankings = [(snapshot.formula_ids(numbers), scores)]
        posts = dict(zip(rankings[0][0], snapshot.post_ids(numbers), strict=True))
        if self.vectors.built():
            vectors = self.vectors.snapshot()
            [row] = self.graphs.build_rows([{"qid": "1", "latex": latex}])
            row |= self.model.post_rows().of_queries([row["query_graph"]])[0] | {"query_formula_id": ""}
            batch = batch_of({name: {"1": value} for name, value in row.items()}, vectors, formulas=True)
            nearest = self.vectors.retriever(num_results=self.candidates).best(batch, vectors) if len(batch) else []
            for numbers, scores in nearest:
                rankings.append((vectors.texts("docno", numbers), scores))
                posts = {**dict(zip(rankings[1][0], vectors.texts("post_id", numbers), strict=True)), **posts}
        docnos, scores = fused_standard(rankings, self.num_results)
        return SimilarFormulas(docnos, scores, {docno: (posts[docno], "") for docno in docnos})


def _greatest(values: npt.NDArray[Any], count: int) -> float:
    """Return the value that is the ``count``-th greatest; minus infinity if there are fewer."""
    return float(np.partition(values, -count)[-count]) if len(values) >= count else -np.inf


# ---- good matches

GOOD = 0.9
"""The least ``match`` of a good match: nine of ten random posts are further from a random question."""

LEVELS = np.concatenate([np.arange(0, 900, 50), np.arange(900, 990, 10), np.arange(990, 1000)]) / 1000
"""The shares of unrelated pairs whose scores are kept, 0 to .999."""

QUESTIONS, POSTS = 64, 64
"""Random questions, and random posts for each."""

FEWEST = 50
"""Posts below which a collection is too small for an estimate; then the scores of ARQMath are used."""

_CHANGED = 0.1  # share of added and deleted posts from which scores are estimated again
_FEWEST_WORDS, _LONGEST = 4, 1_000  # words and characters of a random question
_SHORTEST = 3  # characters of a random formula


@dataclass(frozen=True)
class UnrelatedScores:
    """M of unrelated pairs of a question and a post, at each of :data:`LEVELS`, ascending."""

    sentences: tuple[float, ...]  # of questions that are sentences
    formulas: tuple[float, ...]
    posts: int  # the number of posts that it was estimated from
    changed: int = 0  # the number of posts that were added or deleted since

    def match(self, question: MathPost, scores: Floats) -> Floats:
        """Return the share of unrelated pairs with a lower M: float64 ``[m]``, at most .999."""
        words = len(PLACEHOLDER.sub(" ", question.text).split())
        of_formula = question.formulas and words < _FEWEST_WORDS
        shares: Floats = np.interp(scores, self.formulas if of_formula else self.sentences, LEVELS)
        return shares

    def after(self, old: PostStore, new: PostStore) -> UnrelatedScores | None:
        """Return the scores for a changed collection; ``None`` if so much has changed that they no longer apply."""
        changed = self.changed + len(np.setxor1d(old.rows().sources, new.rows().sources))
        crossed = (self.posts < FEWEST) != (len(new) < FEWEST)
        return None if crossed or changed > _CHANGED * self.posts else replace(self, changed=changed)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> UnrelatedScores:
        """Read the scores from the manifest of an engine; raises ``ValueError`` for malformed ones."""
        sentences, formulas = (
            tuple(finite(score, "score") for score in field(stored, name, list)) for name in ("sentences", "formulas")
        )
        if any(len(scores) != len(LEVELS) or list(scores) != sorted(scores) for scores in (sentences, formulas)):
            raise ValueError(f"its scores are not {len(LEVELS)} numbers in ascending order")
        return cls(sentences, formulas, field(stored, "posts", int), field(stored, "changed", int))


OF_ARQMATH = {
    "mathamr-plus-mini": (
        (
            -7.07, 1.77, 4.11, 5.63, 7.09, 8.09, 8.99, 9.93, 10.87, 11.78, 12.66, 13.56, 14.47, 15.45, 16.51, 17.65,
            18.82, 20.63, 22.64, 23.04, 23.48, 24.19, 24.99, 25.7, 27.01, 28.55, 30.11, 33.95, 34.42, 34.89, 35.62,
            36.21, 37.19, 37.96, 38.75, 40.72, 43.96,
        ),
        (
            -8.16, 1.89, 4.46, 6.05, 7.44, 8.59, 9.72, 10.79, 11.83, 12.78, 13.79, 14.92, 16.02, 17.16, 18.48, 19.92,
            21.63, 23.88, 27.22, 28.06, 28.91, 29.88, 31.2, 33.1, 35.21, 37.5, 41.94, 49.65, 50.78, 52.5, 54.8, 57.41,
            58.93, 61.57, 64.34, 66.91, 71.21,
        ),
    ),
    "mathamr-plus-text": (
        (
            -14.29, -2.76, -0.96, 0.0, 1.09, 1.95, 2.82, 3.69, 4.58, 5.47, 6.24, 7.05, 7.87, 8.92, 9.95, 11.17, 12.62,
            14.14, 16.7, 17.22, 18.3, 19.0, 19.82, 20.67, 21.47, 22.79, 25.0, 28.37, 28.82, 29.58, 30.1, 31.45, 33.12,
            34.95, 37.85, 39.35, 42.16,
        ),
        (
            -10.31, -1.6, -0.09, 0.97, 1.93, 2.79, 3.64, 4.44, 5.27, 6.1, 6.95, 7.85, 8.89, 9.95, 11.15, 12.51, 14.16,
            16.34, 19.26, 20.06, 20.9, 22.0, 23.08, 24.83, 26.59, 28.58, 31.49, 36.15, 36.81, 38.17, 39.86, 40.77,
            42.06, 44.75, 47.08, 48.97, 53.23,
        ),
    ),
    "mathamr-plus-text-large": (
        (
            -17.5, -2.7, -0.73, 0.62, 1.67, 2.77, 3.8, 4.67, 5.54, 6.43, 7.36, 8.37, 9.41, 10.48, 11.7, 13.3, 14.83,
            16.86, 19.67, 20.57, 21.15, 21.78, 22.76, 23.99, 25.21, 26.95, 29.37, 32.88, 33.59, 34.22, 34.6, 35.58,
            36.42, 37.28, 38.7, 39.87, 41.6,
        ),
        (
            -14.01, -2.61, -0.41, 0.7, 1.87, 2.92, 3.97, 5.02, 6.12, 7.09, 8.03, 9.05, 10.25, 11.64, 12.93, 14.42,
            16.11, 18.37, 21.06, 21.9, 22.79, 23.62, 24.88, 26.18, 28.09, 29.54, 32.95, 37.27, 37.55, 38.04, 38.87,
            39.5, 40.45, 41.88, 43.93, 45.05, 48.68,
        ),
    ),
}  # fmt: skip
"""Of sentences and of formulas with 6,164 posts of ARQMath (the large model's: its 3,395 answers), at each of
:data:`LEVELS`; ``python -m studies matches`` prints them."""


def unrelated_scores(posts: PostStore, retriever: BlendedRetriever, model: str) -> UnrelatedScores:
    """Score random questions of a collection against random other posts of it; the same posts give the same scores."""
    docnos = sorted(posts.snapshot())
    bundled = OF_ARQMATH.get(model, OF_ARQMATH["mathamr-plus-mini"])
    if len(docnos) < FEWEST:
        return UnrelatedScores(*bundled, len(docnos))
    chooser = random.Random(0)
    sample = posts.get_many(chooser.sample(docnos, min(2 * QUESTIONS, len(docnos))))
    others = posts.get_many(chooser.sample(docnos, min(4 * POSTS, len(docnos))))

    def least(choose: Callable[[MathPost, random.Random], str], bounds: tuple[float, ...]) -> tuple[float, ...]:
        texts = [(post, choose(post_from_html(post.html, post.title), chooser)) for post in sample]
        asked = [(post, text) for post, text in texts if text][:QUESTIONS]
        with gathered():  # faults of posts, which were reported before
            queries = retriever.read({str(number): post_from_any(text) for number, (_, text) in enumerate(asked)})
        scores: list[float] = []
        for (source, _), query in zip(asked, queries, strict=True):
            unrelated = [post for post in chooser.sample(others, len(others)) if not _related(source, post)][:POSTS]
            of_posts = retriever.score(query, retriever.documents([post.docno for post in unrelated]))
            scores += (share_known(query, len(docnos)) * of_posts).tolist()
        if not scores:
            return bounds  # all posts are of one thread, or none has such a text
        return tuple(np.minimum(np.quantile(scores, LEVELS), bounds).tolist())

    return UnrelatedScores(least(_sentence, bundled[0]), least(_formula, bundled[1]), len(docnos))


def percent(match: float) -> str:
    """Write a match as text, rounded down: ``99.9 %`` at most."""
    return f"{int(1000 * match + 1e-9) / 10:.1f} %"


def share_known(query: ReadQuery, posts: int) -> float:
    """Compute c(Q): the share of a question's words and symbols, weighted by rarity, that occur in some post.

    In N posts a missing word counts N / (N + 50): few posts also lack words of their own subject.
    """
    known, unknown = query.tokens.greatest(structures=False), query.tokens.unknown()
    return known / (known + unknown * posts / (posts + FEWEST)) if known else 0.0


def _sentence(post: MathPost, chooser: random.Random) -> str:
    """Choose a sentence or the title of a post; nothing where all are short."""
    texts = [text_of(MathPost(sentence, post.formulas)) for sentence in post.sentences[:100]]
    long = [text for text in texts if len(text.split()) >= _FEWEST_WORDS and len(text) <= _LONGEST]
    return chooser.choice(long) if long else ""


def _formula(post: MathPost, chooser: random.Random) -> str:
    formulas = [formula.latex for formula in post.formulas]
    long = [latex for latex in formulas if len(latex.replace(" ", "")) >= _SHORTEST and len(latex) <= _LONGEST]
    return f"${chooser.choice(long)}$" if long else ""


def _related(post: Document, other: Document) -> bool:
    same_file = bool(post.origin.kind) and post.origin[:2] == other.origin[:2]
    return same_file or bool(({post.docno, post.parent} & {other.docno, other.parent}) - {""})
