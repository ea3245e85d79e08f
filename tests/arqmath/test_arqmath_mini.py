"""The readers give the counts that are known of a real part of the collection."""

from collections import Counter
from pathlib import Path

import ir_datasets
import pytest

from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_split, register_arqmath
from pyterrier_mathamr.formula import read_formula_table


@pytest.fixture(scope="module")
def mini(shared_data: Path) -> ARQMathCollection:
    return ARQMathCollection(shared_data / "arqmath-mini")


def test_posts_and_containers_without_an_id(mini: ARQMathCollection) -> None:
    kinds: Counter[str] = Counter()
    without_id = 0
    for post in mini.posts():
        kinds[post.kind] += 1
        html = post.title + post.body
        without_id += html.count('class="math-container"') - html.count('class="math-container" id=')
    assert kinds == {"question": 2769, "answer": 3395}
    assert without_id == 562


def test_formulas_by_type(mini: ARQMathCollection) -> None:
    rows = [row for table in mini.latex_tables for row in read_formula_table(table)]
    assert Counter(row.type for row in rows) == {"title": 1930, "question": 19053, "answer": 41148}
    assert len({row.id for row in rows}) == 62131
    assert len({row.visual_id for row in rows}) == 31061


def test_pairs_links_and_the_known_item_split(mini: ARQMathCollection) -> None:
    pairs = list(mini.pairs())
    assert set(pairs) == {(answer.parent_id, answer.id) for answer in mini.answers()}
    assert len(pairs) == 3395
    assert Counter(link.kind for link in mini.links()) == {"duplicate": 1616, "related": 5411}
    split = Counter(known_item_split(question.id) for question in mini.questions())
    assert split == {"train": 2175, "validation": 304, "test": 290}


@pytest.mark.parametrize(
    ("year", "task", "judged", "complete", "grades", "topics", "relevant"),
    [
        (2020, 1, "formula", True, (35051, 2269, 1071, 733), 77, 77),
        (2020, 1, "formula", False, (419, 78, 56, 69), 76, 47),
        (2022, 1, "formula", True, (26983, 4921, 2076, 867), 78, 78),
        (2022, 1, "formula", False, (427, 133, 107, 56), 78, 62),
        (2020, 2, "formula", True, (7890, 718, 553, 2954), 45, 45),
        (2020, 2, "formula", False, (74, 15, 25, 83), 41, 26),
        (2020, 2, "visual", True, (4841, 453, 357, 423), 45, 45),
        (2020, 2, "visual", False, (222, 23, 27, 48), 45, 26),
        (2022, 2, "formula", True, (9873, 2507, 2089, 1720), 76, 76),
        (2022, 2, "formula", False, (74, 97, 99, 134), 65, 56),
        (2022, 2, "visual", True, (6733, 1990, 1600, 1215), 76, 76),
        (2022, 2, "visual", False, (616, 95, 100, 123), 76, 61),
    ],
)
def test_judgments(mini: ARQMathCollection, year, task, judged, complete, grades, topics, relevant) -> None:
    qrels = list(mini.qrels(year, task, judged=judged, complete=complete))
    counts = Counter(qrel.relevance for qrel in qrels)
    assert tuple(counts[grade] for grade in range(4)) == grades
    assert len({qrel.query_id for qrel in qrels}) == topics
    assert len({qrel.query_id for qrel in qrels if qrel.relevance >= 2}) == relevant


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_the_codes_5_and_6_of_task_3_are_dropped(mini: ARQMathCollection) -> None:
    assert len(list(mini.qrels(2022, 3))) == 792 - 67 - 3


@pytest.mark.parametrize(("year", "tasks"), [(2020, (98, 85)), (2022, (100, 100))])
def test_topics_of_task_2_are_posed_in_questions_of_task_1(
    mini: ARQMathCollection, year: int, tasks: tuple[int, int]
) -> None:
    questions = {topic.id: topic for topic in mini.topics(year, 1)}
    formulas = list(mini.topics(year, 2))
    assert (len(questions), len(formulas)) == tasks
    for topic in formulas:
        assert topic.title == questions[topic.topic_id].title
        assert f'id="{topic.formula_id}"' in topic.title + topic.body


def test_the_datasets_read_the_folder_unchanged(mini: ARQMathCollection) -> None:
    register_arqmath(mini.path)
    dataset = ir_datasets.load("arqmath/2022/task1")
    assert dataset.docs_count() == sum(1 for _ in mini.answers())
    assert ir_datasets.load("arqmath/2022/task2").docs_count() == 6164
    assert sum(1 for _ in ir_datasets.load("arqmath/2022/task2").qrels_iter()) == 404
    queries = {query.query_id: query for query in dataset.queries_iter()}
    assert queries["A.301"].text.startswith(
        "Inequality between norm 1,norm 2 and norm $\\infty$ of Matrices\nSuppose $A$ is"
    )
    assert "math-container" not in "".join(query.text for query in queries.values())
