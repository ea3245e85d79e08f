import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from pyterrier_mathamr.formula import FormulaStore, opt_from_mathml, slt_from_mathml
from pyterrier_mathamr.formula import formula_store as store_build
from pyterrier_mathamr.formula.formula_store import encode, tree_number
from pyterrier_mathamr.store import DamagedError, UnfinishedJobError

HEAD = "id\tpost_id\ttype\tvisual_id\tformula\n"
ROWS = 60
FORMULAS = {
    str(i): (f"<math><mi>s{i % 23}</mi></math>", f"<math> <ci>o{i}</ci></math>" if i % 7 else "") for i in range(ROWS)
}


@pytest.fixture
def tables(tmp_path):
    paths = tmp_path / "slt.tsv", tmp_path / "opt.tsv"
    for kind, path in enumerate(paths):
        rows = (f'{fid}\t1\tanswer\t{int(fid) % 5}\t"{pair[kind]}"\n' for fid, pair in FORMULAS.items())
        path.write_text(HEAD + "".join(rows), encoding="utf-8")
    return [[path] for path in paths]


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr(store_build, "_STEP", 20)
    return tmp_path / ".s.job" / "scratch-formulas.sqlite"


def rows(file, query):
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def staged(scratch):
    """The numbers of the staged trees, by range."""
    file = scratch.with_name("scratch-trees.sqlite")
    return [[number for (number,) in rows(file, f"SELECT number FROM tree_{which}")] for which in range(64)]


def content(store):
    (file,) = store.path.glob("part-*/formulas.sqlite")
    tables = ("formula", "tree", "progress")
    return [rows(file, "SELECT sql FROM sqlite_master"), *(rows(file, f"SELECT * FROM {name}") for name in tables)]


def computed():
    """The contents of a store, computed without one."""
    pairs = {
        int(fid): [encode(convert(text)) if text else None for convert, text in zip(CONVERTERS, pair, strict=True)]
        for fid, pair in FORMULAS.items()
    }
    number = {body: body and tree_number(body) for pair in pairs.values() for body in pair}
    formulas = [(fid, number[slt], number[opt], fid % 5) for fid, (slt, opt) in sorted(pairs.items())]
    return formulas, sorted((place, body) for body, place in number.items() if body)


CONVERTERS = slt_from_mathml, opt_from_mathml


def break_off(monkeypatch, range_number):
    """Have builds end before they sort a range."""

    def broken(ranges, *_, **__):
        for which in ranges:
            if which == range_number:
                raise KeyboardInterrupt
            yield which

    monkeypatch.setattr(store_build, "progress", broken)


@pytest.mark.parametrize("step", [7, 1000])
@pytest.mark.parametrize("remembered", [2, 1000])
def test_a_store_holds_each_tree_once_whatever_its_steps_staged(tmp_path, monkeypatch, tables, step, remembered):
    monkeypatch.setattr(store_build, "_STEP", step)
    monkeypatch.setattr(store_build, "_REMEMBERED", remembered)
    schema, formulas, trees, progress = content(FormulaStore.build(tmp_path / "s", *tables))
    assert len(schema) == 3
    assert (formulas, trees) == computed()
    assert progress == [(0, ROWS, 1), (1, ROWS, 1)]


def test_trees_that_come_again_in_later_steps_are_staged_again_only_when_they_are_forgotten(
    tmp_path, monkeypatch, tables, scratch
):
    distinct = len(computed()[1])
    for remembered, fewer in ((2, False), (1000, True)):
        monkeypatch.setattr(store_build, "_REMEMBERED", remembered)
        break_off(monkeypatch, 0)
        with pytest.raises(KeyboardInterrupt):
            FormulaStore.build(tmp_path / "s", *tables, overwrite=True)
        found = staged(scratch)
        assert (sum(map(len, found)) == distinct) is fewer
        assert {number for numbers in found for number in numbers} == {number for number, _ in computed()[1]}
        assert all(number >> 57 == which for which, numbers in enumerate(found) for number in numbers)


@pytest.mark.parametrize("stopped", [0, 1, 20, 41, 63])
def test_sorting_that_breaks_off_goes_on_where_it_was(tmp_path, monkeypatch, tables, scratch, stopped):
    whole = content(FormulaStore.build(tmp_path / "whole", *tables))
    with monkeypatch.context() as broken:
        break_off(broken, stopped)
        with pytest.raises(KeyboardInterrupt):
            FormulaStore.build(tmp_path / "s", *tables)
    moved = [number for number, _ in whole[2] if number >> 57 < stopped]
    assert [number for (number,) in rows(scratch, "SELECT number FROM tree")] == moved
    assert FormulaStore(tmp_path / "s").unfinished() == 2 * ROWS

    ranges = []
    monkeypatch.setattr(store_build, "slt_from_mathml", None)  # nothing is converted once more
    monkeypatch.setattr(store_build, "progress", lambda items, *_, **__: ranges.extend(items) or ranges)
    assert content(FormulaStore.build(tmp_path / "s", *tables)) == whole
    assert ranges == list(range(moved[-1] >> 57 if moved else -1, 64))[1:]
    assert not scratch.parent.exists()


KILLED = """
import os, signal, sys
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.formula import formula_store as store_build

store_build._STEP = 20
where, path, slt, opt = sys.argv[1:]

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def half(ranges, *_, **__):
    for which in ranges:
        if which == 32:
            die()
        yield which

add, times = store_build.Staging.add, []

def add_and_die(self, bodies):
    add(self, bodies)
    times.append(1)
    if len(times) == 6:  # the second step of the second table, whose rows are not committed; the fourth was empty
        die()

if where == "sorting":
    store_build.progress = half
else:
    store_build.Staging.add = add_and_die
FormulaStore.build(path, [slt], [opt])
"""


@pytest.mark.parametrize(("where", "done"), [("staging", ROWS + 20), ("sorting", 2 * ROWS)])
def test_a_build_that_is_killed_between_trees_and_rows_or_while_it_sorts_resumes(
    tmp_path, tables, scratch, where, done
):
    whole = content(FormulaStore.build(tmp_path / "whole", *tables))
    store = FormulaStore(tmp_path / "s")
    command = [sys.executable, "-c", KILLED, where, str(store.path), str(tables[0][0]), str(tables[1][0])]
    assert subprocess.run(command, check=False).returncode == -9
    assert store.unfinished() == done
    numbers = [number for range_ in staged(scratch) for number in range_]
    if where == "staging":  # trees of a step whose rows are not there
        known = {number for pair in rows(scratch, "SELECT slt, opt FROM formula") for number in pair}
        assert len(numbers) > len(known - {None})
    else:
        assert 0 < len(rows(scratch, "SELECT 1 FROM tree")) < len(numbers)
    assert content(FormulaStore.build(store.path, *tables)) == whole
    store.verify()


def unfinished(tmp_path, monkeypatch, tables):
    with monkeypatch.context() as broken:
        broken.setattr(store_build, "opt_from_mathml", lambda source: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            FormulaStore.build(tmp_path / "s", *tables)


def test_unfinished_work_of_the_former_layout_is_refused_or_discarded(tmp_path, monkeypatch, tables):
    with monkeypatch.context() as former:
        former.setattr(store_build, "_LAYOUT", {})
        unfinished(tmp_path, former, tables)
    with pytest.raises(UnfinishedJobError, match=r"layout: None, not staged trees.*discard"):
        FormulaStore.build(tmp_path / "s", *tables)
    assert FormulaStore(tmp_path / "s").unfinished() == ROWS  # which the former release can complete
    built = FormulaStore.build(tmp_path / "s", *tables, overwrite=True)
    assert content(built)[1:3] == list(computed())


@pytest.mark.parametrize("change", ["gone", "empty", "other", "damaged"])
def test_staged_trees_that_were_changed_are_named(tmp_path, monkeypatch, tables, scratch, change):
    unfinished(tmp_path, monkeypatch, tables)
    file = scratch.with_name("scratch-trees.sqlite")
    if change == "gone":
        file.unlink()
    elif change == "empty":
        file.write_bytes(b"")
    elif change == "other":
        file.write_bytes(b"no database" * 1000)
    else:
        sound = file.read_bytes()
        file.write_bytes(sound[:8192] + b"\xff" * 4096 + sound[12288:])  # a page of one range
    with pytest.raises(DamagedError, match=r"scratch-trees\.sqlite"):
        FormulaStore.build(tmp_path / "s", *tables)
    assert not (tmp_path / "s").exists()
    FormulaStore(tmp_path / "s").discard()
    assert len(FormulaStore.build(tmp_path / "s", *tables)) == ROWS


def test_the_bar_of_the_last_phase_shows_how_much_is_sorted(tmp_path, capfd, tables):
    FormulaStore.build(tmp_path / "s", *tables, verbose=True)
    assert "sorting trees: 100%" in capfd.readouterr().err
