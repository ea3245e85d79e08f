"""MathSE: the similarity of an answer's question times what readers gave the answer (eqs. 5.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import empty_output, ordered_by_score
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.explain import Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.systems.threads import ThreadStore


class MathSEScore(Leaf, Transformer):
    """Scores answers by QQSim(Q_T, Q_A) · (v - min) / (max - min), v their votes (eqs. 5.1 and 5.2).

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1. Minimum
    and maximum are those of all answers of the same question, also of those that are not in the ranking. The paper is
    silent on a question with one answer, or whose answers have the same votes: the second factor is 1 there. So it is
    where a collection has no votes; one warning says so.

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
        """Score and order answers.

        Args:
            inp: ``qid``, ``docno`` and ``qq_score``, which ``threads.answers()`` adds.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.

        Raises:
            UnknownIdError: some answers are not in the store; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["qq_score"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        self.threads.tell_unknown("votes")
        shares = self.vote_shares(inp["docno"].tolist())
        return ordered_by_score(inp, inp["qq_score"].to_numpy(np.float64) * shares)

    def vote_shares(self, docnos: Sequence[str]) -> npt.NDArray[np.float64]:
        """Bring the votes of answers to 0 … 1 among the answers of their question (eq. 5.1): float64 ``[n]``.

        Raises:
            UnknownIdError: some answers are not in the store; it names them.
        """
        posts = self.threads.posts(docnos)
        found = np.ones(len(posts))
        votes = {
            question: [answer.votes or 0 for answer in answers]
            for question, answers in self.threads.answers_of({post.question_id for post in posts}).items()
        }
        for row, post in enumerate(posts):
            of_all = votes.get(post.question_id, [0])
            low, high = min(of_all), max(of_all)
            if low < high:
                found[row] = ((post.votes or 0) - low) / (high - low)
        return found

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Return the score as one part: the share of votes, weighted by the similarity of the questions.

        Args:
            query: a row of a ranking with ``qq_score``.
            docno: by default that of the row.

        Raises:
            AskedError: the row has no ``qq_score``.
            UnknownIdError: the store does not hold the answer.
        """
        asked = read_asked(query, docno, self.label, ["qq_score"])
        share, weight = float(self.vote_shares([asked.docno])[0]), float(asked.row["qq_score"])
        part = Part(self.label, "votes", similarity=share, weight=weight, contribution=weight * share)
        return asked.explained([part])
