"""Builds ``pyterrier_mathamr/data/sample`` from the hand-written sources, in the layout of the ARQMath release.

Run ``python tools/sample/build.py``; the same sources give the same bytes. Post ids grow from file to file: the
questions of the collection first, then the answers, one of each question in turn, so that an answer lies far from its
question as in the release. Formula ids follow the posts. Formulas that look the same (equal Presentation MathML)
share a visual id.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import functools
import html
import io
import itertools
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from markup import inline_html, latex_of, to_html
from math_core import LatexToMathML
from source import Answer, Question, Topic, read_questions, read_topics

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "pyterrier_mathamr" / "data" / "sample"
FIRST_POST = 101
FIRST_THREAD = 9001
INSTANCES = 5
"""The release judges at most five formulas of one visual id for a topic."""
POST_COLUMNS = ("id", "post_id", "thread_id", "type", "comment_id", "old_visual_id", "visual_id", "issue", "formula")
TOPIC_COLUMNS = ("id", "topic_id", "thread_id", "type", "formula")
MATH = re.compile(r"<math[^>]*>(.*)</math>", re.S)
SPACING = re.compile(r'<mspace[^>]*/>| [lr]space="[^"]*"')
SINGLE = re.compile(r"<mrow>(<m[ion]>[^<]*</m[ion]>)</mrow>")
NAMED = re.compile(r"&(?!(?:lt|gt|amp|quot);)\w+;")
TO_MATHML = LatexToMathML()


@functools.cache
def mathml(latex: str) -> str:
    """Presentation MathML of a formula in inline style, without its outer element.

    Spacing hints, needless rows and the entities of HTML are taken out: the release has none, and XML knows none.
    The minus is the one of the keyboard, as LaTeXML writes it.
    """
    match = MATH.fullmatch(TO_MATHML.convert_with_local_state(latex, displaystyle=False))
    if match is None:
        raise ValueError(f"no single math element for {latex}")
    plain = SINGLE.sub(r"\1", SPACING.sub("", match.group(1))).replace("\N{MINUS SIGN}", "-")
    return NAMED.sub(lambda entity: html.unescape(entity.group()), plain)


def slt_cell(latex: str) -> str:
    """The formula as a cell of the slt table."""
    head = f'xmlns="http://www.w3.org/1998/Math/MathML" alttext="{html.escape(latex)}" class="ltx_Math" display="inline"'
    return f"<math {head}><semantics><mrow>{mathml(latex)}</mrow></semantics></math>"


@dataclass
class Formulas:
    """Numbers formulas in the order met and gives each its span.

    Attributes:
        prefix: stands before the number of each id.
        dollars: whether spans keep the dollars (topics) or not (posts).
        rows: id, post id, thread id, type, LaTeX of each formula.
    """

    prefix: str = ""
    dollars: bool = False
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)

    def html(self, text: str, post: str, thread: str, kind: str) -> str:
        """HTML of a title (one line) or a body (blocks), its formulas numbered and kept."""

        def span(latex: str, dollar: str) -> str:
            number = f"{self.prefix}{len(self.rows) + 1}"
            self.rows.append((number, post, thread, kind, latex))
            shown = f"{dollar}{latex}{dollar}" if self.dollars else latex
            return f'<span class="math-container" id="{number}">{html.escape(shown, quote=False)}</span>'

        return inline_html(text, span) if kind == "title" else to_html(text, span)


def attributes(**values: str | int | None) -> str:
    """XML attributes of a row; those that are None are left out."""
    known = ((name, html.escape(str(value), quote=False)) for name, value in values.items() if value is not None)
    return "".join(' {}="{}"'.format(name, text.replace('"', "&quot;").replace("\n", "&#xA;")) for name, text in known)


def moment(time: datetime.datetime | None, answer: int = 0) -> str | None:
    """A creation date; each answer comes some hours after the one before."""
    return time and (time + datetime.timedelta(hours=7 * answer)).isoformat(timespec="milliseconds")


def number_posts(questions: list[Question]) -> tuple[dict[str, str], list[tuple[int, Question, Answer]]]:
    """Give every question and answer its post id.

    Returns:
        ids by name (``question`` or ``question.place``), and place, question and answer in the order of their ids.
    """
    ids = {question.name: str(FIRST_POST + i) for i, question in enumerate(questions)}
    if len(ids) < len(questions):
        raise ValueError("two questions have the same name")
    turns = itertools.zip_longest(*([(i, q, a) for i, a in enumerate(q.answers, 1)] for q in questions))
    answers = [entry for turn in turns for entry in turn if entry]
    ids |= {f"{q.name}.{i}": str(FIRST_POST + len(questions) + n) for n, (i, q, _) in enumerate(answers)}
    return ids, answers


def posts_xml(questions: list[Question], formulas: Formulas) -> tuple[str, dict[str, str]]:
    """The posts file, and the post ids by name."""
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


def table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A formula table: tab separated, quoted like CSV, CR LF."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter="\t", lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def topics_xml(rows: Iterable[dict[str, str]]) -> str:
    """A topics file; the first item of each row is the number."""
    out = ['<?xml version="1.0" encoding="utf-8"?>\n<Topics>\n']
    for row in rows:
        (_, number), *items = row.items()
        lines = "".join(f"      <{name}>{html.escape(text)}</{name}>\n" for name, text in items)
        out.append(f'   <Topic number="{number}">\n{lines}   </Topic>\n')
    return "".join(out) + "</Topics>\n"


def topic_rows(topics: list[Topic], formulas: Formulas) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The entries of both topics files."""
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
    """The number of the Task 2 topic: ``B.901`` for ``A.901``."""
    return topic.number.replace("A.", "B.")


def answer_judgements(topics: list[Topic], ids: dict[str, str]) -> str:
    """The Task 1 judgements: topic, 0, answer id, grade."""
    unknown = sorted({name for topic in topics for _, name in topic.answers} - {n for n in ids if "." in n})
    if unknown:
        raise ValueError(f"judged answers that do not exist: {', '.join(unknown)}")
    return "".join(f"{topic.number}\t0\t{ids[name]}\t{grade}\n" for topic in topics for grade, name in topic.answers)


def formula_judgements(topics: list[Topic], by_picture: dict[str, list[str]]) -> str:
    """The Task 2 judgements: topic, 0, formula id, grade; a judged LaTeX stands for the first formulas that look so."""
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


def files() -> dict[str, str]:
    """The whole sample: contents by path below its folder."""
    questions, topics = read_questions(HERE / "questions"), read_topics(HERE / "topics")
    of_posts, of_topics = Formulas(), Formulas(prefix="q_", dollars=True)
    posts, ids = posts_xml(questions, of_posts)
    task1, task2 = topic_rows(topics, of_topics)
    by_picture: dict[str, list[str]] = {}
    for number, *_, latex in of_posts.rows:
        by_picture.setdefault(mathml(latex), []).append(number)
    visual = {numbers[0]: str(i) for i, numbers in enumerate(by_picture.values(), 1)}
    keys = [(*row[:4], "", *[visual[by_picture[mathml(row[-1])][0]]] * 2, "") for row in of_posts.rows]
    return {
        "Posts.V1.3.xml": posts,
        "latex_representation_v3/1.tsv": table(
            POST_COLUMNS, ((*key, row[-1]) for key, row in zip(keys, of_posts.rows, strict=True))
        ),
        "slt_representation_v3/1.tsv": table(
            POST_COLUMNS, ((*key, slt_cell(row[-1])) for key, row in zip(keys, of_posts.rows, strict=True))
        ),
        "topics/Topics_Task1_sample.xml": topics_xml(task1),
        "topics/Topics_Task2_sample.xml": topics_xml(task2),
        "topics/Topics_Formulas_Latex_sample.tsv": table(TOPIC_COLUMNS, of_topics.rows),
        "topics/Topics_Formulas_SLT_sample.tsv": table(
            TOPIC_COLUMNS, ((*row[:-1], slt_cell(row[-1])) for row in of_topics.rows)
        ),
        "qrels/qrels.arqmath-sample-task1.txt": answer_judgements(topics, ids),
        "qrels/qrels.arqmath-sample-task2.txt": formula_judgements(topics, by_picture),
    }


def main() -> None:
    """Write the sample; an old one is replaced only when the sources were good."""
    parser = argparse.ArgumentParser(description="Build the bundled sample collection from its hand-written sources.")
    parser.add_argument("--out", type=Path, default=TARGET, help="folder to write (default: the package's data)")
    target: Path = parser.parse_args().out
    content = files()
    for name in sorted({path.split("/")[0] for path in content if "/" in path}):
        shutil.rmtree(target / name, ignore_errors=True)
    for path, text in content.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(text.encode("utf-8"))
    shutil.copyfile(HERE / "DATA-README.md", target / "README.md")
    size = sum(len(text.encode("utf-8")) for text in content.values())
    print(f"{target}: {len(content)} files, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
