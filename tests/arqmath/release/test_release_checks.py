"""The contents of a local copy, its soundness and size."""

import gzip
from pathlib import Path

import pytest

from mathamr_systems import release_statistics, verify
from mathamr_systems.release_checks import RoleCheck
from pyterrier_mathamr.arqmath import ARQMathCollection, Item, inventory

POSTS = "Collection/Posts.V1.3.xml"
TABLE = "Formulas/latex_representation_v3/1.tsv"
TASK1 = "Evaluation/ Scripts & Qrels/ARQMath-3/Task 1/Qrel Files/qrel_task1_2022_official.tsv"
TASK2_TOPICS = "Topics/Task2 Topics/ARQMath-3/Topics/Topics_Task2_2022_V0.1.xml"


def item(folder: Path, role: str) -> Item:
    return next(item for item in inventory(folder) if item.role == role)


def finding(folder: Path, role: str) -> RoleCheck:
    return next(finding for finding in verify(folder) if finding.role == role)


def change(file: Path, old: str, new: str) -> None:
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())


@pytest.fixture
def sound(release: Path) -> Path:
    change(release / TABLE, "1\t10\t10\ttitle\t\t7\t77\t\tlisted twice\r\n", "")
    change(release / TASK2_TOPICS, '<Topic number="B.302">', '<Topic number="B.302"><Formula_Id>q_3</Formula_Id>')
    change(release / TASK2_TOPICS, "No formula here.", "id=&quot;q_3&quot;")
    return release


def test_each_role_has_a_file_or_is_missing(release: Path) -> None:
    assert item(release, "posts").files == (release / POSTS,)
    assert item(release, "formulas, latex").files == (release / TABLE,)
    assert (item(release, "formulas, slt").state, item(release, "formulas, slt").needed) == ("missing", True)
    assert (item(release, "training pairs as a table").state, item(release, "topics 2022, task 2").state) == (
        "missing",
        "present",
    )
    assert len({item.role for item in inventory(release)}) == len(inventory(release))


def test_archives_and_gaps_are_reported(release: Path) -> None:
    (release / POSTS).rename(release / "Collection/Posts.V1.3.zip")
    (release / "Formulas/opt_representation_v3.7z").write_text("")
    (release / TABLE).rename(release / "Formulas/latex_representation_v3/4.tsv")
    assert (item(release, "posts").state, item(release, "formulas, opt").state) == ("packed", "packed")
    assert item(release, "formulas, latex")[3:] == ("incomplete", True, "no 1.tsv, 2.tsv, 3.tsv")
    assert not finding(release, "formulas, latex").good


def test_a_sound_part_of_the_release_is_good_and_its_size_is_reported(sound: Path) -> None:
    findings = {found.role: found for found in verify(sound)}
    assert [found.problems for found in findings.values() if not found.good] == []
    assert findings["posts"].counts == "5 posts: 2 questions, 3 answers"
    assert findings["posts"].notes == ("0.00% of the 2,466,080 posts of the complete release",)
    assert findings["formulas, latex"].counts == "3 formulas in 1 files"
    assert findings["judgments 2022, task 1"].counts == "2 judgments of 1 topics, grades 0 to 3: 1 / 0 / 0 / 1"
    assert "code 5" in findings["judgments 2022, task 3"].notes[0]
    assert "topics 2021, task 1" not in findings


def test_a_file_that_ends_in_the_middle_is_bad(sound: Path) -> None:
    for name, role in ((POSTS, "posts"), (TABLE, "formulas, latex"), (TASK2_TOPICS, "topics 2022, task 2")):
        file = sound / name
        file.write_bytes(file.read_bytes()[:-20])
        found = finding(sound, role)
        assert not found.good, role
        assert any(file.name in problem for problem in found.problems)
        assert any("is truncated" in problem for problem in found.problems)
    (sound / f"{TABLE}.gz").write_bytes(gzip.compress((sound / TABLE).read_bytes())[:-12])
    (sound / TABLE).unlink()
    assert "1.tsv.gz" in finding(sound, "formulas, latex").problems[0]


def test_ids_that_come_twice_are_bad(sound: Path) -> None:
    change(sound / TABLE, "3\t14\t13", "2\t14\t13")
    assert finding(sound, "formulas, latex").problems == ("1 duplicate ids",)
    change(sound / POSTS, 'Id="14"', 'Id="13"')
    assert "P108" in finding(sound, "posts").problems[0]


def test_missing_references_are_reported(sound: Path) -> None:
    change(sound / TABLE, "3\t14\t13", "3\t99\t13")
    change(sound / TASK1, "A.301\t0\t14", "A.301\t0\t98")
    (sound / "pairs.tsv").write_text("question_id\tanswer_id\n10\t12\n10\t97\n")
    assert "1 formulas are of posts that are missing here" in finding(sound, "formulas, latex").notes
    assert finding(sound, "judgments 2022, task 1").notes == ("1 of the 2 judged ids are here",)
    assert finding(sound, "training pairs as a table").notes == ("1 pairs of posts that are missing here",)


def test_a_topic_whose_formula_is_not_in_its_question_is_bad(sound: Path) -> None:
    change(sound / TASK2_TOPICS, "<Formula_Id>q_3</Formula_Id>", "<Formula_Id>q_9</Formula_Id>")
    assert finding(sound, "topics 2022, task 2").problems == ("topic B.302: its formula is not in its question",)


@pytest.mark.parametrize("name", [POSTS, TABLE, TASK2_TOPICS, TASK1])
def test_a_file_that_is_something_else_is_bad_and_the_others_are_checked(sound: Path, name: str) -> None:
    (sound / name).write_text("<html>Sign in to download</html>\n")
    findings = list(verify(sound))
    assert [found.good for found in findings].count(False) == 1
    assert len(findings) == 7


def test_the_counts_of_table_4_3(sound: Path) -> None:
    rows = {row.name: (row.here, row.published) for row in release_statistics(ARQMathCollection(sound))}
    assert rows == {
        "Total posts": (5, 2466080),
        "Question posts": (2, 1020585),
        "Answer posts": (3, 1445495),
        "Mathematical formulas": (3, 28320920),
        "Task 1 topics": (1, 78),
        "Task 2 topics": (1, 76),
        "Task 1 total judgments": (2, 34847),
        "Task 1 unique judged answer posts": (2, 33383),
        "Task 2 total judgments": (1, 11538),
        "Task 2 unique judged formulas": (1, 9975),
        "Training pairs (question + accepted answer)": (1, 545638),
        "Task 1 retrieval index (answer posts)": (3, 1365254),
        "Task 2 retrieval index (question+answer posts)": (3, 2058341),
        "Visually distinct formulas": (2, None),
    }
    (sound / TABLE).unlink()
    rows = {row.name: (row.here, row.published) for row in release_statistics(ARQMathCollection(sound), year=2021)}
    assert (rows["Mathematical formulas"][0], rows["Total posts"][0], rows["Task 1 topics"]) == (None, 5, (None, None))


def test_the_real_part_is_sound_and_its_judgments_have_the_numbers_that_the_paper_prints(shared_data: Path) -> None:
    rows = release_statistics(ARQMathCollection(shared_data / "arqmath-mini"))
    printed = [row for row in rows if row.name.startswith("Task") and "index" not in row.name and row.published]
    assert [row.here for row in printed] == [row.published for row in printed]
    assert len(printed) == 6
    findings = list(verify(shared_data / "arqmath-mini"))
    assert [found for found in findings if not found.good] == []
    assert len(findings) == 23
