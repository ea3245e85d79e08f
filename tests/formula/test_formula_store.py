"""The official tables and the store of their trees: looked up by id, replaced only on request, never read damaged."""

import gzip
import pickle
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import (
    FormulaError,
    FormulaRow,
    FormulaStore,
    opt_from_mathml,
    read_formula_table,
    slt_from_mathml,
)
from pyterrier_mathamr.store import DamagedError, FormatError, OtherArtifactError, WriteError

DATA = Path(__file__).parent.parent / "data"
HEAD = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
X_SLT, Y_SLT, X_OPT = "<math><mi>x</mi></math>", "<math><mi>y</mi></math>", "<math><ci>𝑥</ci></math>"


def table(path, *rows):
    lines = (f'{fid}\t1\t1\tanswer\t\t9\t{visual}\t\t"{formula}"\n' for fid, visual, formula in rows)
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return path


def file_of(path):
    (file,) = path.glob("part-*/formulas.sqlite")
    return file


@pytest.fixture
def tables(tmp_path):
    slt = table(tmp_path / "slt.tsv", ("1", "5", X_SLT), ("2", "5", X_SLT), ("3", "6", Y_SLT), ("007", "", X_SLT))
    opt = table(tmp_path / "opt.tsv", ("1", "5", X_OPT), ("2", "5", X_OPT), ("3", "6", ""))
    return slt, opt


@pytest.fixture
def store(tmp_path, tables):
    return FormulaStore.build(tmp_path / "s.formulas", tables[:1], tables[1:])


@pytest.mark.parametrize(
    ("name", "content", "row"),
    [
        ("1.tsv", HEAD + '7\t70\t700\tanswer\t\t1\t2\t\t"a ""quoted"" x\ny"\r\n',
         FormulaRow("7", "70", "700", "answer", "2", 'a "quoted" x\ny')),
        ("1.tsv.gz", HEAD + "7\t70\t700\tanswer\t\t1\t2\t\tx\r\n", FormulaRow("7", "70", "700", "answer", "2", "x")),
        ("1.tsv", HEAD + f"7\t70\t700\tanswer\t\t1\t2\t\t{'x' * 200_000}\n",  # beyond Python's own limit of a cell
         FormulaRow("7", "70", "700", "answer", "2", "x" * 200_000)),
        *(
            ("topics.tsv", f"id\ttopic_id\tthread_id\ttype\t{column}\nq_1\tA.301\t5\ttitle\tx\n",
             FormulaRow("q_1", "A.301", "5", "title", "", "x"))
            for column in ("formula", "slt", "opt")
        ),
    ],
)  # fmt: skip
def test_a_table_of_a_collection_or_of_topics_is_read_row_by_row(tmp_path, name, content, row):
    (tmp_path / name).write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    assert list(read_formula_table(tmp_path / name)) == [row]


def test_a_fault_in_a_table_is_named_with_file_and_line(tmp_path):
    path, packed = tmp_path / "1.tsv", tmp_path / "1.tsv.gz"
    path.write_text(HEAD + "7\t70\n8\t80\t800\tanswer\t\t1\t2\t\tx\n", encoding="utf-8")
    with pytest.warns(MathAMRWarning, match=r"1\.tsv:2: 2 columns instead of 9"):
        assert [row.id for row in read_formula_table(path)] == ["8"]
    for text in ("", "a\tb\n1\t2\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FormulaError, match=r"1\.tsv:1: not a formula table"):
            list(read_formula_table(path))
    whole = gzip.compress((HEAD + "7\t70\t700\tanswer\t\t1\t2\t\tx\r\n" * 1000).encode(), compresslevel=0)
    packed.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormulaError, match=r"1\.tsv\.gz:\d+"):
        list(read_formula_table(packed))
    with pytest.raises(FormulaError, match=r"none\.tsv"):
        FormulaStore.build(tmp_path / "s", [tmp_path / "none.tsv"], [])


def test_trees_and_visual_ids_come_back_by_id_in_the_order_asked(store):
    found = store.get_many(["3", "1", "3", "99", "x"])
    assert list(found) == ["3", "1"]
    assert found["1"] == (slt_from_mathml(X_SLT), opt_from_mathml(X_OPT))
    assert found["1"].opt.kind == "opt"
    assert found["3"].opt is None  # an empty cell
    assert ("1" in store, "99" in store) == (True, False)
    assert list(store.get_many(["007"])) == ["007"]  # only looks like a number
    assert store.get_many(["7"]) == {}
    assert store.visual_ids(["1", "2", "3", "007", "99"]) == {"1": "5", "2": "5", "3": "6"}
    assert len(store.get_many([str(i) for i in range(5_000)])) == 3
    assert len(store) == 4
    with closing(sqlite3.connect(file_of(store.path))) as connection:
        assert connection.execute("SELECT count(*) FROM tree").fetchone() == (3,)  # each once


def test_ids_come_back_as_they_went_in(tmp_path):
    ids = ["x" * 300, "é", "0", "-1", "1e3", "9" * 30]
    store = FormulaStore.build(tmp_path / "s", [table(tmp_path / "slt.tsv", *((fid, fid, X_SLT) for fid in ids))], [])
    assert list(store.get_many(ids)) == ids
    assert store.visual_ids(ids) == {fid: fid for fid in ids}
    assert store.get_many(["\ud800", "a\0", ""]) == {}


def test_a_store_survives_pickling_and_equals_one_of_the_same_path(store):
    store.get_many(["1"])
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert copy.get_many(["1"]) == store.get_many(["1"])
    assert repr(store) == f"FormulaStore({str(store.path)!r})"


def test_an_existing_store_is_kept_unless_overwrite_is_asked(store, tables, tmp_path):
    before = file_of(store.path).read_bytes()
    with pytest.raises(WriteError, match="mode='overwrite'"):
        FormulaStore.build(store.path, tables[:1], tables[1:])
    assert file_of(store.path).read_bytes() == before
    assert "007" in store
    (store.path / "part-000001").mkdir()  # left by a killed build of other tables
    (store.path / "part-000001" / "formulas.sqlite").write_bytes(b"of the other build")
    other = table(tmp_path / "other.tsv", ("50", "", Y_SLT))
    assert list(FormulaStore.build(store.path, [other], [], overwrite=True).get_many(["1", "50"])) == ["50"]
    assert "007" not in store  # which sees the new one
    store.verify()


@pytest.mark.parametrize("foreign", ["file", "folder", "artifact"])
def test_a_folder_without_a_formula_store_is_not_replaced_by_a_reused_one(tmp_path, tables, foreign):
    path = tmp_path / "it"
    if foreign == "file":
        path.write_text("thesis")
    else:
        path.mkdir()
        (path / ("pt_meta.json" if foreign == "artifact" else "thesis")).write_text('{"type": "x", "format": "y"}')
    with pytest.raises((OtherArtifactError, FormatError), match=str(path)):
        FormulaStore.build(path, tables[:1], tables[1:], reuse=True)
    assert path.is_file() or len(list(path.iterdir())) == 1


def test_a_store_of_the_same_tables_is_reused_and_any_other_replaced(store, tables):
    kept = file_of(store.path)
    assert len(FormulaStore.build(store.path, tables[:1], tables[1:], reuse=True)) == 4
    assert file_of(store.path) == kept
    table(tables[0], ("8", "", X_SLT))  # another content under the same name
    assert len(FormulaStore.build(store.path, tables[:1], tables[1:], reuse=True)) == 4  # 8, and 1, 2, 3 of the other
    assert "8" in store
    file_of(store.path).write_bytes(b"")
    assert "8" in FormulaStore.build(store.path, tables[:1], tables[1:], reuse=True)


def test_mathml_without_a_tree_is_reported_and_the_rest_is_built(tmp_path):
    broken = table(tmp_path / "slt.tsv", ("1", "", "no markup"), ("2", "", X_SLT))
    with pytest.warns(MathAMRWarning, match="1 of 2 formulas up to id 2"):
        built = FormulaStore.build(tmp_path / "s.formulas", [broken], [])
    assert built.get_many(["1", "2"])["1"].slt is None
    assert built.get_many(["2"])["2"].slt == slt_from_mathml(X_SLT)


@pytest.mark.parametrize("content", [b"no database", b"", None])
def test_a_file_is_refused_with_the_call_that_rebuilds(tmp_path, content):
    path = tmp_path / "s.formulas"
    path.write_bytes((DATA / "formula-store-format-1.sqlite").read_bytes() if content is None else content)
    with pytest.raises(FormatError, match=r"format 1.*Remove it.*FormulaStore\.build\('.*s\.formulas', slt_tables"):
        FormulaStore(path).get_many(["1"])


def test_a_store_of_this_format_opens():
    store = FormulaStore(DATA / "formula-store-format-2")
    assert store.get_many(["1"])["1"] == (slt_from_mathml(X_SLT), opt_from_mathml(X_OPT))
    store.verify()


def test_a_changed_byte_is_found_and_does_no_harm(store):
    """Verifying finds it, and reading gives something or an error with a name; the schema ends the first page."""
    file = file_of(store.path)
    sound = file.read_bytes()
    used = [place for place, byte in enumerate(sound) if byte]
    changes = [(place, 0x41) for place in (*used[::4], len(sound) // 2)]
    changes += [(place, 0x80) for place in range(3_300, 4_096, 4)]  # whatever the schema is changed to
    for place, mask in changes:
        file.write_bytes(sound[:place] + bytes([sound[place] ^ mask]) + sound[place + 1 :])
        fresh = FormulaStore(store.path)
        with suppress(DamagedError):
            fresh.get_many(["1", "2", "3", "007"])
            fresh.visual_ids(["1", "2", "3", "007"])
        with pytest.raises(DamagedError, match=r"formulas\.sqlite"):
            fresh.verify()


def test_a_tree_that_was_changed_or_lost_is_named_by_its_formula(store):
    with closing(sqlite3.connect(file_of(store.path))) as connection, connection:
        connection.execute("UPDATE tree SET body = replace(body, 'y', 'z')")
    with pytest.raises(DamagedError, match=r"formulas\.sqlite.*formula '3'"):
        FormulaStore(store.path).get_many(["3"])
