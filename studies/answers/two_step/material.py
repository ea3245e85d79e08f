"""What the models of the two-step search are trained on, read from a collection: texts by name, and pairs of names.

No question of the test part is in any of it, and no topic but those of the other years.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pyterrier_mathamr.amr import get_parser
from pyterrier_mathamr.arqmath import known_item_split
from pyterrier_mathamr.arqmath.files.pairs import Link
from pyterrier_mathamr.graph import build_graphs
from pyterrier_mathamr.posts import MathPost, plain_text, post_from_any, post_from_html
from pyterrier_mathamr.store import replace_file, writing
from pyterrier_mathamr.systems.two_step import linearise
from pyterrier_mathamr.systems.two_step.qasim import TARGETS
from pyterrier_mathamr.systems.two_step.texts import View
from studies.answers.parts import AnswerParts

_BATCH = 64


class QuestionTexts(NamedTuple):
    """The texts of a question, empty where the collection lacks them; formulas as LaTeX between dollars."""

    title: str
    body: str

    @property
    def whole(self) -> str:
        """Title and body."""
        return "\n".join(filter(None, self))

    def part(self, view: View) -> str:
        """Return what a model of a view reads; the model cuts bodies."""
        return self.title if view == "title" else self.whole if view == "whole" else self.body


class LinkedTexts(NamedTuple):
    """Two linked questions.

    Attributes:
        kind: ``duplicate`` or ``related``.
        held_out: a question of the validation part is among them: to choose by, not to train on.
        names: of both questions.
        left: the texts of one.
        right: those of the other.
    """

    kind: str
    held_out: bool
    names: tuple[str, str]
    left: QuestionTexts
    right: QuestionTexts


class Judged(NamedTuple):
    """A topic, an answer, and what is learned of its grade."""

    topic: str
    answer: str
    target: float


def question_texts(parts: AnswerParts) -> dict[str, QuestionTexts]:
    """Read the questions of the collection."""

    def read() -> dict[str, QuestionTexts]:
        return {
            post.id: QuestionTexts(plain_text(post_from_html(post.title)), plain_text(post_from_html(post.body)))
            for post in parts.shared.collection.questions()
        }

    return parts.once("question texts", read)


def topic_frame(parts: AnswerParts, year: str) -> pd.DataFrame:
    """Read all topics of a year: ``qid``, ``query``, ``title``, ``body`` and ``tags``."""
    topics = list(parts.shared.collection.topics(year))
    columns = {
        "qid": [topic.id for topic in topics],
        "query": [plain_text(post_from_any(topic.body, topic.title)) for topic in topics],
        "title": [topic.title for topic in topics],
        "body": [topic.body for topic in topics],
        "tags": [" ".join(topic.tags) for topic in topics],
    }
    return pd.DataFrame(columns)


def link_name(number: int) -> str:
    """Name the question that a link leads to, where the collection has its title alone."""
    return f"link {number}"


def linked_texts(parts: AnswerParts) -> list[LinkedTexts]:
    """Read the links between questions, without those of a question of the test part."""

    def read() -> list[LinkedTexts]:
        known, found = question_texts(parts), []
        for number, link in enumerate(parts.shared.collection.links()):
            splits = {known_item_split(link.question_id), known_item_split(link.related_id)}
            if link.question_id in known and link.question_id != link.related_id and "test" not in splits:
                name, right = _target(number, link, known)
                left = known[link.question_id]
                held_out = "validation" in splits
                found.append(LinkedTexts(link.kind, held_out, (link.question_id, name), left, right))
        return found

    return parts.once("linked texts", read)


def _target(number: int, link: Link, known: dict[str, QuestionTexts]) -> tuple[str, QuestionTexts]:
    if link.related_id in known:
        return link.related_id, known[link.related_id]
    return link_name(number), QuestionTexts(link.title, "")


def judged(parts: AnswerParts, year: str) -> list[Judged]:
    """Read the judgments of a year whose answers are in the collection."""
    answers = parts.shared.bm25
    return [
        Judged(row.query_id, row.doc_id, TARGETS[min(row.relevance, 3)])
        for row in parts.shared.collection.qrels(year)
        if row.doc_id in answers
    ]


def answer_texts(parts: AnswerParts) -> dict[str, str]:
    """Read the answers of the collection."""
    return parts.once(
        "answer texts, plain",
        lambda: {post.id: plain_text(post_from_html(post.body)) for post in parts.shared.collection.answers()},
    )


def linearised(parts: AnswerParts) -> dict[str, str]:
    """Return linearised graphs: of titles as ``title ID``, of bodies as ``body ID``, ID of a post, topic or link."""

    def build(path: Path) -> None:
        found: dict[str, str] = {}
        waiting: list[tuple[str, MathPost]] = []
        for named in _posts(parts):
            waiting.append(named)
            if len(waiting) == _BATCH:
                found |= _linearised(waiting, parts)
                waiting = []
        found |= _linearised(waiting, parts)
        with writing(path):
            replace_file(path, gzip.compress(json.dumps(found).encode(), compresslevel=1, mtime=0))

    path = parts.stage("linearised", build, parser="dependency", years=list(parts.years))
    read: dict[str, str] = parts.once("linearised", lambda: json.loads(gzip.decompress(path.read_bytes())))
    return read


def _linearised(named: list[tuple[str, MathPost]], parts: AnswerParts) -> dict[str, str]:
    names, posts = [name for name, _ in named], [post for _, post in named]
    graphs = build_graphs(names, posts, get_parser("dependency"), "opt", parts.shared.formulas)
    return {name: "" if graph.is_empty else linearise(graph) for name, graph in zip(names, graphs, strict=True)}


def _posts(parts: AnswerParts) -> Iterator[tuple[str, MathPost]]:
    collection = parts.shared.collection
    known = set()
    for question in collection.questions():
        known.add(question.id)
        yield f"title {question.id}", post_from_html(question.title)
        yield f"body {question.id}", post_from_html(question.body)
    for answer in collection.answers():
        yield f"body {answer.id}", post_from_html(answer.body)
    for number, link in enumerate(collection.links()):
        if link.related_id not in known and known_item_split(link.related_id) != "test":
            yield f"title {link_name(number)}", post_from_any(link.title)
    for year in parts.years:
        for topic in collection.topics(year):
            yield f"title {topic.id}", post_from_any(topic.title)
            yield f"body {topic.id}", post_from_any(topic.body)
