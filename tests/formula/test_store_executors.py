"""A store that several processes read the MathML of: the bytes of one process, also of what another began."""

import pytest
from folder_bytes import folder_bytes

from pyterrier_mathamr import Processes
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.formula import formula_store as store_build

HEAD = "id\tpost_id\ttype\tvisual_id\tformula\n"
ROWS = 90


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Tables of many small batches; trees that come again in others, empty cells, and MathML without a tree."""
    monkeypatch.setattr(store_build, "BATCH", 4)
    monkeypatch.setattr(store_build, "_STEP", 12)
    paths = tmp_path / "slt.tsv", tmp_path / "opt.tsv"
    cells = (
        [f"<math><mi>s{i % 13}</mi></math>" if i % 20 else "no markup" for i in range(ROWS)],
        [f"<math><ci>o{i % 17}</ci></math>" if i % 7 else "" for i in range(ROWS)],
    )
    for path, column in zip(paths, cells, strict=True):
        rows = (f'{i}\t1\tanswer\t{i % 5}\t"{cell}"\n' for i, cell in enumerate(column))
        path.write_text(HEAD + "".join(rows), encoding="utf-8")
    return [[path] for path in paths]


def warned(record):
    return [str(warning.message) for warning in record if issubclass(warning.category, MathAMRWarning)]


def test_two_processes_write_the_bytes_and_warnings_of_one(tmp_path, tables):
    with pytest.warns(MathAMRWarning) as one:
        first = FormulaStore.build(tmp_path / "one", *tables)
    with pytest.warns(MathAMRWarning) as two:
        second = FormulaStore.build(tmp_path / "two", *tables, executor=Processes(2))
    assert folder_bytes(second.path) == folder_bytes(first.path)
    assert warned(two) == warned(one)
    assert warned(one)[0] == "1 of 12 formulas up to id 11 have MathML without a tree; stored so"


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_a_job_begun_by_several_processes_is_completed_by_one(tmp_path, tables, monkeypatch):
    whole = FormulaStore.build(tmp_path / "whole", *tables)
    add_step, steps = store_build._add_step, []

    def stops(*arguments):
        if len(steps) == 10:
            raise KeyboardInterrupt
        steps.append(arguments)
        return add_step(*arguments)

    store = FormulaStore(tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(store_build, "_add_step", stops)
        with pytest.raises(KeyboardInterrupt):
            FormulaStore.build(store.path, *tables, executor=Processes(2))
    assert store.unfinished() == ROWS + 24
    FormulaStore.build(store.path, *tables)
    ids = [str(i) for i in range(ROWS)]
    assert store.get_many(ids) == whole.get_many(ids)
    assert store.visual_ids(ids) == whole.visual_ids(ids)
    assert folder_bytes(store.path) == folder_bytes(whole.path)
