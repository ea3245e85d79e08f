"""Building a store in steps and with several processes: each tree once, the same bytes, and nothing done twice."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from folder_bytes import folder_bytes

from pyterrier_mathamr import Processes
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import FormulaStore, opt_from_mathml, slt_from_mathml
from pyterrier_mathamr.formula import formula_store as store_build
from pyterrier_mathamr.formula.formula_store import encode, tree_number
from pyterrier_mathamr.store import DamagedError, NotBuiltError, UnfinishedJobError

HEAD = "id\tpost_id\ttype\tvisual_id\tformula\n"
ROWS = 60
FORMULAS = {
    str(i): (f"<math><mi>s{i % 23}</mi></math>", f"<math> <ci>o{i}</ci></math>" if i % 7 else "") for i in range(ROWS)
}
CONVERTERS = slt_from_mathml, opt_from_mathml


def written(folder, columns):
    """Write a table of layout trees and one of operator trees."""
    paths = folder / "slt.tsv", folder / "opt.tsv"
    for path, column in zip(paths, columns, strict=True):
        rows = (f'{i}\t1\tanswer\t{i % 5}\t"{cell}"\n' for i, cell in enumerate(column))
        path.write_text(HEAD + "".join(rows), encoding="utf-8")
    return [[path] for path in paths]


@pytest.fixture
def tables(tmp_path):
    return written(tmp_path, zip(*FORMULAS.values(), strict=True))


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr(store_build, "_STEP", 20)
    return tmp_path / ".s.job" / "scratch-formulas.sqlite"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The contents of the store that is built at once."""
    folder = tmp_path_factory.mktemp("whole")
    return content(FormulaStore.build(folder / "s", *written(folder, zip(*FORMULAS.values(), strict=True))))


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


def break_off(monkeypatch, range_number):
    """Have builds end before they sort a range."""

    def broken(ranges, *_, **__):
        for which in ranges:
            if which == range_number:
                raise KeyboardInterrupt
            yield which

    monkeypatch.setattr(store_build, "progress", broken)


def unfinished(tmp_path, monkeypatch, tables):
    """Begin a build that fails at its second table."""
    with monkeypatch.context() as broken:
        broken.setattr(store_build, "opt_from_mathml", lambda source: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            FormulaStore.build(tmp_path / "s", *tables)


@pytest.mark.parametrize("step", [7, 1000])
@pytest.mark.parametrize("remembered", [2, 1000])
def test_a_store_holds_each_tree_once_whatever_its_steps_staged(tmp_path, monkeypatch, tables, whole, step, remembered):
    monkeypatch.setattr(store_build, "_STEP", step)
    monkeypatch.setattr(store_build, "_REMEMBERED", remembered)
    schema, formulas, trees, progress = built = content(FormulaStore.build(tmp_path / "s", *tables))
    assert len(schema) == 3
    assert (formulas, trees) == computed()
    assert progress == [(0, ROWS, 1), (1, ROWS, 1)]
    assert built == whole


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


@pytest.mark.parametrize("stopped", [0, 20, 63])
def test_sorting_that_breaks_off_goes_on_where_it_was(tmp_path, monkeypatch, tables, scratch, whole, stopped):
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
add, times = store_build.Staging.add, []

def add_and_die(self, bodies):
    add(self, bodies)
    times.append(1)
    if len(times) == 6:  # the second step of the second table, whose rows are not committed; the fourth was empty
        os.kill(os.getpid(), signal.SIGKILL)

store_build.Staging.add = add_and_die
FormulaStore.build(sys.argv[1], sys.argv[2:3], sys.argv[3:4])
"""


def test_a_build_that_is_killed_between_trees_and_rows_repeats_only_its_step(
    tmp_path, monkeypatch, tables, scratch, whole
):
    store = FormulaStore(tmp_path / "s")
    command = [sys.executable, "-c", KILLED, str(store.path), str(tables[0][0]), str(tables[1][0])]
    assert subprocess.run(command, check=False).returncode == -9
    assert not store.path.exists()
    assert store.unfinished() == ROWS + 20
    numbers = [number for range_ in staged(scratch) for number in range_]
    known = {number for pair in rows(scratch, "SELECT slt, opt FROM formula") for number in pair}
    assert len(numbers) > len(known - {None})  # trees of a step whose rows are not there
    read = []
    monkeypatch.setattr(store_build, "slt_from_mathml", None)  # the first table was in already
    monkeypatch.setattr(store_build, "opt_from_mathml", lambda source: read.append(source) or opt_from_mathml(source))
    assert content(FormulaStore.build(store.path, *tables)) == whole
    assert read == [opt for _, opt in list(FORMULAS.values())[20:] if opt]
    store.verify()


def test_unfinished_work_of_other_tables_or_of_the_former_layout_is_refused_or_discarded(tmp_path, monkeypatch, tables):
    store = FormulaStore(tmp_path / "s")
    with monkeypatch.context() as former:
        former.setattr(store_build, "_LAYOUT", {})
        unfinished(tmp_path, former, tables)
    with pytest.raises(UnfinishedJobError, match=r"layout: None, not staged trees.*discard"):
        FormulaStore.build(store.path, *tables)
    assert store.unfinished() == ROWS  # which the former release can complete
    with pytest.raises(NotBuiltError, match=f"{ROWS} rows"):
        len(store)
    with pytest.raises(UnfinishedJobError, match="tables"):
        FormulaStore.build(store.path, tables[1], tables[0])
    built = FormulaStore.build(store.path, *tables, overwrite=True)
    assert content(built)[1:3] == list(computed())
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("name", "change"),
    [("trees", "gone"), ("trees", "empty"), ("trees", "other"), ("trees", "damaged"), ("formulas", "other")],
)
def test_unfinished_work_that_was_changed_is_named(tmp_path, monkeypatch, tables, scratch, name, change):
    unfinished(tmp_path, monkeypatch, tables)
    file = scratch.with_name(f"scratch-{name}.sqlite")
    sound = file.read_bytes()
    damaged = sound[:8192] + b"\xff" * 4096 + sound[12288:]  # a page of one range
    file.write_bytes({"empty": b"", "other": b"no database" * 1000, "damaged": damaged}.get(change, b""))
    if change == "gone":
        file.unlink()
    with pytest.raises(DamagedError, match=rf"scratch-{name}\.sqlite"):
        FormulaStore.build(tmp_path / "s", *tables)
    assert not (tmp_path / "s").exists()
    FormulaStore(tmp_path / "s").discard()
    assert len(FormulaStore.build(tmp_path / "s", *tables)) == ROWS


def test_the_bar_of_the_last_phase_shows_how_much_is_sorted(tmp_path, capfd, tables):
    FormulaStore.build(tmp_path / "s", *tables, verbose=True)
    assert "sorting trees: 100%" in capfd.readouterr().err


@pytest.fixture
def many_batches(tmp_path, monkeypatch):
    """Tables of small batches; trees that come again in others, empty cells, and MathML without a tree."""
    monkeypatch.setattr(store_build, "BATCH", 4)
    monkeypatch.setattr(store_build, "_STEP", 12)
    slt = [f"<math><mi>s{i % 13}</mi></math>" if i % 20 else "no markup" for i in range(ROWS)]
    return written(tmp_path, (slt, [f"<math><ci>o{i % 17}</ci></math>" if i % 7 else "" for i in range(ROWS)]))


def test_two_processes_write_the_bytes_and_warnings_of_one_also_of_what_they_began(tmp_path, many_batches, monkeypatch):
    with pytest.warns(MathAMRWarning) as one:
        first = FormulaStore.build(tmp_path / "one", *many_batches)
    with pytest.warns(MathAMRWarning) as two:
        second = FormulaStore.build(tmp_path / "two", *many_batches, executor=Processes(2))
    assert folder_bytes(second.path) == folder_bytes(first.path)
    warned = [[str(warning.message) for warning in caught] for caught in (one, two)]
    assert warned[0] == warned[1]
    assert warned[0][0] == "1 of 12 formulas up to id 11 have MathML without a tree; stored so"

    add_step, steps = store_build._add_step, []

    def stops(*arguments):
        if len(steps) == 7:
            raise KeyboardInterrupt
        steps.append(arguments)
        return add_step(*arguments)

    begun = FormulaStore(tmp_path / "begun")
    with monkeypatch.context() as patch:
        patch.setattr(store_build, "_add_step", stops)
        with pytest.warns(MathAMRWarning), pytest.raises(KeyboardInterrupt):
            FormulaStore.build(begun.path, *many_batches, executor=Processes(2))
    assert begun.unfinished() == ROWS + 12
    FormulaStore.build(begun.path, *many_batches)
    assert folder_bytes(begun.path) == folder_bytes(first.path)
