"""Vectors encoded on two nodes or in two processes: the bytes of one process, by both ways of writing parts."""

import pytest
from folder_bytes import folder_bytes

from pyterrier_mathamr import (
    GraphBuilder,
    GraphStore,
    MathAMR,
    MathAMRFormulaIndex,
    MathAMRIndex,
    Processes,
    RayCluster,
)
from pyterrier_mathamr.index import index_documents, indexing
from pyterrier_mathamr.store.job import job_folder

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]

MODEL = MathAMR.from_pretrained("mathamr-plus-mini")


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    texts = [f"Why is $x^{i % 9}$ even? " * (1 + i % 4) for i in range(450)]
    documents = ({"docno": f"d{i}", "text": text} for i, text in enumerate(texts))
    store = GraphStore(tmp_path_factory.mktemp("graphs") / "graphs.mathamr")
    (GraphBuilder() >> store.indexer()).index(documents)
    return store


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of some 30 documents, so that there are many; cut in the middle of batches."""
    monkeypatch.setattr(indexing, "PART_BYTES", 20_000)


def built(graphs, path, executor, kind=MathAMRIndex, docnos=None):
    index = index_documents(docnos or graphs.ids(), graphs, MODEL, kind(path), executor=executor)
    assert not job_folder(path).exists()
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(f".{path.name}")] == []
    return folder_bytes(index.path)


def test_planned_parts_have_the_bytes_of_one_process(cluster, graphs, small_parts, tmp_path):
    one = built(graphs, tmp_path / "one", Processes(1))
    assert sum(name.endswith(".safetensors") for name in one) >= 8
    assert built(graphs, tmp_path / "two", Processes(2)) == one
    assert built(graphs, tmp_path / "ray", RayCluster(cluster.address)) == one


def test_a_node_that_dies_while_parts_are_written_leaves_no_part_twice(cluster, graphs, small_parts, tmp_path):
    one = built(graphs, tmp_path / "one", Processes(1))
    planned = job_folder(tmp_path / "ray") / "planned"
    with cluster.killed_when(lambda: any(planned.glob("*"))):
        assert built(graphs, tmp_path / "ray", RayCluster(cluster.address)) == one


def test_few_parts_are_written_by_the_driver_also_without_shared_storage(cluster, graphs, tmp_path, monkeypatch):
    one = built(graphs, tmp_path / "one", Processes(1))
    assert built(graphs, tmp_path / "ray", RayCluster(cluster.address)) == one
    monkeypatch.setattr(RayCluster, "sees", lambda self, file: False)
    assert built(graphs, tmp_path / "apart", RayCluster(cluster.address)) == one
    formulas = built(graphs, tmp_path / "formulas one", Processes(1), MathAMRFormulaIndex)
    assert built(graphs, tmp_path / "formulas", RayCluster(cluster.address), MathAMRFormulaIndex) == formulas


def test_nodes_see_files_of_shared_storage_only(cluster, tmp_path):
    (tmp_path / "file").write_text("here")
    assert RayCluster(cluster.address).sees(tmp_path / "file")
    assert not RayCluster(cluster.address).sees(tmp_path / "none")
