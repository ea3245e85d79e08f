"""The readers of the judgments, pairs and links."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.arqmath import ARQMathError, Link, Pair, Qrel, read_pairs, read_qrels
from pyterrier_mathamr.arqmath.dump import read_links


@pytest.mark.parametrize(
    "line", ["A.1\t0\t5\t3\n", "A.1 0 5 3\n", "A.1  0\t5   3\r\n", "\ufeffA.1 0 5 3\n\n", "A.1 0 5 3"]
)
def test_columns_may_be_separated_by_tabs_or_spaces(tmp_path: Path, line: str) -> None:
    (tmp_path / "q.txt").write_bytes(line.encode())
    assert list(read_qrels(tmp_path / "q.txt")) == [Qrel("A.1", "5", 3, "0")]
    (tmp_path / "q.txt").write_text("")
    assert list(read_qrels(tmp_path / "q.txt")) == []


WORD = st.text("abcXYZ._0123456789", min_size=1, max_size=6)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.tuples(WORD, WORD), st.integers(0, 3)))
def test_judgments_written_are_read_back(tmp_path: Path, grades: dict[tuple[str, str], int]) -> None:
    lines = [f"{query}\t0\t{judged}\t{grade}\n" for (query, judged), grade in grades.items()]
    (tmp_path / "q.txt").write_text("".join(lines))
    assert {(q.query_id, q.doc_id): q.relevance for q in read_qrels(tmp_path / "q.txt")} == grades


def test_pairs_and_links_are_read_from_tables(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("question_id\tanswer_id\r\n1\t5\r\n")
    (tmp_path / "links.tsv").write_text(
        "question_id\trelated_question_id\ttype\trelated_title\n1\t2\tduplicate\tWhy $x$?\n1\t3\trelated\n"
    )
    assert list(read_pairs(tmp_path / "pairs.tsv")) == [Pair("1", "5")]
    assert list(read_links(tmp_path / "links.tsv")) == [
        Link("1", "2", "duplicate", "Why $x$?"),
        Link("1", "3", "related", ""),
    ]


@pytest.mark.parametrize("reader", [read_pairs, read_links])
def test_a_table_with_another_header_is_refused_by_name(tmp_path: Path, reader: object) -> None:
    (tmp_path / "x.tsv").write_text("1\t5\n")
    with pytest.raises(ARQMathError, match=r"x\.tsv:1: the header is"):
        list(reader(tmp_path / "x.tsv"))  # type: ignore[operator]
