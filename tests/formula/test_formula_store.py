import os
import pickle
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import FormulaError, FormulaStore, opt_from_mathml, slt_from_mathml
from pyterrier_mathamr.formula import formula_store as store_build
from pyterrier_mathamr.store import (
    DamagedError,
    FormatError,
    NotBuiltError,
    OtherArtifactError,
    UnfinishedJobError,
    WriteError,
)

DATA = Path(__file__).parent.parent / "data"

HEAD = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
X_SLT, Y_SLT = "<math><mi>x</mi></math>", "<math><mi>y</mi></math>"
X_OPT = "<math><ci>𝑥</ci></math>"


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
    with sqlite3.connect(file_of(store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM tree").fetchone() == (3,)


def test_many_ids_in_one_call(store):
    assert len(store.get_many([str(i) for i in range(5_000)])) == 3


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
    other = table(tmp_path / "other.tsv", ("50", "", Y_SLT))
    assert len(FormulaStore.build(store.path, [other], [], overwrite=True)) == 1
    assert "007" not in store  # which sees the new one


@pytest.mark.parametrize("foreign", ["file", "folder", "artifact"])
def test_a_folder_without_a_formula_store_is_never_replaced(tmp_path, tables, foreign):
    path = tmp_path / "it"
    if foreign == "file":
        path.write_text("thesis")
    else:
        path.mkdir()
        (path / ("pt_meta.json" if foreign == "artifact" else "thesis")).write_text('{"type": "x", "format": "y"}')
    for options in ({}, {"overwrite": True}, {"reuse": True}):
        with pytest.raises((OtherArtifactError, FormatError), match=str(path)):
            FormulaStore.build(path, tables[:1], tables[1:], **options)
    assert [entry.name for entry in tmp_path.iterdir() if "it" in entry.name] == ["it"]
    assert path.is_file() or len(list(path.iterdir())) == 1


def test_a_store_of_the_same_tables_is_reused_and_any_other_replaced(store, tables, monkeypatch):
    kept = file_of(store.path)
    assert len(FormulaStore.build(store.path, tables[:1], tables[1:], reuse=True)) == 4
    assert file_of(store.path) == kept
    table(tables[0], ("8", "", X_SLT))  # another content under the same name
    assert len(FormulaStore.build(store.path, tables[:1], tables[1:], reuse=True)) == 4  # 8, and 1, 2, 3 of the other
    assert "8" in store
    file_of(store.path).write_bytes(b"")
    assert "8" in FormulaStore.build(store.path, tables[:1], tables[1:], reuse=True)


def test_a_part_left_by_a_killed_build_of_other_tables_is_replaced(store, tables, tmp_path):
    (store.path / "part-000001").mkdir()
    (store.path / "part-000001" / "formulas.sqlite").write_bytes(b"of the other build")
    other = table(tmp_path / "other.tsv", ("50", "", Y_SLT))
    assert list(FormulaStore.build(store.path, [other], [], overwrite=True).get_many(["1", "50"])) == ["50"]
    store.verify()


@pytest.mark.parametrize("size", [0, 100, 4096, 12_000])
def test_a_full_disk_is_named_and_leaves_what_was_there(store, tables, size):
    """The size of files is limited, which SQLite and the system treat as a disk that is full."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            FormulaStore.build(store.path, tables[1:], tables[:1], overwrite=True)
        except WriteError as error:
            os._exit(42 if "cannot be written" in str(error) else 43)
        finally:
            os._exit(44)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert FormulaStore(store.path).visual_ids(["1"]) == {"1": "5"}
    FormulaStore(store.path).verify()


def test_one_process_builds_at_a_time(store, tables):
    with store.job("overwrite", {}), pytest.raises(WriteError, match="process"):
        FormulaStore.build(store.path, tables[:1], tables[1:], overwrite=True)
    assert len(store) == 4


def test_a_table_that_is_missing_is_named(tmp_path, tables):
    with pytest.raises(FormulaError, match=r"none\.tsv"):
        FormulaStore.build(tmp_path / "s", [tmp_path / "none.tsv"], tables[1:])


def test_ids_come_back_as_they_went_in(tmp_path):
    ids = ["x" * 300, "é", "0", "-1", "1e3", "9" * 30]
    store = FormulaStore.build(tmp_path / "s", [table(tmp_path / "slt.tsv", *((fid, fid, X_SLT) for fid in ids))], [])
    assert list(store.get_many(ids)) == ids
    assert store.visual_ids(ids) == {fid: fid for fid in ids}
    assert store.get_many(["\ud800", "a\0", ""]) == {}


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


def test_unfinished_work_of_other_tables_is_refused_or_discarded(tmp_path, tables, monkeypatch):
    path = tmp_path / "s.formulas"
    monkeypatch.setattr(store_build, "opt_from_mathml", lambda source: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        FormulaStore.build(path, tables[:1], tables[1:])
    assert FormulaStore(path).unfinished() == 4
    with pytest.raises(NotBuiltError, match="4 rows"):
        len(FormulaStore(path))
    other = table(tmp_path / "other.tsv", ("50", "", Y_SLT))
    with pytest.raises(UnfinishedJobError, match="tables"):
        FormulaStore.build(path, [other], [])
    assert list(FormulaStore.build(path, [other], [], overwrite=True).get_many(["1", "50"])) == ["50"]
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_unfinished_work_that_was_changed_is_named(tmp_path, tables, monkeypatch):
    path = tmp_path / "s.formulas"
    with monkeypatch.context() as broken:
        broken.setattr(store_build, "opt_from_mathml", lambda source: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            FormulaStore.build(path, tables[:1], tables[1:])
    (tmp_path / ".s.formulas.job" / "scratch-formulas.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(DamagedError, match=r"scratch-formulas\.sqlite"):
        FormulaStore.build(path, tables[:1], tables[1:])
    FormulaStore(path).discard()
    assert len(FormulaStore.build(path, tables[:1], tables[1:])) == 4


def test_mathml_without_a_tree_is_reported_and_the_rest_is_built(tmp_path):
    broken = table(tmp_path / "slt.tsv", ("1", "", "no markup"), ("2", "", X_SLT))
    with pytest.warns(MathAMRWarning, match="1 of 2 formulas up to id 2"):
        built = FormulaStore.build(tmp_path / "s.formulas", [broken], [])
    assert built.get_many(["1", "2"])["1"].slt is None
    assert built.get_many(["2"])["2"].slt == slt_from_mathml(X_SLT)


def test_the_same_tables_give_the_same_bytes(tmp_path, tables):
    first = FormulaStore.build(tmp_path / "a", tables[:1], tables[1:])
    second = FormulaStore.build(tmp_path / "b", tables[:1], tables[1:])
    assert file_of(first.path).read_bytes() == file_of(second.path).read_bytes()


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


def test_every_changed_byte_is_found_and_none_does_harm(store):
    """Each byte in turn: verifying finds it, and reading gives something or an error with a name."""
    file = file_of(store.path)
    sound = file.read_bytes()
    used = [place for place, byte in enumerate(sound) if byte] + [len(sound) // 2]
    for place in used:
        file.write_bytes(sound[:place] + bytes([sound[place] ^ 0x41]) + sound[place + 1 :])
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


KILLED_BUILD = """
import sys, time
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.formula import formula_store as store_build

store_build._STEP = 2
add_step, steps = store_build._add_step, int(sys.argv[1])

def stops(*arguments):
    global steps
    added = add_step(*arguments)
    steps -= 1
    if steps == 0:
        print("in the middle of a step", flush=True)
        time.sleep(60)
    return added

store_build._add_step = stops
FormulaStore.build(sys.argv[2], sys.argv[3:4], sys.argv[4:5])
"""


def content(path):
    with closing(sqlite3.connect(file_of(path))) as connection:
        formulas = connection.execute("SELECT * FROM formula ORDER BY id").fetchall()
        return formulas, connection.execute("SELECT * FROM tree ORDER BY number").fetchall()


@pytest.mark.parametrize(("steps", "in_already"), [(1, 0), (3, 4), (7, 9)])  # 7 rows a table: 4 steps and an empty one
def test_a_build_that_is_killed_resumes_with_nothing_lost_and_nothing_twice(tmp_path, monkeypatch, steps, in_already):
    slt = table(tmp_path / "slt.tsv", *((str(i), str(i % 3), f"<math><mi>s{i}</mi></math>") for i in range(7)))
    opt = table(tmp_path / "opt.tsv", *((str(i), str(i % 3), f"<math><ci>o{i}</ci></math>") for i in range(7)))
    path = tmp_path / "s.formulas"
    command = [sys.executable, "-c", KILLED_BUILD, str(steps), str(path), str(slt), str(opt)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "in the middle of a step\n"
        process.kill()
    assert not path.exists()

    calls = []
    monkeypatch.setattr(store_build, "_STEP", 2)
    monkeypatch.setattr(store_build, "slt_from_mathml", lambda source: calls.append(source) or slt_from_mathml(source))
    monkeypatch.setattr(store_build, "opt_from_mathml", lambda source: calls.append(source) or opt_from_mathml(source))
    resumed = FormulaStore.build(path, [slt], [opt])
    assert len(calls) == len(set(calls)) == 14 - in_already  # only the step in which it was killed is done again
    assert len(resumed) == 7
    assert content(path) == content(FormulaStore.build(tmp_path / "whole", [slt], [opt]).path)
    assert resumed.get_many(["6"])["6"] == (
        slt_from_mathml("<math><mi>s6</mi></math>"),
        opt_from_mathml("<math><ci>o6</ci></math>"),
    )


def test_a_changed_byte_of_the_schema_is_named_whatever_it_is_changed_to(tmp_path, tables):
    store = FormulaStore.build(tmp_path / "s.formulas", tables[:1], tables[1:])
    file = next(store.path.rglob("formulas.sqlite"))
    data = file.read_bytes()
    for place in range(3_300, 4_096):  # the schema ends the first page
        file.write_bytes(data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1 :])
        with suppress(DamagedError):
            assert FormulaStore(store.path).get_many(["1"])
        with pytest.raises(DamagedError):
            FormulaStore(store.path).verify()
