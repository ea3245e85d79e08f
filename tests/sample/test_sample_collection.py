"""The promises of the bundled sample, checked on the shipped files without the package's own readers."""

import csv
import html
import re
from collections import Counter, defaultdict
from importlib import resources
from pathlib import Path

import pytest
from lxml import etree
from math_core import LatexToMathML

SAMPLE = Path(str(resources.files("pyterrier_mathamr"))) / "data" / "sample"
POST_COLUMNS = ["id", "post_id", "thread_id", "type", "comment_id", "old_visual_id", "visual_id", "issue", "formula"]
TOPIC_COLUMNS = ["id", "topic_id", "thread_id", "type", "formula"]
SPAN = re.compile(r'<span class="math-container" id="([^"]+)">([^<]*)</span>')


def rows_of(name: str) -> tuple[list[str], list[list[str]]]:
    with (SAMPLE / name).open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines, delimiter="\t")
    return header, rows


def qrels_of(task: int) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (SAMPLE / f"qrels/qrels.arqmath-sample-task{task}.txt").read_text("utf-8").splitlines():
        topic, zero, number, grade = line.split("\t")
        assert zero == "0"
        assert number not in found[topic], f"{topic} judges {number} twice"
        found[topic][number] = int(grade)
    return found


@pytest.fixture(scope="module")
def posts() -> dict[str, dict[str, str]]:
    rows = [dict(row.attrib) for row in etree.parse(SAMPLE / "Posts.V1.3.xml").getroot()]
    assert [int(row["Id"]) for row in rows] == sorted({int(row["Id"]) for row in rows})
    return {row["Id"]: row for row in rows}


@pytest.fixture(scope="module")
def answers(posts: dict[str, dict[str, str]]) -> set[str]:
    return {number for number, row in posts.items() if row["PostTypeId"] == "2"}


@pytest.fixture(scope="module")
def topics() -> dict[int, list[dict[str, str]]]:
    trees = {task: etree.parse(SAMPLE / f"topics/Topics_Task{task}_sample.xml").getroot() for task in (1, 2)}
    return {
        task: [{"number": topic.get("number"), **{child.tag: child.text for child in topic}} for topic in tree]
        for task, tree in trees.items()
    }


def test_it_is_as_large_as_promised_described_and_small_enough_for_the_wheel(posts, answers, topics) -> None:
    assert len(posts) - len(answers) >= 64
    assert len(answers) >= 160
    assert len(topics[1]) == len(topics[2]) == 20
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 1_000_000
    text = (SAMPLE / "README.md").read_text("utf-8")
    assert f"| {len(posts) - len(answers)} / {len(answers)} |" in text
    assert f"| {len(rows_of('latex_representation_v3/1.tsv')[1])}, of " in text
    assert "CC0" in text


def test_every_answer_has_a_question_and_every_accepted_answer_belongs_to_its_question(posts, answers) -> None:
    questions = set(posts) - answers
    assert {posts[number]["ParentId"] for number in answers} == questions
    accepted = {
        number: posts[number]["AcceptedAnswerId"] for number in questions if "AcceptedAnswerId" in posts[number]
    }
    assert accepted
    assert all(posts[answer]["ParentId"] == question for question, answer in accepted.items())
    for name in ("Score", "CreationDate"):  # optional ones: on some rows
        assert 0 < sum(name in row for row in posts.values()) < len(posts)


def test_the_latex_table_lists_exactly_the_spans_of_the_posts(posts) -> None:
    header, rows = rows_of("latex_representation_v3/1.tsv")
    assert header == POST_COLUMNS
    spans = {}
    for number, post in posts.items():
        thread, body = post.get("ParentId", number), "answer" if "ParentId" in post else "question"
        for kind, text in (("title", post.get("Title", "")), (body, post["Body"])):
            for key, latex in SPAN.findall(text):
                assert key not in spans
                spans[key] = (number, thread, kind, html.unescape(latex))
            rest = SPAN.sub("", text)
            assert "math-container" not in rest
            assert not re.search(r"[$\\]", rest), f"LaTeX outside a span in post {number}"
    assert {row[0]: (row[1], row[2], row[3], row[8]) for row in rows} == spans


def test_every_slt_cell_is_of_its_formula_and_a_visual_id_is_shared_by_formulas_of_one_look() -> None:
    header, rows = rows_of("slt_representation_v3/1.tsv")
    _, latex = rows_of("latex_representation_v3/1.tsv")
    assert header == POST_COLUMNS
    assert [row[:8] for row in rows] == [row[:8] for row in latex]
    for (*_, cell), (*_, source) in zip(rows, latex, strict=True):
        assert etree.fromstring(cell).get("alttext") == source

    looks = {(row[6], re.sub(' alttext="[^"]*"', "", row[8])) for row in rows}
    assert len(looks) == len({visual for visual, _ in looks}) == len({look for _, look in looks})
    assert all(row[5] == row[6] for row in rows)


def all_latex() -> list[str]:
    return sorted(
        {row[-1] for row in rows_of("latex_representation_v3/1.tsv")[1]}
        | {row[-1] for row in rows_of("topics/Topics_Formulas_Latex_sample.tsv")[1]}
    )


def test_every_latex_converts() -> None:
    for latex in all_latex():
        assert LatexToMathML().convert_with_local_state(latex, displaystyle=False).startswith("<math")


def test_answers_are_judged_as_promised(answers, topics) -> None:
    judged = qrels_of(1)
    assert sorted(judged) == [topic["number"] for topic in topics[1]]
    for topic, grades in judged.items():
        counts = Counter(grades.values())
        assert set(grades) <= answers, topic
        assert len(grades) >= 8
        assert counts[2] + counts[3] >= 2
        assert min(counts[0], counts[1], counts[3]) >= 1
        assert set(counts) <= {0, 1, 2, 3}


def test_formulas_are_judged_as_promised(topics) -> None:
    judged = qrels_of(2)
    known = {row[0]: row[6] for row in rows_of("latex_representation_v3/1.tsv")[1]}
    assert sorted(judged) == [topic["number"] for topic in topics[2]]
    for topic, grades in judged.items():
        assert set(grades) <= set(known), topic
        assert len(grades) >= 6
        assert {0, 1, 2, 3} == set(grades.values())
        by_look = {(known[number], grade) for number, grade in grades.items()}
        assert len(by_look) == len({look for look, _ in by_look}), f"{topic} grades one look in two ways"


@pytest.mark.parametrize("kind", ["Latex", "SLT"])
def test_topic_tables_list_exactly_the_spans_of_the_topics(topics, kind: str) -> None:
    header, rows = rows_of(f"topics/Topics_Formulas_{kind}_sample.tsv")
    assert header == TOPIC_COLUMNS
    spans = [
        (key, topic["number"], where, html.unescape(latex).strip("$"))
        for topic in topics[1]
        for where, text in (("title", topic["Title"]), ("body", topic["Question"]))
        for key, latex in SPAN.findall(text)
    ]
    latex = [row[4] if kind == "Latex" else etree.fromstring(row[4]).get("alttext") for row in rows]
    assert [(*row[:2], row[3], source) for row, source in zip(rows, latex, strict=True)] == spans
    assert [key for key, *_ in spans] == [f"q_{i}" for i in range(1, len(spans) + 1)]


def test_a_formula_topic_asks_for_a_formula_of_its_answer_topic(topics) -> None:
    spans = {key: html.unescape(latex) for t in topics[1] for key, latex in SPAN.findall(t["Title"] + t["Question"])}
    for answer_topic, formula_topic in zip(topics[1], topics[2], strict=True):
        assert formula_topic["number"] == answer_topic["number"].replace("A.", "B.")
        assert formula_topic["Formula_Id"] in answer_topic["Title"] + answer_topic["Question"]
        assert spans[formula_topic["Formula_Id"]].strip("$") == formula_topic["Latex"]
        assert {key: formula_topic[key] for key in answer_topic if key != "number"} == {
            key: text for key, text in answer_topic.items() if key != "number"
        }


def test_no_topic_repeats_a_question_of_the_collection(posts, topics) -> None:
    plain = {re.sub(r"<[^>]*>|[\W_]+", "", post["Title"]).lower() for post in posts.values() if "Title" in post}
    assert plain.isdisjoint(re.sub(r"<[^>]*>|[\W_]+", "", topic["Title"]).lower() for topic in topics[1])


def test_tables_end_their_lines_as_the_release_does() -> None:
    for path in SAMPLE.rglob("*.tsv"):
        data = path.read_bytes()
        assert data.endswith(b"\r\n")
        assert data.count(b"\n") == data.count(b"\r\n")
    for path in SAMPLE.rglob("qrels.*.txt"):
        assert b"\r" not in path.read_bytes()
