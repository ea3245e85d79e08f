"""Formulas that two nodes read, their trees in a store and symbol pairs in an index: the bytes of one process."""

import pytest
from folder_bytes import folder_bytes

from pyterrier_mathamr import Processes, RayCluster
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.formula.store import build as store_build
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.sparse import index as sparse

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]

ROWS = 200


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.setattr(store_build, "BATCH", 10)
    for kind, tag in (("slt", "mi"), ("opt", "ci")):
        rows = (f'{i}\t1\tanswer\t{i % 5}\t"<math><{tag}>x{i % 60}</{tag}></math>"\n' for i in range(ROWS))
        (tmp_path / f"{kind}.tsv").write_text("id\tpost_id\ttype\tvisual_id\tformula\n" + "".join(rows))
    return [tmp_path / "slt.tsv"], [tmp_path / "opt.tsv"]


def test_a_cluster_writes_the_formula_store_of_one_process(cluster, tables, tmp_path):
    for name, executor in (("one", Processes(1)), ("ray", RayCluster(cluster.address))):
        assert len(FormulaStore.build(tmp_path / name, *tables, executor=executor)) == ROWS
    assert folder_bytes(tmp_path / "ray") == folder_bytes(tmp_path / "one")


def test_a_cluster_takes_the_symbol_pairs_of_one_process(cluster, tables, tmp_path, monkeypatch):
    monkeypatch.setattr(sparse, "BATCH", 20)
    store = FormulaStore.build(tmp_path / "trees", *tables)
    posts = [
        {"docno": f"d{i}", "html": f'<span class="math-container" id="{i}">x{i}</span> and $y^{{{i}}}$'}
        for i in range(ROWS)
    ]
    for name, executor in (("one", None), ("ray", RayCluster(cluster.address))):
        TangentIndex(tmp_path / name).indexer(store=store, executor=executor).index(posts)
    assert folder_bytes(tmp_path / "ray") == folder_bytes(tmp_path / "one")
