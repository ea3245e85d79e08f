"""The topics files and judgments of the sample."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable

from formulas import Formulas, mathml
from markup import latex_of
from source import Topic

FIRST_THREAD = 9001
DRAWN = 4
INSTANCES = 5
"""The release has judgments of at most five formulas of one visual id for a topic."""


def topics_xml(rows: Iterable[dict[str, str]]) -> str:
    """Return a topics file; the first item of each row is the number."""
    out = ['<?xml version="1.0" encoding="utf-8"?>\n<Topics>\n']
    for row in rows:
        (_, number), *items = row.items()
        lines = "".join(f"      <{name}>{html.escape(text)}</{name}>\n" for name, text in items)
        out.append(f'   <Topic number="{number}">\n{lines}   </Topic>\n')
    return "".join(out) + "</Topics>\n"


def topic_rows(topics: list[Topic], formulas: Formulas) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the entries of both topics files."""
    tasks: tuple[list[dict[str, str]], list[dict[str, str]]] = ([], [])
    for i, topic in enumerate(topics):
        start, thread = len(formulas.rows), str(FIRST_THREAD + i)
        title = formulas.html(topic.title, topic.number, thread, "title")
        text = formulas.html(topic.text, topic.number, thread, "body")
        content = {"Title": title, "Question": text, "Tags": ",".join(topic.tags)}
        chosen = [row[0] for row in formulas.rows[start:] if row[-1] == latex_of(topic.formula)]
        if not chosen:
            raise ValueError(f"{topic.number}: its text does not contain the formula {topic.formula}")
        tasks[0].append({"number": topic.number, **content})
        latex = latex_of(topic.formula)
        tasks[1].append({"number": formula_topic(topic), "Formula_Id": chosen[0], "Latex": latex, **content})
    return tasks


def formula_topic(topic: Topic) -> str:
    """Return the number of the Task 2 topic: ``B.901`` for ``A.901``."""
    return topic.number.replace("A.", "B.")


def drawn(topic: Topic, name: str) -> bool:
    """Return whether an answer without a grade is judged irrelevant, as a fixed random quarter is."""
    return hashlib.sha256(f"{topic.number} {name}".encode()).digest()[0] % DRAWN == 0


def answer_judgments(topics: list[Topic], ids: dict[str, str]) -> str:
    """Return the Task 1 judgments: topic, 0, answer id, grade.

    Random answers are judged, too: if only answers on a topic's theme were judged, a system would gain by leaving the
    theme, and if only the results of one system were judged, that system would lose.
    """
    answers = [name for name in ids if "." in name]
    unknown = sorted({name for topic in topics for _, name in topic.answers} - set(answers))
    if unknown:
        raise ValueError(f"judged answers that do not exist: {', '.join(unknown)}")
    rows = []
    for topic in topics:
        graded = {name for _, name in topic.answers}
        others = [(0, name) for name in answers if name not in graded and drawn(topic, name)]
        rows += [f"{topic.number}\t0\t{ids[name]}\t{grade}\n" for grade, name in (*topic.answers, *others)]
    return "".join(rows)


def formula_judgments(topics: list[Topic], by_picture: dict[str, list[str]]) -> str:
    """Return the Task 2 judgments (topic, 0, formula id, grade): of the first formulas that look like a judged one."""
    unknown = [(t.number, latex) for t in topics for _, latex in t.formulas if mathml(latex) not in by_picture]
    if unknown:
        raise ValueError("judged formulas that are not in the collection:\n" + "\n".join(map("  ".join, unknown)))
    rows = [
        f"{formula_topic(topic)}\t0\t{number}\t{grade}\n"
        for topic in topics
        for grade, latex in topic.formulas
        for number in by_picture[mathml(latex)][:INSTANCES]
    ]
    return "".join(rows)
