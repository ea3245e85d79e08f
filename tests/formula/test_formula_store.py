import pickle
import sqlite3

import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import FormulaStore, FormulaStoreError, opt_from_mathml, slt_from_mathml, store_build

HEAD = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
X_SLT, Y_SLT = "<math><mi>x</mi></math>", "<math><mi>y</mi></math>"
X_OPT = "<math><ci>𝑥</ci></math>"


def table(path, *rows):
    lines = (f'{fid}\t1\t1\tanswer\t\t9\t{visual}\t\t"{formula}"\n' for fid, visual, formula in rows)
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def tables(tmp_path):
    slt = table(tmp_path / "slt.tsv", ("1", "5", X_SLT), ("2", "5", X_SLT), ("3", "6", Y_SLT), ("007", "", X_SLT))
    opt = table(tmp_path / "opt.tsv", ("1", "5", X_OPT), ("2", "5", X_OPT), ("3", "6", ""))
    return slt, opt


@pytest.fixture
def store(tmp_path, tables):
    return FormulaStore.build(tmp_path / "s.formulas", tables[:1], tables[1:])


def test_both_trees_come_back_by_id_in_the_order_asked(store):
    found = store.get_many(["3", "1", "3"])
    assert list(found) == ["3", "1"]
    assert found["1"] == (slt_from_mathml(X_SLT), opt_from_mathml(X_OPT))
    assert found["1"].opt.kind == "opt"


def test_a_formula_without_mathml_has_no_tree(store):
    assert store.get_many(["3"])["3"].opt is None


def test_unknown_ids_are_left_out(store):
    assert store.get_many(["99", "x"]) == {}
    assert "1" in store
    assert "99" not in store


def test_an_id_that_only_looks_like_a_number_stays_itself(store):
    assert list(store.get_many(["007"])) == ["007"]
    assert store.get_many(["7"]) == {}


def test_visual_ids_where_the_table_gives_one(store):
    assert store.visual_ids(["1", "2", "3", "007", "99"]) == {"1": "5", "2": "5", "3": "6"}


def test_each_distinct_tree_is_stored_once(store):
    assert len(store) == 4
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT count(*) FROM tree").fetchone() == (3,)


def test_many_ids_in_one_call(store):
    assert len(store.get_many([str(i) for i in range(5_000)])) == 3


def test_a_store_survives_pickling_and_equals_one_of_the_same_path(store):
    store.get_many(["1"])
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert copy.get_many(["1"]) == store.get_many(["1"])
    assert repr(store) == f"FormulaStore({str(store.path)!r})"


def test_an_existing_file_is_kept_unless_overwrite_is_asked(store, tables):
    before = store.path.read_bytes()
    with pytest.raises(FormulaStoreError, match="overwrite=True"):
        FormulaStore.build(store.path, tables[:1], tables[1:])
    assert store.path.read_bytes() == before
    assert len(FormulaStore.build(store.path, tables[:1], [], overwrite=True)) == 4


def test_a_build_that_breaks_off_leaves_no_store_and_resumes(tmp_path, tables, monkeypatch):
    path = tmp_path / "s.formulas"
    monkeypatch.setattr(store_build, "_STEP", 1)
    calls = []

    def fails_at_the_second_table(source):
        raise KeyboardInterrupt

    def counts(source):
        calls.append(source)
        return slt_from_mathml(source)

    monkeypatch.setattr(store_build, "opt_from_mathml", fails_at_the_second_table)
    with pytest.raises(KeyboardInterrupt):
        FormulaStore.build(path, tables[:1], tables[1:])
    assert not path.exists()
    monkeypatch.setattr(store_build, "opt_from_mathml", opt_from_mathml)
    monkeypatch.setattr(store_build, "slt_from_mathml", counts)
    built = FormulaStore.build(path, tables[:1], tables[1:])
    assert calls == []  # the first table was in already
    assert built.get_many(["1"])["1"] == (slt_from_mathml(X_SLT), opt_from_mathml(X_OPT))


def test_other_tables_begin_a_new_build(tmp_path, tables, monkeypatch):
    path = tmp_path / "s.formulas"
    monkeypatch.setattr(store_build, "opt_from_mathml", lambda source: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        FormulaStore.build(path, tables[:1], tables[1:])
    other = table(tmp_path / "other.tsv", ("50", "", Y_SLT))
    assert list(FormulaStore.build(path, [other], []).get_many(["1", "50"])) == ["50"]


def test_mathml_without_a_tree_is_reported_and_the_rest_is_built(tmp_path):
    broken = table(tmp_path / "slt.tsv", ("1", "", "no markup"), ("2", "", X_SLT))
    with pytest.warns(MathAMRWarning, match="1 of 2 formulas up to id 2"):
        built = FormulaStore.build(tmp_path / "s.formulas", [broken], [])
    assert built.get_many(["1", "2"])["1"].slt is None
    assert built.get_many(["2"])["2"].slt == slt_from_mathml(X_SLT)


def test_the_same_tables_give_the_same_bytes(tmp_path, tables):
    first = FormulaStore.build(tmp_path / "a", tables[:1], tables[1:])
    second = FormulaStore.build(tmp_path / "b", tables[:1], tables[1:])
    assert first.path.read_bytes() == second.path.read_bytes()


@pytest.mark.parametrize("content", [None, b"no database", b""])
def test_what_is_no_store_is_refused_with_its_path(tmp_path, content):
    path = tmp_path / "s.formulas"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FormulaStoreError, match=r"s\.formulas"):
        FormulaStore(path).get_many(["1"])
