r"""Read the hand-written sample collection: questions with their answers, and topics with their judgments.

A file has several entries. Lines that begin with one or two number signs are its only structure; the text between them
is the Markdown of ``markup.py``::

    # harmonic-diverges                    # A.901
    Title: Why does $\sum 1/n$ diverge?    Title: ...
    Tags: sequences-and-series             Tags: ...
    Posted: 2013-04-02                     Formula: \sum\frac{1}{n}      (the formula topic B.901)
    Votes: 7
                                           Text of the topic.
    Text of the question.
                                           ## Answers
    ## 12 votes, accepted                  3: harmonic-diverges.1 harmonic-diverges.2
    Text of the first answer.              0: coupon-collector.1
                                           ## Formulas
    ## answer                              3: \sum_{n=1}^\infty \frac{1}{n}
    Text of an answer without votes.       1: \sum_{n=1}^\infty \frac{1}{n^2}

Answers are named by their question and their position in it, from 1. ``Posted`` and ``Votes`` are optional. Answers
that a topic does not name are irrelevant to it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HEADING = re.compile(r"^# (?P<name>\S+)$", re.M)
SUBHEADING = re.compile(r"^## (.+)$", re.M)
FIELD = re.compile(r"^([A-Z][a-z]+): (.+)$")
VOTES = re.compile(r"(-?\d+) votes")
JUDGMENT = re.compile(r"^([0-3]): (.+)$")


class Section(NamedTuple):
    """One entry of a file: name, header fields, text, and the parts below second-level headings."""

    name: str
    fields: dict[str, str]
    text: str
    parts: list[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """An answer; ``votes`` is None if the row has no score."""

    text: str
    votes: int | None
    accepted: bool


@dataclass(frozen=True)
class Question:
    """A question with its answers."""

    name: str
    title: str
    text: str
    tags: tuple[str, ...]
    posted: datetime.datetime | None
    votes: int | None
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Topic:
    """A topic with graded answer names (Task 1), its formula, and graded LaTeX of the collection (Task 2)."""

    number: str
    title: str
    text: str
    tags: tuple[str, ...]
    formula: str
    answers: tuple[tuple[int, str], ...]
    formulas: tuple[tuple[int, str], ...]


def sections(text: str) -> Iterator[Section]:
    """Split a file at its first-level headings."""
    pieces = HEADING.split(text)
    for name, content in zip(pieces[1::2], pieces[2::2], strict=True):
        body, *parts = SUBHEADING.split(content)
        header, _, body = body.strip().partition("\n\n")
        found = (FIELD.match(line) for line in header.splitlines())
        fields = {match.group(1): match.group(2) for match in found if match}
        texts = [part.strip("\n") for part in parts[1::2]]
        yield Section(name, fields, body.strip("\n"), list(zip(parts[0::2], texts, strict=True)))


def tags_of(section: Section) -> tuple[str, ...]:
    """Return the comma-separated tags of an entry."""
    return tuple(tag.strip() for tag in section.fields["Tags"].split(","))


def answer_of(heading: str, text: str) -> Answer:
    """Return an answer from its heading, such as ``12 votes, accepted`` or ``answer``, and its text."""
    votes = VOTES.search(heading)
    return Answer(text, int(votes.group(1)) if votes else None, "accepted" in heading)


def read_questions(folder: Path) -> list[Question]:
    """Read all questions of a folder, by file name and position."""
    questions = []
    for section in (entry for path in sorted(folder.glob("*.md")) for entry in sections(path.read_text("utf-8"))):
        posted, votes = section.fields.get("Posted"), section.fields.get("Votes")
        questions.append(
            Question(
                name=section.name,
                title=section.fields["Title"],
                text=section.text,
                tags=tags_of(section),
                posted=datetime.datetime.fromisoformat(posted) if posted else None,
                votes=int(votes) if votes else None,
                answers=tuple(answer_of(*part) for part in section.parts),
            )
        )
    return questions


def graded(text: str) -> Iterator[tuple[int, str]]:
    """Read the judgment lines ``grade: what`` of a part."""
    for line in text.splitlines():
        match = JUDGMENT.match(line)
        if line and not match:
            raise ValueError(f"not a judgment: {line!r}; write a grade 0-3, a colon, a space and the target")
        if match:
            yield int(match.group(1)), match.group(2).strip()


def read_topics(folder: Path) -> list[Topic]:
    """Read all topics of a folder, by file name and position."""
    topics = []
    for section in (entry for path in sorted(folder.glob("*.md")) for entry in sections(path.read_text("utf-8"))):
        parts = dict(section.parts)
        topics.append(
            Topic(
                number=section.name,
                title=section.fields["Title"],
                text=section.text,
                tags=tags_of(section),
                formula=section.fields["Formula"],
                answers=tuple((grade, name) for grade, names in graded(parts["Answers"]) for name in names.split()),
                formulas=tuple(graded(parts["Formulas"])),
            )
        )
    return topics
