"""Rankings of answers: from both similarities, and the baselines of ARQMath by links of questions and by formulas.

::

    candidates ──┬── MathSEScore ──────────────────────────────▶ QQSim · votes
                 ├── qasim.scorer() ── TimesQQ ────────────────▶ QQSim · QASim
                 └── TwoStepFeatures ── RankingSVM ────────────▶ w · features
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from mathamr_systems.formula_ltr.ranker import ONE_OR_SEVERAL, Graded, LinearRanker, choose_c
from mathamr_systems.threads import ThreadStore
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.extending import (
    COUNT,
    FLAG,
    POSITIVE,
    TOPIC_FORMS,
    ConfigError,
    FormulaRetriever,
    Leaf,
    MathAMRWarning,
    NothingToFitError,
    Retriever,
    Rule,
    Transformer,
    check_topic,
    distinct_queries,
    empty_output,
    formula_trees,
    ignored_warnings,
    inputs_of_all,
    is_blank,
    ordered_by_score,
    require,
    text_of,
    warn_of_queries,
    with_objects,
    with_query,
)
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import PostFormula, post_from_any


class MathSEScore(Leaf, Transformer):
    """Scores answers by QQSim(Q_T, Q_A) · (v - min) / (max - min), v their votes (eqs. 5.1 and 5.2).

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1. Minimum
    and maximum are over all answers of the same question, including answers that are not in the ranking. The paper is
    silent on a question with one answer, or whose answers have the same votes: the second factor is 1 here. It is also
    1 if a collection has no votes, with one warning.

    Args:
        threads: the votes, and the answers of questions.

    Example::

        pipeline = questions >> threads.answers() >> MathSEScore(threads)
    """

    label = "MathSE"

    def __init__(self, threads: ThreadStore) -> None:
        super().__init__()
        self.threads = threads

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order answers with ``qq_score``, which ``threads.answers()`` adds.

        Raises:
            UnknownIdError: some answers are not in the store; the error names them.
        """
        pt.validate.result_frame(inp, extra_columns=["qq_score"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        self.threads.tell_unknown("votes")
        shares = self.vote_shares(inp["docno"].tolist())
        return ordered_by_score(inp, inp["qq_score"].to_numpy(np.float64) * shares)

    def vote_shares(self, docnos: Sequence[str]) -> npt.NDArray[np.float64]:
        """Bring the votes of answers to 0 … 1 among the answers of their question (eq. 5.1): float64 ``[n]``."""
        posts = self.threads.posts(docnos)
        shares = np.ones(len(posts))
        votes = {
            question: [answer.votes or 0 for answer in answers]
            for question, answers in self.threads.answers_of({post.question_id for post in posts}).items()
        }
        for row, post in enumerate(posts):
            of_all = votes.get(post.question_id, [0])
            low, high = min(of_all), max(of_all)
            if low < high:
                shares[row] = ((post.votes or 0) - low) / (high - low)
        return shares

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Return the score of ``docno`` as one part: its share of votes times ``qq_score`` in ``query``, its row."""
        asked = read_asked(query, docno, self.label, ["qq_score"])
        share, weight = float(self.vote_shares([asked.docno])[0]), float(asked.row["qq_score"])
        part = Part(self.label, "votes", similarity=share, weight=weight, contribution=weight * share)
        return asked.explained([part])


class TimesQQ(Transformer):
    """Multiplies each score by the score of the answer's question: QQSim(Q_T, Q_A) · QASim(Q_T, A) (eq. 5.3).

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1.

    Example::

        scored = threads.text_loader() >> QASim.new("all-MiniLM-L6-v2").scorer()
        pipeline = questions >> threads.answers() >> scored >> TimesQQ()
    """

    explains_incoming: ClassVar[bool] = True
    """:meth:`explain` accepts the explanation of the stages before it."""
    label = "times QQSim"

    def __init__(self) -> None:
        super().__init__()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Multiply ``score`` by ``qq_score``, which ``threads.answers()`` adds, and order."""
        pt.validate.result_frame(inp, extra_columns=["score", "qq_score"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        return ordered_by_score(inp, (inp["score"] * inp["qq_score"]).to_numpy(np.float64))

    def explain(self, query: QueryRow, docno: str | None = None, *, incoming: Explanation | None = None) -> Explanation:
        """Multiply the contributions to the incoming score, which is one part without ``incoming``.

        Args:
            query: a row of the ranking, with ``score`` and ``qq_score``.
            docno: the answer; by default the one in the row.
            incoming: the explanation of ``score`` by the stages before.
        """
        asked = read_asked(query, docno, self.label, ["score", "qq_score"])
        whole = Part(self.label, "score", contribution=float(asked.row["score"]))
        first = incoming or asked.explained([whole])
        return first.scaled(float(asked.row["qq_score"]))


class TwoStepFeatures(Transformer):
    """Computes six features of each answer of a ranking, as a column ``features``, for ``pt.ltr``.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1, in the
    order printed there: QQSim, QASim, the number of comments, votes, whether the asker accepted the answer (0 or 1),
    and the share of the topic's tags that the answer's question has. Nothing is normalized. ("Percentage" of the tags
    may be 0 to 1 or 0 to 100; the printed weights fit both, and here it is a fraction.) Unknown data of a collection
    is 0, with one warning.

    Args:
        threads: votes, comments, accepted answers and tags.
        qasim: scores a ranking by QASim, such as ``threads.text_loader() >> qasim.scorer()``.

    Example::

        qasim = QASim.new("all-MiniLM-L6-v2")
        features = TwoStepFeatures(threads, threads.text_loader() >> qasim.scorer())
        learned = pt.ltr.apply_learned_model(RankingSVM(C=.01, names=features.names), form="ltr")
        pipeline = questions >> threads.answers() >> features >> learned
    """

    label = "two-step features"
    names: ClassVar[tuple[str, ...]] = ("QQSim", "QASim", "comments", "votes", "accepted", "tag overlap")
    """Of the features, in the order of the column."""

    def __init__(self, threads: ThreadStore, qasim: pt.Transformer) -> None:
        super().__init__()
        self.threads, self.qasim = threads, qasim

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """Return the scorer; the threads are a store, not a stage."""
        return {"qasim": self.qasim}

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns of a ranking that QASim requires, with ``qq_score``."""
        return inputs_of_all([self.qasim], "qid", "docno", "qq_score")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``features``, float64 ``[6]``, to a ranking of answers with ``qq_score`` and the topic's ``tags`` if any.

        Raises:
            UnknownIdError: some answers are not in the store; the error names them.
        """
        pt.validate.result_frame(inp, extra_columns=["qq_score"], context=self)
        if inp.empty:
            return empty_output(inp, ["features"])
        scored = self.qasim(inp).drop_duplicates(["qid", "docno"]).set_index(["qid", "docno"])["score"]
        qasim = scored.reindex(pd.MultiIndex.from_frame(inp[["qid", "docno"]])).fillna(0.0).to_numpy(np.float64)
        names, known = ("comments", "votes", "accepted", "tag_overlap"), self.threads.metadata()(inp)
        columns = [inp["qq_score"].to_numpy(np.float64), qasim, *(known[name].to_numpy(np.float64) for name in names)]
        return with_objects(inp, features=list(np.stack(columns, axis=1)))


_Floats = npt.NDArray[np.float64]
_ITERATIONS = 100_000


class RankingSVM(LinearRanker):
    r"""Learns to order pairs of candidates: SVM-rank with the hinge loss, as a learner of ``pt.ltr``.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1; Joachims,
    "Training linear SVMs in linear time", KDD 2006. The weights minimize ½ w · w + (C / n) · Σ max(0, 1 - w · (x_i -
    x_j)) over all pairs of a query's candidates where i has the higher grade; n is the number of queries, and there
    is no intercept. It is solved on the differences and their mirror images with C / (2 n), since each mirror image
    doubles a pair's loss.

    The dissertation gives neither C for this task (.01 is one of its two values for formulas) nor its scale; here it is
    scaled as in SVM-rank. Its features are not normalized. With few judged pairs a small C then cannot reach any
    margin, and the order of the weights depends on the units of the features. So here
    each feature is first divided by its standard deviation; the stored weights apply to the features as given.
    :class:`PairwiseRanker` minimizes squared losses, and needs no extra.

    Args:
        C: the weight of the losses. Of several, :meth:`fit` uses the one that orders most pairs of held-out queries,
            in five folds.
        tolerance: of the solver, relative.
        standardize: divide each feature by its standard deviation among the training candidates. ``False``: use
            features as given, as in the dissertation.
        names: of the features, for explanations; a ranker with names requires that many features.
        weights: of the features; ``None`` until :meth:`fit` sets them.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        svm = RankingSVM(C=.01, names=("QQSim", "QASim"))
        svm.fit([(.04, .9), (.05, .4), (.03, .1)], [3, 1, 0], group=[3])
        pipeline = pt.ltr.apply_learned_model(svm, form="ltr")
    """

    checks: ClassVar[Mapping[str, Rule]] = {
        **LinearRanker.checks,
        "C": ONE_OR_SEVERAL,
        "tolerance": POSITIVE,
        "standardize": FLAG,
    }

    def __init__(
        self,
        C: float | Sequence[float] = 0.01,  # noqa: N803  (as printed, and as in scikit-learn)
        tolerance: float = 1e-3,
        *,
        standardize: bool = True,
        names: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.C, self.tolerance, self.standardize = C, tolerance, standardize
        self._set(names, weights)

    def find(self, groups: Sequence[Graded]) -> _Floats:
        if not all(np.isfinite(features).all() for features, _ in groups):
            raise ConfigError("features", "NaN or infinite", "finite numbers")
        deviation = np.concatenate([features for features, _ in groups]).std(axis=0)
        scale = np.where(deviation > 0, deviation, 1.0) if self.standardize else np.ones(len(deviation))
        scaled = [(features / scale, grades) for features, grades in groups]
        weights: _Floats = self._solve(scaled, choose_c(self.C, scaled, self._solve)) / scale
        return weights

    def _solve(self, groups: Sequence[Graded], c: float) -> _Floats:
        differences = []
        for features, grades in groups:
            higher, lower = np.nonzero(grades[:, None] > grades)
            differences.append(features[higher] - features[lower])
        pairs = np.concatenate(differences)  # [pairs, f]
        if not len(pairs):
            raise NothingToFitError(len(groups))
        svm: Any = require("sklearn.svm", "answers")
        cost = c / (2 * len(groups))
        solver = svm.LinearSVC(
            loss="hinge", C=cost, fit_intercept=False, tol=self.tolerance, max_iter=_ITERATIONS, random_state=0
        )
        sides = np.repeat([1, -1], len(pairs))
        with ignored_warnings(require("sklearn.exceptions", "answers").ConvergenceWarning):
            solver.fit(np.concatenate([pairs, -pairs]), sides)
        if solver.n_iter_ >= _ITERATIONS:
            text = f"the ranking SVM stopped after {_ITERATIONS:,} steps; scale the features, or give a smaller C"
            warnings.warn(MathAMRWarning(text), stacklevel=2)
        weights: _Floats = solver.coef_[0].astype(np.float64)
        return weights


RESULT = ("docno", "score", "rank")


class LinkedPosts(Leaf, Retriever):
    """Ranks the answers of a topic's duplicates by their votes: the oracle of ARQMath.

    Zanibbi and others, "Overview of ARQMath 2020", CLEF 2020. The release has no links of topics: they are in dumps of
    Math Stack Exchange after the collection's.

    Args:
        links: the duplicates of each topic: question ids by qid, or a frame of ``qid`` and ``question_id``.
        threads: the answers and votes of questions; unknown votes are 0.
        num_results: the number of answers for each query.

    Raises:
        ConfigError: the frame lacks a column, or an option is out of its range.

    Example::

        pipeline = LinkedPosts({"A.1": ["154"]}, threads)
    """

    label = "linked posts"

    def __init__(
        self, links: Mapping[str, Sequence[str]] | pd.DataFrame, threads: ThreadStore, num_results: int = 1000
    ) -> None:
        super().__init__()
        self.links = (
            _links_of(links) if isinstance(links, pd.DataFrame) else {q: [*questions] for q, questions in links.items()}
        )
        self.threads, self.num_results = threads, num_results

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank the answers of the duplicates of each query; ``score`` is their votes.

        A topic without links, or whose duplicates are not in the store or have no answer, has no row.
        """
        pt.validate.query_frame(inp, context=self)
        queries = with_query(distinct_queries(inp, RESULT))
        if queries.empty:
            return empty_output(queries, RESULT)
        self.threads.tell_unknown("votes")
        asked = [(qid, question) for qid in queries["qid"] for question in self.links.get(qid, ())]
        answers = self.threads.answers_of({question for _, question in asked})
        rows = [
            (qid, answer.id, float(answer.votes or 0))
            for qid, question in asked
            for answer in answers.get(question, ())
        ]
        return ranking(queries, pd.DataFrame(rows, columns=["qid", "docno", "score"]), self.num_results)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Return the votes of the answer ``docno`` as one part, whatever the ``query``."""
        asked = read_asked(query, docno, self.label)
        part = Part(self.label, "votes", contribution=float(self.threads.posts([asked.docno])[0].votes or 0))
        return asked.explained([part])


def _links_of(frame: pd.DataFrame) -> dict[str, list[str]]:
    if missing := {"qid", "question_id"} - set(frame.columns):
        raise ConfigError("links", sorted(missing), "a frame with the columns qid and question_id")
    links: dict[str, list[str]] = {}
    for qid, question in frame[["qid", "question_id"]].astype(str).itertuples(index=False, name=None):
        links.setdefault(qid, []).append(question)
    return links


def ranking(queries: pd.DataFrame, hits: pd.DataFrame, num_results: int) -> pd.DataFrame:
    """Order the results, best first, with the columns of the queries."""
    hits = hits.drop_duplicates(["qid", "docno"])
    if hits.empty:
        return empty_output(queries.iloc[:0], RESULT)
    joined = queries.merge(hits, on="qid", how="inner")
    ranked = ordered_by_score(joined, joined["score"].to_numpy(np.float64))
    kept: pd.DataFrame = ranked[ranked["rank"] < num_results].reset_index(drop=True)
    return kept


class FormulaAnswers(Leaf, Retriever):
    """Ranks answers by their formula that is most similar to one formula of the topic, by any formula index.

    The formula is from the title if it has one, else from the body: of several the one whose layout tree has most
    nodes, a tie broken at random, always the same for a topic. An answer has the score of its best formula; formulas of
    questions and of unknown posts are left out. Over a ``TangentIndex`` this is the Tangent baseline (Zanibbi and
    others, CLEF 2020).

    Args:
        formula_index: the formulas of the collection: a ``TangentIndex``, ``InOutIndex`` or another.
        threads: knows which posts are answers.
        num_results: the number of answers for each query.
        hits: the number of formulas to find, before formulas of questions are left out.
        store: official trees of the topics' formulas.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        tangent = FormulaAnswers(TangentIndex("formulas.tangent"), threads)
        pipeline = ConvexFusion(tangent, bm25, alpha=.5)
    """

    label = "formula answers"
    checks: ClassVar[Mapping[str, Rule]] = {**Retriever.checks, "hits": COUNT}

    def __init__(
        self,
        formula_index: Any,
        threads: ThreadStore,
        num_results: int = 1000,
        *,
        hits: int = 10_000,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.formula_index, self.threads, self.num_results = formula_index, threads, num_results
        self.hits, self.store, self.verbose = hits, store, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank answers for each query with ``title`` and ``body``, or ``query``; one without a formula has no row."""
        with pt.validate.any(inp, context=self) as validation:
            for columns in TOPIC_FORMS:
                validation.query_frame(extra_columns=list(columns))
        queries = with_query(distinct_queries(inp, RESULT))
        if queries.empty:
            return empty_output(queries, RESULT)
        formulas = {row["qid"]: self.formula(row) for row in queries.to_dict("records")}
        without = [qid for qid, formula in formulas.items() if formula is None]
        warn_of_queries(without, "queries without a formula", "Fuse the ranking with one of text.")
        asked = [(qid, formula.latex, formula.id) for qid, formula in formulas.items() if formula is not None]
        found = self._search(pd.DataFrame(asked, columns=["qid", "latex", "formula_id"]))
        return ranking(queries, found, self.num_results)

    def formula(self, row: Mapping[Any, Any]) -> PostFormula | None:
        """Choose the formula of a topic, given its ``qid``, and ``title`` and ``body``, or ``query``."""
        check_topic(row)
        title, body = post_from_any(text_of(row, "title")), post_from_any(text_of(row, "body"))
        if is_blank(row.get("title")) and is_blank(row.get("body")):
            title = post_from_any(text_of(row, "query"))
        formulas = title.formulas or body.formulas
        if not formulas:
            return None
        trees = formula_trees(list(formulas), self.store)
        sizes = [0 if pair.slt is None else len(pair.slt.nodes) for pair in trees]
        largest = [formula for formula, size in zip(formulas, sizes, strict=True) if size == max(sizes)]
        drawn = int(hashlib.sha256(text_of(row, "qid").encode()).hexdigest(), 16)
        return largest[drawn % len(largest)]

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain which formula of an answer is most similar to the topic's, and the contributions of its trees.

        Args:
            query: the row of a ranking, or a frame of one query.
            docno: the answer; by default the one in the row.
        """
        asked = read_asked(query, docno, self.label)
        formula = self.formula(asked.row)
        if formula is None:
            raise AskedError(self.label, "the topic has no formula", "Explain a document of its ranking.")
        frame = pd.DataFrame({"qid": ["explained"], "latex": [formula.latex], "formula_id": [formula.id]})
        hits = self._retriever()(frame)
        hits_of_answer = hits[hits["post_id"] == asked.docno]
        if hits_of_answer.empty:
            raise AskedError(
                self.label, f"no formula of {asked.docno!r} is found", "Explain a document of its ranking."
            )
        return asked.explained(self._retriever().explain(frame, str(hits_of_answer["docno"].iloc[0])).rows)

    def _retriever(self) -> FormulaRetriever:
        retriever: FormulaRetriever = self.formula_index.retriever(self.hits, store=self.store, verbose=self.verbose)
        return retriever

    def _search(self, formulas: pd.DataFrame) -> pd.DataFrame:
        """Find formulas, and take the best of each answer: ``qid``, ``docno``, ``score``."""
        if formulas.empty:
            return pd.DataFrame({"qid": [], "docno": [], "score": []})
        hits: pd.DataFrame = self._retriever()(formulas)
        known = self.threads.known_posts(hits["post_id"].unique())
        answers = {post.id for post in known if post.question_id != post.id}
        best = hits[hits["post_id"].isin(answers)].drop_duplicates(["qid", "post_id"])  # the best comes first
        return best[["qid", "post_id", "score"]].rename(columns={"post_id": "docno"})
