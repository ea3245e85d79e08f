"""Graphs built on two nodes: the bytes of one process, also where a node dies; another executor completes a job."""

import threading
import time
from pathlib import Path

import pytest
from folder_bytes import folder_bytes
from waiting import until

from pyterrier_mathamr import GraphBuilder, GraphStore, Processes, RayCluster
from pyterrier_mathamr.amr import DependencyAmrParser
from pyterrier_mathamr.graph import build_store

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]

DOCUMENTS = [
    {"docno": f"d{i}", "title": f"Number {i}", "text": f"We know that $x_{i} = {i}$ is odd. Why is $x_{i}^2$?"}
    for i in range(150)
]


class EndlessOn(DependencyAmrParser):
    """The embedded parser that never ends on one node, and on the other not before something has begun there."""

    def __init__(self, node, folder):
        super().__init__()
        self.node, self.folder = node, folder

    def parse_units(self, units, unit="sentence"):
        import ray

        begun = self.folder / "begun"
        if ray.get_runtime_context().get_node_id() == self.node:
            begun.touch()
            time.sleep(600)
        assert until(begun.exists)
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
    killed = threading.Thread(target=lambda: until((tmp_path / "begun").exists) and cluster.kill())
    killed.start()
    assert built(tmp_path / "killed.mathamr", RayCluster(cluster.address), parser)[0] == one
    killed.join()


def stopping(documents):
    yield from documents
    raise KeyboardInterrupt


def test_what_a_cluster_began_processes_complete_and_the_other_way_round(cluster, tmp_path):
    one, _ = built(tmp_path / "one.mathamr", Processes(1))
    executors = [RayCluster(cluster.address), Processes(1)]
    for first, second in (executors, executors[::-1]):
        path: Path = tmp_path / f"{type(first).__name__}.mathamr"
        with pytest.raises(KeyboardInterrupt):
            built(path, first, documents=stopping(DOCUMENTS[:120]))
        assert 0 < GraphStore(path).unfinished() < len(DOCUMENTS)
        assert built(path, second)[0] == one
