"""Rankings of answers by links of questions, and by formulas: baselines of ARQMath."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from mathamr_systems.threads import ThreadStore
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output, ordered_by_score
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr._common.transformers import Leaf, Retriever
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import PostFormula, post_from_any
from pyterrier_mathamr.posts.reading import check_topic, is_blank, text_of
from pyterrier_mathamr.posts.topics import TOPIC_FORMS, distinct_queries, with_query
from pyterrier_mathamr.sparse.expressions import FormulaRetriever, formula_trees
from pyterrier_mathamr.sparse.index import warn_of_queries

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
        self.links = _links_of(links) if isinstance(links, pd.DataFrame) else {q: [*of] for q, of in links.items()}
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
    found: dict[str, list[str]] = {}
    for qid, question in frame[["qid", "question_id"]].astype(str).itertuples(index=False, name=None):
        found.setdefault(qid, []).append(question)
    return found


def ranking(queries: pd.DataFrame, found: pd.DataFrame, num_results: int) -> pd.DataFrame:
    """Order the results, best first, with the columns of the queries."""
    found = found.drop_duplicates(["qid", "docno"])
    if found.empty:
        return empty_output(queries.iloc[:0], RESULT)
    joined = queries.merge(found, on="qid", how="inner")
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
        own = hits[hits["post_id"] == asked.docno]
        if own.empty:
            raise AskedError(
                self.label, f"no formula of {asked.docno!r} is found", "Explain a document of its ranking."
            )
        return asked.explained(self._retriever().explain(frame, str(own["docno"].iloc[0])).rows)

    def _retriever(self) -> FormulaRetriever:
        found: FormulaRetriever = self.formula_index.retriever(self.hits, store=self.store, verbose=self.verbose)
        return found

    def _search(self, formulas: pd.DataFrame) -> pd.DataFrame:
        """Find formulas, and take the best of each answer: ``qid``, ``docno``, ``score``."""
        if formulas.empty:
            return pd.DataFrame({"qid": [], "docno": [], "score": []})
        hits: pd.DataFrame = self._retriever()(formulas)
        known = self.threads.known_posts(hits["post_id"].unique())
        answers = {post.id for post in known if post.question_id != post.id}
        best = hits[hits["post_id"].isin(answers)].drop_duplicates(["qid", "post_id"])  # the best comes first
        return best[["qid", "post_id", "score"]].rename(columns={"post_id": "docno"})
