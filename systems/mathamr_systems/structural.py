"""Structural search over posts: the words and the formulas of one query, as Approach Zero answers questions.

::

    question ─┬─ words ────▶ BM25Index, by BM25+ ────────────────────────────┐
              └─ formulas ─▶ ApproachZeroIndex ─▶ the best of each document ─┴─▶ sum ─▶ ranking of documents
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import nan
from typing import ClassVar

import numpy as np
import pandas as pd

from mathamr_systems.approach0 import ApproachZeroIndex, PathQuery, path_query, tree_paths
from pyterrier_mathamr.explain import Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.extending import (
    COUNT,
    FRACTION,
    TOPIC_FORMS,
    DocNo,
    Leaf,
    Rule,
    SparseRetriever,
    best_first,
    between,
    formula_trees,
    progress,
    ranking_frame,
    warn_of_queries,
)
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import MathPost, PostFormula
from pyterrier_mathamr.sparse import BM25Index, BM25Retriever

_LEAST_NODES = 3


class StructuralSearch(Leaf, SparseRetriever):
    """Ranks documents by the words of a question and by its formulas, as Approach Zero in Task 1.

    Zhong, Xie and Lin, "Applying structural and dense semantic matching for the ARQMath Lab 2022", CLEF 2022, section
    3.1. The score is BM25+ of the words and, for each formula of the question with at least three nodes, ``beta`` times
    the best score of a formula of the document. In the paper the queries were words and formulas chosen by hand; here
    they are the whole question.

    Args:
        approach_zero_index: the formulas of the documents, and of their questions.
        bm25_index: the documents; ``TokenOptions(formulas=False)`` leaves formulas to the other index.
        num_results: the number of documents for each query; documents with a score of 0 are left out.
        questions: maps the docno of an answer to its question, whose formulas also count for the answer.
        beta: the weight of formulas, at least 0.
        reward: the share of ``beta`` for the formula with the greatest bound, .98 in the engine, while each other
            formula gets the rest; ``None`` for ``beta`` each.
        hits: the number of formulas found for each formula of a question; others have no score.
        k1: of BM25+, at least 0.
        b: of BM25+, 0 to 1.
        delta: of BM25+, at least 0.
        store: official trees of the formulas of questions, by their ids.
        verbose: show a progress bar.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        structural = StructuralSearch(ApproachZeroIndex("formulas.a0"), BM25Index("words.bm25"))
        both = ZScoreFusion(structural, encode >> index.colbert())
    """

    label, help_url = "Structural search", "https://ceur-ws.org/Vol-3180/paper-09.pdf"
    inputs = TOPIC_FORMS
    outputs = ("docno", "score", "rank")
    checks: ClassVar[Mapping[str, Rule]] = {
        **SparseRetriever.checks,
        "beta": between(0),
        "reward": FRACTION.or_none(),
        "hits": COUNT,
        "k1": between(0),
        "b": FRACTION,
        "delta": between(0),
    }

    def __init__(
        self,
        approach_zero_index: ApproachZeroIndex,
        bm25_index: BM25Index,
        num_results: int = 1000,
        *,
        questions: Mapping[DocNo, DocNo] | None = None,
        beta: float = 2.5,
        reward: float | None = None,
        hits: int = 1000,
        k1: float = 2.0,
        b: float = 0.75,
        delta: float = 1.0,
        store: FormulaStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.approach_zero_index, self.bm25_index, self.num_results = approach_zero_index, bm25_index, num_results
        self.questions, self.beta, self.reward, self.hits = questions, beta, reward, hits
        self.k1, self.b, self.delta, self.store, self.verbose = k1, b, delta, store, verbose

    def search_all(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Search with at least one query, each in one row."""
        snapshot, words = self.bm25_index.snapshot(), self._words()
        posts = [snapshot.read_query(row) for row in queries.to_dict("records")]
        blank = [qid for qid, post in zip(queries["qid"], posts, strict=True) if not post.text.strip()]
        warn_of_queries(blank, "blank queries", "Give each a text in `query`, or in `title` and `body`.")
        hits = []
        for post in progress(posts, self.label, "queries", verbose=self.verbose):
            scores = words.tokens_of(post, snapshot).scores().astype(np.float64)
            for _, gained in self._gained(post):
                rows = snapshot.look_up(list(gained))
                known = rows >= 0
                scores[np.searchsorted(snapshot.live, rows[known])] += np.array(list(gained.values()))[known]
            matching = np.flatnonzero(scores > 0)
            hits.append(best_first(matching, scores[matching], self.num_results, snapshot.docnos))
        return ranking_frame(queries, hits, docno=snapshot.docnos)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each word and each formula of a question to the score of a document.

        Args:
            query: a row with ``query``, or ``title`` and ``body``, or a frame of one query.
            docno: any document of ``bm25_index``; by default the one in the row.

        Raises:
            AskedError: the row has no query, or no document is named.
            UnknownIdError: the index does not hold the document.
        """
        asked = read_asked(query, docno, self.label)
        words = self._words().explain(query, docno)
        post = self.bm25_index.snapshot().read_query(asked.row)
        parts = [
            Part(self.label, "formula", formula.latex, "formula", "", nan, nan, gained[asked.docno], number)
            for number, (formula, gained) in enumerate(self._gained(post))
            if asked.docno in gained
        ]
        return words.plus(*parts)

    def _words(self) -> BM25Retriever:
        return self.bm25_index.retriever(k1=self.k1, b=self.b, delta=self.delta, query_weights="linear")

    def _gained(self, post: MathPost) -> list[tuple[PostFormula, dict[DocNo, float]]]:
        """Compute the contribution of each formula of a question to the scores of documents."""
        asked = list({formula.latex: formula for formula in post.formulas}.values()) if self.beta else []
        pairs = formula_trees(asked, self.store)
        snapshot, retriever = self.approach_zero_index.snapshot(), self.approach_zero_index.retriever(self.hits)
        formulas, queries = list[PostFormula](), list[PathQuery]()
        for formula, pair in zip(asked, pairs, strict=True):
            if pair.opt is not None and len(pair.opt.nodes) >= _LEAST_NODES:
                formulas.append(formula)
                queries.append(path_query(tree_paths(pair), snapshot.expressions.payload))
        first = int(np.argmax([query.bound for query in queries])) if queries else 0
        gained = []
        for formula, query in zip(formulas, queries, strict=True):
            numbers, scores = retriever.find(snapshot, query)
            share = 1.0
            if self.reward is not None:
                share = self.reward if query is queries[first] else 1 - self.reward
            best: dict[DocNo, float] = {}
            for docno, score in zip(snapshot.post_ids(numbers), (share * self.beta * scores).tolist(), strict=True):
                for document in (docno, *self._answers.get(docno, ())):
                    best.setdefault(document, score)  # scores descend
            gained.append((formula, best))
        return gained

    @cached_property
    def _answers(self) -> Mapping[DocNo, Sequence[DocNo]]:
        answers: dict[DocNo, list[DocNo]] = defaultdict(list)
        for answer, question in (self.questions or {}).items():
            answers[question].append(answer)
        return answers
