"""A baseline of ARQMath beside text retrieval: answers of linked questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import distinct_queries, empty_output, ordered_by_score
from pyterrier_mathamr._common.transformers import Leaf, Retriever
from pyterrier_mathamr.explain import Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.systems.threads import ThreadStore

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
        """Rank the answers of the duplicates of each query.

        Args:
            inp: ``qid``.

        Returns:
            The columns of the queries, ``docno``, ``score`` (the votes), ``rank``; no row for a topic without links,
            or whose duplicates are not in the store or have no answer.
        """
        pt.validate.query_frame(inp, context=self)
        queries = distinct_queries(inp, RESULT)
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
        """Return the votes as one part.

        Raises:
            AskedError: no document is named.
            UnknownIdError: the store does not hold the answer.
        """
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
    """Order what was found, best first, with the columns of the queries."""
    found = found.drop_duplicates(["qid", "docno"])
    if found.empty:
        return empty_output(queries.iloc[:0], RESULT)
    joined = queries.merge(found, on="qid", how="inner")
    ranked = ordered_by_score(joined, joined["score"].to_numpy(np.float64))
    kept: pd.DataFrame = ranked[ranked["rank"] < num_results].reset_index(drop=True)
    return kept
