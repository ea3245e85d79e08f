"""The posts file of the sample.

The questions precede the answers, which take turns over the questions, so that an answer is far from its question as in
the release.
"""

from __future__ import annotations

import datetime
import html
import itertools

from formulas import Formulas
from source import Answer, Question

FIRST_POST = 101


def attributes(**values: str | int | None) -> str:
    """Return the XML attributes of a row, without values that are None."""
    known = ((name, html.escape(str(value), quote=False)) for name, value in values.items() if value is not None)
    return "".join(' {}="{}"'.format(name, text.replace('"', "&quot;").replace("\n", "&#xA;")) for name, text in known)


def moment(time: datetime.datetime | None, answer: int = 0) -> str | None:
    """Return a creation date; each answer is a few hours after the previous one."""
    return (time + datetime.timedelta(hours=7 * answer)).isoformat(timespec="milliseconds") if time else None


def number_posts(questions: list[Question]) -> tuple[dict[str, str], list[tuple[int, Question, Answer]]]:
    """Number questions and answers.

    Returns:
        Post ids by name (``question`` or ``question.place``), and place, question and answer in the order of the ids.
    """
    ids = {question.name: str(FIRST_POST + i) for i, question in enumerate(questions)}
    if len(ids) < len(questions):
        raise ValueError("two questions have the same name")
    turns = itertools.zip_longest(*([(i, q, a) for i, a in enumerate(q.answers, 1)] for q in questions))
    answers = [entry for turn in turns for entry in turn if entry]
    ids |= {f"{q.name}.{i}": str(FIRST_POST + len(questions) + n) for n, (i, q, _) in enumerate(answers)}
    return ids, answers


def posts_xml(questions: list[Question], formulas: Formulas) -> tuple[str, dict[str, str]]:
    """Return the posts file, and the post ids by name."""
    ids, answers = number_posts(questions)
    rows = []
    for q in questions:
        own = ids[q.name]
        accepted = next((ids[f"{q.name}.{i}"] for i, answer in enumerate(q.answers, 1) if answer.accepted), None)
        title = formulas.html(q.title, own, own, "title")
        body = formulas.html(q.text, own, own, "question")
        head = attributes(Id=own, PostTypeId=1, AcceptedAnswerId=accepted, CreationDate=moment(q.posted), Score=q.votes)
        rows.append(head + attributes(Title=title, Body=body, Tags="".join(f"<{tag}>" for tag in q.tags)))
    for i, q, answer in answers:
        own, parent = ids[f"{q.name}.{i}"], ids[q.name]
        body = formulas.html(answer.text, own, parent, "answer")
        head = attributes(Id=own, PostTypeId=2, CreationDate=moment(q.posted, i), Score=answer.votes)
        rows.append(head + attributes(Body=body, ParentId=parent))
    lines = "".join(f"   <row{row}/>\n" for row in rows)
    return f'<?xml version="1.0" encoding="utf-8"?>\n<posts>\n{lines}</posts>\n', ids
