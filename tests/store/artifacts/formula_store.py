"""A formula store: one part, filled in transactions of ``PART`` rows in the scratch file of its job."""

from pathlib import Path
from tempfile import TemporaryDirectory

from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.formula import formula_store as store_build

open = FormulaStore
PART = 2
MODES = ("create", "overwrite")  # its tables are its whole content, so nothing is added to it

_HEAD = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
_IDS = range(64)


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    store_build._STEP = PART
    tables = [_table(rows, seed, tag) for tag in ("mi", "ci")]
    FormulaStore.build(path, tables[:1], tables[1:], overwrite=mode == "overwrite")


def read(path: Path) -> object:
    with FormulaStore(path) as store:
        ids = [f"d{i}" for i in _IDS]
        return len(store), store.get_many(ids), store.visual_ids(ids)


def _table(rows: range, seed: int, tag: str) -> Path:
    path = Path(_SOURCES.name) / f"{tag}-{rows.stop}-{seed}.tsv"
    if not path.exists():
        lines = (f'd{i}\t1\t1\tanswer\t\t9\t{i % 3}\t\t"<math><{tag}>v{i}{seed}</{tag}></math>"\n' for i in rows)
        path.write_text(_HEAD + "".join(lines), encoding="utf-8")
    return path


_SOURCES = TemporaryDirectory()
Path(_SOURCES.name).chmod(0o755)
for _rows in (range(8), range(12)):  # before a trial fills the disk
    for _seed in (0, 1):
        for _tag in ("mi", "ci"):
            _table(_rows, _seed, _tag)
