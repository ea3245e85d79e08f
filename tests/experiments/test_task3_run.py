"""Task 3 on a made-up collection: answers are cut from the posts that a system ranks first, and these are measured."""

from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

from mathamr_systems.experiments import System, run_arqmath
from mathamr_systems.experiments.measuring import FLOOR
from mathamr_systems.experiments.systems import BASELINES, AnswerParts
from pyterrier_mathamr.arqmath import read_answers

STEPS = ("one", "two", "three", "four", "five")
SENTENCES = [f"Step {word} shows that $x_{number}$ is even." for number, word in enumerate(STEPS)]
LONG = " ".join([*SENTENCES, "This last sentence is about primes. " * 40])
ANSWERS = {"11": "Divide by $2$.", "12": LONG, "21": "Use the limit of $y$.", "22": "No idea about $y$ at all."}
QRELS = "A.1 0 12 3\nA.1 0 11 0\nA.2 0 21 2\nA.2 0 22 1\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions with two answers each, and two topics."""
    path = tmp_path_factory.mktemp("made-up")
    rows = [f'<row Id="{n}" PostTypeId="1" Title="Question {n}" Body="Is $x$ even?"/>' for n in (1, 2)]
    rows += [f'<row Id="{id}" PostTypeId="2" ParentId="{id[0]}" Body="{text}"/>' for id, text in ANSWERS.items()]
    topics = [
        f'<Topic number="A.{n}"><Title>{title}</Title><Question>{title}?</Question><Tags>a</Tags></Topic>'
        for n, title in ((1, "Why is $x_1$ even"), (2, "What is the limit of $y$"))
    ]
    (path / "Posts.V1.3.xml").write_text("<posts>\n" + "\n".join(rows) + "\n</posts>")
    (path / "Topics_Task1_2022.xml").write_text(f"<Topics>{''.join(topics)}</Topics>")
    (path / "qrels.arqmath-2022-task1.txt").write_text(QRELS)
    return path


def test_each_system_answers_in_whole_sentences_and_has_the_grades_of_its_sources(folder: Path, tmp_path: Path) -> None:
    def by_hand(parts: AnswerParts) -> pt.Transformer:
        ranking = [("A.1", "12", 2.0, 0), ("A.1", "11", 1.0, 1), ("A.2", "22", 1.0, 0)]
        return pt.apply.generic(lambda _: pd.DataFrame(ranking, columns=["qid", "docno", "score", "rank"]))

    options = {"model": "mathamr-plus-mini", "systems": [System("By hand", by_hand, known=False)], "verbose": False}
    report = run_arqmath(folder, 2022, tmp_path, task=3, **options)
    table = report.tables["Task 3, 2022"].set_index("name")
    assert list(table.index) == [*BASELINES, "By hand", FLOOR]
    assert table.loc["By hand", "AR'"] == (3 + 1) / 2
    assert table.loc["By hand", "P(rel=2,judged_only=True)@1"] == 1 / 2
    assert 1 < table.loc[FLOOR, "AR'"] < 2  # expected: (3 + 0) / 2 and (2 + 1) / 2
    answers = read_answers(tmp_path / "task-3" / "2022-by-hand.tsv").set_index("qid")
    assert answers["sources"].tolist() == ["12", "22"]
    assert answers.loc["A.2", "qanswer"] == "No idea about $y$ at all."
    first = answers.loc["A.1", "qanswer"]
    assert first.startswith(" ".join(SENTENCES))
    assert first.endswith(".")
    assert len(first) <= 1200 < len(LONG)
    assert set(read_answers(tmp_path / "task-3" / "2022-bm25.tsv")["qid"]) <= {"A.1", "A.2"}
    again = run_arqmath(folder, 2022, tmp_path, task=3, **options)
    pd.testing.assert_frame_equal(again.tables["Task 3, 2022"], report.tables["Task 3, 2022"])
