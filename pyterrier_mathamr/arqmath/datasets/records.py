"""Records of ir_datasets: documents, queries and judgments.

This module has no ``from __future__ import annotations``: PyTerrier's text loader offers the fields whose annotation
*is* ``str``, which a postponed annotation is not.
"""

from typing import NamedTuple


class ARQMathDoc(NamedTuple):
    """A post: an answer in Task 1, an answer or a question in Task 2."""

    doc_id: str
    kind: str  # "question" or "answer"
    parent_id: str  # the question of an answer; "" for a question
    title: str  # HTML; "" for an answer
    body: str  # HTML with the formula ids
    text: str  # title and body as plain text, formulas as $latex$
    tags: str  # separated by spaces; "" for an answer
    accepted_answer_id: str  # "" if the question has none
    score: int | None  # votes
    date: str | None

    def default_text(self) -> str:
        return self.text


class ARQMathFormula(NamedTuple):
    """A formula of a post, from the table of LaTeX."""

    doc_id: str  # the formula's id
    post_id: str
    thread_id: str  # the question of that post
    type: str  # "title", "question", "answer" or "comment"
    visual_id: str  # shared by visually identical formulas; "" if the table has none
    latex: str

    def default_text(self) -> str:
        return self.latex


class Task1Query(NamedTuple):
    """A topic of tasks 1 and 3: a question whose answers are searched for."""

    query_id: str
    title: str  # HTML with the formula ids
    body: str  # HTML with the formula ids
    tags: str  # separated by spaces
    text: str  # title and body as plain text, formulas as $latex$

    def default_text(self) -> str:
        return self.text


class Task2Query(NamedTuple):
    """A topic of Task 2: a formula within its question."""

    query_id: str
    title: str
    body: str
    tags: str
    text: str
    formula_id: str  # of the formula that is searched for, in title or body: q_6
    latex: str  # of that formula, without dollars
    topic_id: str  # query_id of the topic of Task 1 with the same question

    def default_text(self) -> str:
        return self.latex


class ARQMathQrel(NamedTuple):
    """A judgment: of a post in Task 1, a formula or visual id in Task 2, an answer of the pool in Task 3."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str
