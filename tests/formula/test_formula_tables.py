import gzip

import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import FormulaError, FormulaRow, read_formula_table

V3 = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\r\n"


def test_the_nine_columns_of_a_collection(tmp_path):
    path = tmp_path / "1.tsv"
    path.write_text(V3 + '7\t70\t700\tanswer\t\t1\t2\t\t"a ""quoted"" x\ny"\r\n', encoding="utf-8")
    assert list(read_formula_table(path)) == [FormulaRow("7", "70", "700", "answer", "2", 'a "quoted" x\ny')]


@pytest.mark.parametrize("column", ["formula", "slt", "opt"])
def test_the_five_columns_of_topics(tmp_path, column):
    path = tmp_path / "topics.tsv"
    path.write_text(f"id\ttopic_id\tthread_id\ttype\t{column}\nq_1\tA.301\t5\ttitle\tx\n", encoding="utf-8")
    assert list(read_formula_table(path)) == [FormulaRow("q_1", "A.301", "5", "title", "", "x")]


def test_a_gzipped_table_reads_like_a_plain_one(tmp_path):
    path = tmp_path / "1.tsv.gz"
    path.write_bytes(gzip.compress((V3 + "7\t70\t700\tanswer\t\t1\t2\t\tx\r\n").encode()))
    assert [row.formula for row in read_formula_table(path)] == ["x"]


def test_a_cell_beyond_pythons_own_limit_is_read(tmp_path):
    path = tmp_path / "1.tsv"
    path.write_text(V3 + f"7\t70\t700\tanswer\t\t1\t2\t\t{'x' * 200_000}\r\n", encoding="utf-8")
    assert len(next(read_formula_table(path)).formula) == 200_000


def test_a_row_of_another_width_is_skipped_with_file_and_line(tmp_path):
    path = tmp_path / "1.tsv"
    path.write_text(V3 + "7\t70\r\n8\t80\t800\tanswer\t\t1\t2\t\tx\r\n", encoding="utf-8")
    with pytest.warns(MathAMRWarning, match=r"1\.tsv:2: 2 columns instead of 9"):
        assert [row.id for row in read_formula_table(path)] == ["8"]


@pytest.mark.parametrize("text", ["", "a\tb\n1\t2\n"])
def test_a_file_without_the_header_is_refused(tmp_path, text):
    path = tmp_path / "1.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormulaError, match=r"1\.tsv:1: not a formula table"):
        list(read_formula_table(path))


def test_a_gzip_file_that_breaks_off_names_the_line(tmp_path):
    path = tmp_path / "1.tsv.gz"
    whole = gzip.compress((V3 + "7\t70\t700\tanswer\t\t1\t2\t\tx\r\n" * 1000).encode(), compresslevel=0)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormulaError, match=r"1\.tsv\.gz:\d+"):
        list(read_formula_table(path))
