"""Which answers ColBERT and MaRF take as right: accepted, with votes, of duplicates; and all, where none is known."""

from pathlib import Path

import pytest

from pyterrier_mathamr.arqmath import known_item_split
from studies.answers.pairs import right_answers

A, B, C = [str(i) for i in range(100, 400) if known_item_split(str(i)) == "train"][:3]
TEST = next(str(i) for i in range(100, 400) if known_item_split(str(i)) == "test")


def row(post: str, kind: int, **attributes: object) -> str:
    more = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f'  <row Id="{post}" PostTypeId="{kind}" Body="&lt;p&gt;words&lt;/p&gt;" {more}/>'


def write(path: Path, *, known: bool = True) -> Path:
    """Write questions A, B, C and a test question, each with four answers; A, C and the test question duplicate B."""
    rows = []
    for question in (A, B, C, TEST):
        accepted = {"AcceptedAnswerId": f"{question}1"} if known and question != C else {}
        rows.append(row(question, 1, Title="t", **accepted))
        for n, votes in enumerate((0, 8, 7, 6), 1):
            rows.append(row(f"{question}{n}", 2, ParentId=question, **({"Score": votes} if known else {})))
    path.mkdir(parents=True, exist_ok=True)
    (path / "Posts.V1.3.xml").write_text("<posts>\n" + "\n".join(rows) + "\n</posts>\n")
    links = "".join(f"{one}\t{B}\tduplicate\t\n" for one in (A, C, TEST)) + f"{A}\t{C}\trelated\t\n"
    (path / "links.tsv").write_text("question_id\trelated_question_id\ttype\trelated_title\n" + links)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "arqmath")


def test_accepted_answers_and_those_with_votes_or_of_duplicates_are_right(folder: Path) -> None:
    colbert, marf = set(right_answers(folder, 8)), set(right_answers(folder, 6))
    assert colbert == {(A, f"{A}1"), (A, f"{A}2"), (B, f"{B}1"), (B, f"{B}2"), (C, f"{C}2")}
    assert marf - colbert == {(question, f"{question}{n}") for question in (A, B, C) for n in (3, 4)}

    added = set(right_answers(folder, 8, of_duplicates=True)) - set(right_answers(folder, 8))
    assert added == {(A, f"{B}1"), (B, f"{A}1"), (C, f"{B}1")}  # C has none accepted, and is only related to A
    (folder / "links.tsv").unlink()
    assert right_answers(folder, 8, of_duplicates=True) == right_answers(folder, 8)


def test_every_training_pair_is_right_where_there_are_neither_votes_nor_accepted_answers(tmp_path: Path) -> None:
    folder = write(tmp_path / "bare", known=False)
    (folder / "pairs.tsv").write_text(f"question_id\tanswer_id\n{A}\t{A}3\n{TEST}\t{TEST}1\n")
    assert right_answers(folder, 8, of_duplicates=True) == [(A, f"{A}3")]
