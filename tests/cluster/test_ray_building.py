"""What two nodes build is what one process builds, even if a node dies: graphs, formulas, symbol pairs, vectors."""

from pathlib import Path

import numpy as np
import pytest
from folder_bytes import folder_bytes
from hanging import hang_on

from pyterrier_mathamr import (
    GraphBuilder,
    GraphStore,
    MathAMR,
    MathAMRFormulaIndex,
    MathAMRIndex,
    Processes,
    RayCluster,
)
from pyterrier_mathamr.amr import DependencyAmrParser
from pyterrier_mathamr.formula import FormulaStore, formula_store
from pyterrier_mathamr.graph import build_store
from pyterrier_mathamr.index import index_documents, indexing
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.store.job import job_folder
from tests.index.sharded.sharded_parts import drawn

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]

DOCUMENTS = [
    {"docno": f"d{i}", "title": f"Number {i}", "text": f"We know that $x_{i} = {i}$ is odd. Why is $x_{i}^2$?"}
    for i in range(150)
]


class EndlessOn(DependencyAmrParser):
    """The embedded parser that never ends on one node."""

    def __init__(self, node, folder):
        super().__init__()
        self.node, self.folder = node, folder

    def parse_units(self, units, unit="sentence"):
        hang_on(self.node, self.folder)
        return super().parse_units(units, unit)


def built(path, executor, parser="dependency", documents=DOCUMENTS):
    builder = GraphBuilder(parser, batch_size=7)
    store = build_store(documents, builder, GraphStore(path), executor=executor, shard_size=20)
    return folder_bytes(path), store


def test_a_cluster_writes_the_bytes_of_processes_also_where_a_node_dies(cluster, tmp_path):
    one, store = built(tmp_path / "one.mathamr", Processes(1))
    assert len(store) == len(DOCUMENTS)
    assert built(tmp_path / "two.mathamr", Processes(2))[0] == one
    assert built(tmp_path / "ray.mathamr", RayCluster(cluster.address))[0] == one

    parser = EndlessOn(cluster.second().node_id, tmp_path)
    with cluster.killed_when((tmp_path / "begun").exists):
        assert built(tmp_path / "killed.mathamr", RayCluster(cluster.address), parser)[0] == one


def stopping(documents):
    yield from documents
    raise KeyboardInterrupt


def test_a_job_begun_on_a_cluster_is_completed_by_processes_and_vice_versa(cluster, tmp_path):
    one, _ = built(tmp_path / "one.mathamr", Processes(1))
    executors = [RayCluster(cluster.address), Processes(1)]
    for first, second in (executors, executors[::-1]):
        path: Path = tmp_path / f"{type(first).__name__}.mathamr"
        with pytest.raises(KeyboardInterrupt):
            built(path, first, documents=stopping(DOCUMENTS[:120]))
        assert 0 < GraphStore(path).unfinished() < len(DOCUMENTS)
        assert built(path, second)[0] == one


ROWS = 200


def test_a_cluster_writes_the_formulas_and_symbol_pairs_of_one_process(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(formula_store, "BATCH", 10)
    monkeypatch.setattr(sparse, "BATCH", 20)
    for kind, tag in (("slt", "mi"), ("opt", "ci")):
        rows = (f'{i}\t1\tanswer\t{i % 5}\t"<math><{tag}>x{i % 60}</{tag}></math>"\n' for i in range(ROWS))
        (tmp_path / f"{kind}.tsv").write_text("id\tpost_id\ttype\tvisual_id\tformula\n" + "".join(rows))
    formula = '<span class="math-container" id="{0}">x{0}</span> and $y^{{{0}}}$'
    posts = [{"docno": f"d{i}", "html": formula.format(i)} for i in range(ROWS)]
    for name, executor in (("one", Processes(1)), ("ray", RayCluster(cluster.address))):
        tables = [tmp_path / "slt.tsv"], [tmp_path / "opt.tsv"]
        store = FormulaStore.build(tmp_path / f"{name} trees", *tables, executor=executor)
        assert len(store) == ROWS
        TangentIndex(tmp_path / f"{name} pairs").indexer(store=store, executor=executor).index(posts)
    for kind in ("trees", "pairs"):
        assert folder_bytes(tmp_path / f"ray {kind}") == folder_bytes(tmp_path / f"one {kind}")


def test_a_cluster_finds_the_nearest_documents_of_one_process(cluster, tmp_path):
    index = MathAMRIndex(tmp_path / "some.mathamr").index(drawn(seed=0, documents=ROWS, copies=0))
    for candidates in (None, 20):
        one, ray = (
            index.corpus_graph(5, tmp_path / f"{name}-{candidates}", candidates=candidates, executor=executor)
            for name, executor in (("one", None), ("ray", RayCluster(cluster.address)))
        )
        assert ray.edges.tolist() == one.edges.tolist()
        np.testing.assert_allclose(ray.weights, one.weights, atol=1e-3)


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


def indexed(graphs, path, executor, kind=MathAMRIndex):
    model = MathAMR.from_pretrained("mathamr-plus-mini")
    index = index_documents(graphs.ids(), graphs, model, kind(path), executor=executor)
    assert not job_folder(path).exists()
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(f".{path.name}")] == []
    return folder_bytes(index.path)


def test_planned_parts_have_the_bytes_of_one_process(cluster, graphs, small_parts, tmp_path):
    one = indexed(graphs, tmp_path / "one", Processes(1))
    assert sum(name.endswith(".safetensors") for name in one) >= 8
    assert indexed(graphs, tmp_path / "two", Processes(2)) == one
    assert indexed(graphs, tmp_path / "ray", RayCluster(cluster.address)) == one


def test_a_node_that_dies_while_parts_are_written_leaves_no_part_twice(cluster, graphs, small_parts, tmp_path):
    one = indexed(graphs, tmp_path / "one", Processes(1))
    planned = job_folder(tmp_path / "ray") / "planned"
    with cluster.killed_when(lambda: any(planned.glob("*"))):
        assert indexed(graphs, tmp_path / "ray", RayCluster(cluster.address)) == one


def test_few_parts_are_written_by_the_driver_also_without_shared_storage(cluster, graphs, tmp_path, monkeypatch):
    one = indexed(graphs, tmp_path / "one", Processes(1))
    assert indexed(graphs, tmp_path / "ray", RayCluster(cluster.address)) == one
    (tmp_path / "file").write_text("here")
    seen = [RayCluster(cluster.address).sees(tmp_path / name) for name in ("file", "none")]
    assert seen == [True, False]
    monkeypatch.setattr(RayCluster, "sees", lambda self, file: False)
    assert indexed(graphs, tmp_path / "apart", RayCluster(cluster.address)) == one
    formulas = indexed(graphs, tmp_path / "formulas one", Processes(1), MathAMRFormulaIndex)
    assert indexed(graphs, tmp_path / "formulas", RayCluster(cluster.address), MathAMRFormulaIndex) == formulas
