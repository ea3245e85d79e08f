"""Rankings of questions and of answers, turned into each other by a thread store, and the texts of posts.

::

    ranking of questions ── ThreadAnswers ────▶ all their answers         + question_docno, qq_score
    ranking of answers ──── ThreadQuestions ──▶ the same rows             + question_docno
                       ──── ThreadMetadata ───▶ the same rows             + votes, comments, accepted, tag_overlap
    either ──────────────── BestAnswer ───────▶ the threads' best answers + question_docno
           ──────────────── ThreadTextLoader ─▶ the same rows             + html
    documents ───────────── WithQuestion ─────▶ the same rows             title and html with the question in front
              ───────────── ParentTitles ─────▶ the same rows             + parent_title
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.extending import ColumnAdder, Transformer, documents, empty_output, is_missing, ordered_by_score
from pyterrier_mathamr.posts import DOCUMENT_COLUMNS, document_html

if TYPE_CHECKING:
    from .thread_store import ThreadStore

_RESULT = ("docno", "score", "rank")
_OF_DOCUMENT = {
    "docid",
    "html",
    "text",
    "markdown",
    "parent_title",
    "graph",
    "formula_ids",
    "question_docno",
    "qq_score",
}
_TAG = re.compile(r"[^<>|,\s]+")


class _OfThreads(Transformer):
    """A transformer that looks posts up in a store."""

    def __init__(self, threads: ThreadStore) -> None:
        super().__init__()
        self.threads = threads


class _Adder(_OfThreads):
    """Adds columns about ``docno`` to the rows of a frame."""

    adds: ClassVar[tuple[str, ...]]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the columns that the class names."""
        pt.validate.columns(inp, includes=["docno"], context=self)
        if inp.empty:
            return empty_output(inp, self.adds)
        columns = zip(self.adds, self.columns(inp), strict=True)
        result: pd.DataFrame = inp.assign(**{name: list(values) for name, values in columns})
        return result

    def columns(self, inp: pd.DataFrame) -> Iterable[Iterable[Any]]:
        """Compute the columns, each with a value for each row."""
        raise NotImplementedError


class ThreadAnswers(_OfThreads):
    """Replaces each question of a ranking by all of its answers, by docno, with the score of the question.

    Columns that describe the question's text (``html``, ``text``, ``doc_…``) are dropped.

    Example::

        questions >> threads.answers()
    """

    label = "answers"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Look up the answers of ``docno``, a question with a ``score``, which becomes ``qq_score``."""
        pt.validate.result_frame(inp, extra_columns=["score"], context=self)
        kept = _query_columns(inp)
        if inp.empty:
            return empty_output(inp[kept], ["docno", "question_docno", "qq_score", "score", "rank"])
        self.threads.posts(_docnos(inp))
        answers = self.threads.answers_of(_docnos(inp))
        found = [[answer.id for answer in answers.get(question, ())] for question in _docnos(inp)]
        places = np.repeat(np.arange(len(inp)), [len(some) for some in found])
        rows = inp.iloc[places].reset_index(drop=True)
        result = rows[kept].assign(
            docno=pd.Series([name for some in found for name in some], dtype="str"),
            question_docno=rows["docno"],
            qq_score=rows["score"],
        )
        return ordered_by_score(result, rows["score"])


class ThreadQuestions(_Adder):
    """Adds the question of each answer of a ranking.

    The column ``question_docno`` has an answer's question, empty if unknown; a question has itself.

    Example::

        bm25 >> threads.questions()
    """

    label, adds = "questions", ("question_docno",)

    def columns(self, inp: pd.DataFrame) -> list[list[str]]:
        return [_threads_of(self.threads, _docnos(inp))]


class ThreadMetadata(_Adder):
    """Adds votes, comments and other data of readers to each answer of a ranking.

    The columns are ``votes`` and ``comments`` (int64), ``accepted`` (0 or 1) and ``tag_overlap``: the share of the
    topic's ``tags`` (a list, or names separated by blanks) that the answer's question has, 0 for a topic without tags.
    Unknown values are 0; one warning names columns that are unknown for all posts.

    Example::

        candidates >> threads.metadata()
    """

    label, adds = "metadata", ("votes", "comments", "accepted", "tag_overlap")

    def columns(self, inp: pd.DataFrame) -> Iterable[tuple[float, ...]]:
        self.threads.tell_unknown("votes", "comments", "accepted")
        posts = self.threads.posts(_docnos(inp))
        questions = {post.id: post for post in self.threads.known_posts(post.question_id for post in posts)}
        topics = inp["tags"] if "tags" in inp.columns else [()] * len(inp)
        rows = []
        for post, topic in zip(posts, map(tags_of, topics), strict=True):
            question = questions.get(post.question_id)
            accepted = question is not None and question.accepted_id == post.id
            shared = {*topic}.intersection(question.tags if question else ())
            rows.append(
                (post.votes or 0, post.comments or 0, int(accepted), len(shared) / len(topic) if topic else 0.0)
            )
        return zip(*rows, strict=True)


class BestAnswer(_OfThreads):
    """Replaces each post of a ranking by the best answer of its thread, which gets the best score of the thread.

    This is the "re-map" of Zhong, Xie and Lin, "Applying Structural and Dense Semantic Matching for the ARQMath Lab
    2022" (CLEF 2022), section 4.7: the paper looks for the most similar question, the published program for the thread
    of the first ranked answer; both kinds of rankings are accepted.

    Example::

        bm25 >> threads.best_answer()
    """

    label = "best answer"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Look up the best answers of ``docno``, an answer or a question; no row for a thread without answers."""
        pt.validate.result_frame(inp, extra_columns=["score"], context=self)
        kept = _query_columns(inp)
        if inp.empty:
            return empty_output(inp[kept], ["docno", "question_docno", "score", "rank"])
        self.threads.tell_unknown("votes", "accepted")
        questions = _threads_of(self.threads, _docnos(inp))
        best = self.threads.best_answers(questions)
        # an answer without a known thread represents itself
        docnos = [
            best.get(question, "") if question else name for question, name in zip(questions, _docnos(inp), strict=True)
        ]
        rows = inp[kept].assign(docno=docnos, question_docno=questions, score=inp["score"]).reset_index(drop=True)
        rows = rows[rows["docno"] != ""]
        rows = rows.sort_values("score", ascending=False, kind="stable").drop_duplicates(["qid", "docno"]).sort_index()
        return ordered_by_score(rows, rows["score"])


class WithQuestion(_OfThreads):
    """Puts the title and the body of its question before each answer: the documents of a structural search.

    Zhong, Xie and Lin, "Applying Structural and Dense Semantic Matching for the ARQMath Lab 2022" (CLEF 2022), index
    answers in this form.

    Example::

        (threads.with_question() >> BM25Index("threads.bm25").indexer()).index(dataset.get_corpus_iter())
    """

    label = "with question"

    def transform_inputs(self) -> list[list[str]]:
        return [["docno", name] for name in DOCUMENT_COLUMNS]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Set ``title``, the question's, and ``html``, its body and the answer.

        A question, or an answer without a question in the store, keeps its own title and text.
        """
        with pt.validate.any(inp, context=self) as check:
            for name in DOCUMENT_COLUMNS:
                check.columns(includes=["docno", name])
        if inp.empty:
            return empty_output(inp, ["title", "html"])
        questions = _question_texts(self.threads, _docnos(inp))
        rows = [_in_front(row, question) for row, question in zip(documents(inp), questions, strict=True)]
        titles, bodies = zip(*rows, strict=True)
        result: pd.DataFrame = inp.assign(title=list(titles), html=list(bodies))
        return result


class ParentTitles(ColumnAdder, _Adder):
    """Adds the title of its question to each answer, which ``GraphBuilder`` reads before the answer.

    The column ``parent_title`` is HTML, empty for a question, and for an answer whose question the store lacks.

    A question's title before its own answers gives the answer away where the queries are questions of the collection,
    as in known-item search: leave it out there.

    Example::

        (threads.parent_titles() >> graphs >> model.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter())
    """

    label, adds = "parent titles", ("parent_title",)

    def columns(self, inp: pd.DataFrame) -> list[list[str]]:
        return [[title for title, _ in _question_texts(self.threads, _docnos(inp))]]


class ThreadTextLoader(ColumnAdder, _Adder):
    """Adds the text of the posts of a ranking as ``html``, each loaded once; a question's begins with its title.

    Example::

        bm25 >> threads.best_answer() >> threads.text_loader()
    """

    label, adds = "ThreadStore loader", ("html",)

    def columns(self, inp: pd.DataFrame) -> list[list[str]]:
        ids = list(dict.fromkeys(_docnos(inp)))
        texts = {
            name: f"<p>{title}</p>{body}" if title else body
            for name, (title, body) in zip(ids, self.threads.texts(ids), strict=True)
        }
        return [[texts[name] for name in _docnos(inp)]]


def _docnos(frame: pd.DataFrame) -> list[str]:
    """Return the docnos of a ranking as text, as the store has them."""
    return list(map(str, frame["docno"]))


def _question_texts(threads: ThreadStore, docnos: list[str]) -> list[tuple[str, str]]:
    """Return title and body of the question of each answer; empty for a question, and where it is unknown."""
    posts = threads.posts(docnos)
    asked = [post.question_id if post.kind == "answer" else "" for post in posts]
    known = [post.id for post in threads.known_posts(filter(None, asked))]
    texts = dict(zip(known, threads.texts(known), strict=True))
    return [texts.get(name, ("", "")) for name in asked]


def _in_front(row: dict[str, Any], question: tuple[str, str]) -> tuple[str, str]:
    """Return title and HTML of a document with its question."""
    title, body = question
    own_title = row.get("title")
    return title or ("" if is_missing(own_title) else str(own_title)), body + document_html(row)


def tags_of(value: object) -> tuple[str, ...]:
    """Read tags: a list, or ``calculus limits``, ``calculus,limits``, ``<calculus><limits>``."""
    if is_missing(value):
        return ()
    text = value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, Iterable) else str(value)
    return tuple(dict.fromkeys(_TAG.findall(text)))


def _threads_of(threads: ThreadStore, docnos: Iterable[str]) -> list[str]:
    return [post.question_id for post in threads.posts(list(docnos))]


def _query_columns(frame: pd.DataFrame) -> list[str]:
    """List the columns that stay where a document is replaced by another one."""
    dropped = {*_RESULT, *_OF_DOCUMENT}
    return [name for name in frame.columns if name not in dropped and not str(name).startswith("doc_")]
