"""Rankings of questions and of answers, turned into each other by a thread store.

::

    ranking of questions ── ThreadAnswers ──▶ all their answers         + question_docno, qq_score
    ranking of answers ──── ThreadQuestions ▶ the same rows             + question_docno
                       ──── ThreadMetadata ─▶ the same rows             + votes, comments, accepted, tag_overlap
    either ──────────────── BestAnswer ─────▶ the threads' best answers + question_docno
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import empty_output, ordered_by_score
from pyterrier_mathamr._common.transformers import Transformer

from .records import tags_of

if TYPE_CHECKING:
    from .thread_store import ThreadStore

_RESULT = ("docno", "score", "rank")
_OF_DOCUMENT = {"docid", "html", "text", "markdown", "graph", "formula_ids", "question_docno", "qq_score"}
_FEATURES = ("votes", "comments", "accepted", "tag_overlap")


class _OfThreads(Transformer):
    """A transformer that looks posts up in a store."""

    def __init__(self, threads: ThreadStore) -> None:
        super().__init__()
        self.threads = threads


class ThreadAnswers(_OfThreads):
    """Replaces each question of a ranking by all of its answers; see :meth:`ThreadStore.answers`.

    Answers have the score of their question, so those of one question are ordered by docno. Columns that describe the
    question's text (``html``, ``text``, ``doc_…``) are dropped.

    Example::

        questions >> threads.answers()

    Args:
        threads: the store.
    """

    label = "answers"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Look up the answers.

        Args:
            inp: ``qid``, ``docno`` (a question), ``score``.

        Returns:
            The columns of queries, ``docno`` (an answer), ``question_docno``, ``qq_score`` (the question's score),
            ``score`` (the same) and ``rank``; no row for a question without answers.

        Raises:
            UnknownIdError: some questions are not in the store; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["score"], context=self)
        kept = _query_columns(inp)
        if inp.empty:
            return empty_output(inp[kept], ["docno", "question_docno", "qq_score", "score", "rank"])
        self.threads.posts(inp["docno"].tolist())
        answers = self.threads.answers_of(inp["docno"])
        found = [[answer.id for answer in answers.get(question, ())] for question in inp["docno"]]
        places = np.repeat(np.arange(len(inp)), [len(some) for some in found])
        rows = inp.iloc[places].reset_index(drop=True)
        result = rows[kept].assign(
            docno=pd.Series([name for some in found for name in some], dtype="str"),
            question_docno=rows["docno"],
            qq_score=rows["score"],
        )
        return ordered_by_score(result, rows["score"])


class ThreadQuestions(_OfThreads):
    """Adds the question of each answer of a ranking; see :meth:`ThreadStore.questions`.

    Example::

        bm25 >> threads.questions()

    Args:
        threads: the store.
    """

    label = "questions"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Look up the questions.

        Args:
            inp: ``docno``.

        Returns:
            The rows with ``question_docno``: the question of an answer, empty where the collection has none, and a
            question itself.

        Raises:
            UnknownIdError: some answers are not in the store; it names them.
        """
        with pt.validate.any(inp, context=self) as check:
            check.columns(includes=["docno"])
        if inp.empty:
            return empty_output(inp, ["question_docno"])
        result: pd.DataFrame = inp.assign(question_docno=_threads_of(self.threads, inp["docno"]))
        return result


class ThreadMetadata(_OfThreads):
    """Adds what readers said of each answer of a ranking; see :meth:`ThreadStore.metadata`.

    These are features of the ranker of Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval"
    (dissertation, 2022), section 5.3. Unknown values are 0; one warning names columns that are unknown of all posts.

    Example::

        candidates >> threads.metadata()

    Args:
        threads: the store.
    """

    label = "metadata"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Look up the features.

        Args:
            inp: ``docno``, and ``tags`` of the topic where it has some: a list, or names separated by blanks.

        Returns:
            The rows with ``votes`` and ``comments`` (int64), ``accepted`` (0 or 1) and ``tag_overlap``: the share of
            the topic's tags that the answer's question has, 0 for a topic without tags.

        Raises:
            UnknownIdError: some answers are not in the store; it names them.
        """
        with pt.validate.any(inp, context=self) as check:
            check.columns(includes=["docno"])
        if inp.empty:
            return empty_output(inp, _FEATURES)
        self.threads.tell_unknown("votes", "comments", "accepted")
        posts = self.threads.posts(inp["docno"].tolist())
        questions = {post.id: post for post in self.threads.known_posts(post.question_id for post in posts)}
        topics = inp["tags"] if "tags" in inp.columns else [()] * len(inp)
        of_threads = [questions.get(post.question_id) for post in posts]
        result: pd.DataFrame = inp.assign(
            votes=np.array([post.votes or 0 for post in posts], dtype=np.int64),
            comments=np.array([post.comments or 0 for post in posts], dtype=np.int64),
            accepted=np.array(
                [int(q is not None and q.accepted_id == p.id) for q, p in zip(of_threads, posts, strict=True)],
                dtype=np.int64,
            ),
            tag_overlap=[
                _overlap(tags_of(topic), question.tags if question else ())
                for topic, question in zip(topics, of_threads, strict=True)
            ],
        )
        return result


class BestAnswer(_OfThreads):
    """Replaces each post of a ranking by the best answer of its thread; see :meth:`ThreadStore.best_answers`.

    A thread has the best of its scores. This is the "re-map" of Zhong, Xie and Lin, "Applying Structural and Dense
    Semantic Matching for the ARQMath Lab 2022" (CLEF 2022), section 4.7: the paper looks for the most similar question,
    the published program for the first ranked answer, whose thread it takes; a ranking of either may be given.

    Example::

        bm25 >> threads.best_answer()

    Args:
        threads: the store.
    """

    label = "best answer"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Look up the best answers.

        Args:
            inp: ``qid``, ``docno`` (an answer or a question), ``score``.

        Returns:
            The columns of queries, ``docno`` (the best answer), ``question_docno``, ``score`` and ``rank``; no row for
            a thread without answers.

        Raises:
            UnknownIdError: some posts are not in the store; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["score"], context=self)
        kept = _query_columns(inp)
        if inp.empty:
            return empty_output(inp[kept], ["docno", "question_docno", "score", "rank"])
        self.threads.tell_unknown("votes", "accepted")
        questions = _threads_of(self.threads, inp["docno"])
        best = self.threads.best_answers(questions)
        # an answer of no known thread stands for itself
        docnos = [best.get(of, "") if of else name for of, name in zip(questions, inp["docno"], strict=True)]
        rows = inp[kept].assign(docno=docnos, question_docno=questions, score=inp["score"]).reset_index(drop=True)
        rows = rows[rows["docno"] != ""]
        rows = rows.sort_values("score", ascending=False, kind="stable").drop_duplicates(["qid", "docno"]).sort_index()
        return ordered_by_score(rows, rows["score"])


def _threads_of(threads: ThreadStore, docnos: Iterable[str]) -> list[str]:
    return [post.question_id for post in threads.posts(list(docnos))]


def _query_columns(frame: pd.DataFrame) -> list[str]:
    """List the columns that stay where a document is replaced by another one."""
    dropped = {*_RESULT, *_OF_DOCUMENT}
    return [name for name in frame.columns if name not in dropped and not str(name).startswith("doc_")]


def _overlap(topic: Sequence[str], question: Sequence[str]) -> float:
    """Compute |T ∩ A| / |T|."""
    return len({*topic} & {*question}) / len(topic) if topic else 0.0
