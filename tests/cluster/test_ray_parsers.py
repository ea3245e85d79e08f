"""Neural parsers on two nodes, imitated by fakes: each worker has one, on its assigned GPU."""

import sys
from pathlib import Path

import pytest
from folder_bytes import folder_bytes
from hanging import hang_on
from waiting import gone, until

from mathamr_systems import TransitionAmrParser
from pyterrier_mathamr import GraphBuilder, GraphStore, Processes, RayCluster
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.amr import ParserUnavailableError
from pyterrier_mathamr.graph import build_store

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]

FOREIGN = Path(__file__).parents[1] / "amr" / "worker" / "foreign"
DOCUMENTS = [{"docno": f"d{i}", "text": f"We know that $x_{i}$ is odd. Why is {i}?"} for i in range(60)]
FAILS = [*DOCUMENTS[:40], {"docno": "f", "text": "We Fail."}, *DOCUMENTS[40:]]


class StopsOn(TransitionAmrParser):
    """A parser that has parsed on one node and never returns there."""

    def __init__(self, python, node, folder):
        super().__init__(python, devices=["cuda:0", "cuda:1"], cache=folder / "parses")
        self.node, self.folder = node, folder

    def parse_units(self, units, unit="sentence"):
        parts = super().parse_units(units, unit)
        hang_on(self.node, self.folder)
        return parts


@pytest.fixture
def python(tmp_path):
    """An interpreter that has the fakes, which note the process and the GPU that they were loaded on."""
    file = tmp_path / "python"
    variables = f"FAKE_MARKS={tmp_path} PYTHONPATH={FOREIGN}"
    file.write_text(f'#!/bin/sh\n{variables} exec {sys.executable} -S "$@"\n')
    file.chmod(0o755)
    return file


def loaded(folder):
    return [line.split() for line in (folder / "loaded").read_text().splitlines()]


def built(path, parser, executor, documents=DOCUMENTS):
    builder = GraphBuilder(parser, batch_size=5)
    assert len(build_store(documents, builder, GraphStore(path), executor=executor)) == len(documents)
    return folder_bytes(path)


def test_each_worker_has_a_parser_on_its_gpu_and_one_that_dies_costs_its_work_only(cluster, python, tmp_path):
    with TransitionAmrParser(python) as parser:
        one = built(tmp_path / "one.mathamr", parser, Processes(1))
    (tmp_path / "loaded").unlink()
    stopping = StopsOn(python, cluster.second().node_id, tmp_path)
    with cluster.killed_when((tmp_path / "begun").exists):
        assert built(tmp_path / "ray.mathamr", stopping, RayCluster(cluster.address)) == one
    processes = loaded(tmp_path)
    assert 2 <= len(processes) <= 4  # one in each worker, which has many of the 12 batches
    assert {gpu for _, gpu in processes} == {"0"}
    assert not (tmp_path / "parses").exists()
    assert until(lambda: sum(gone(int(pid)) for pid, _ in processes) >= 1)  # that of the dead node


def test_two_parsers_share_a_gpu_and_count_what_the_embedded_one_parsed(cluster, python, tmp_path):
    parser = TransitionAmrParser(python)
    with pytest.warns(MathAMRWarning, match="returned no graph for 'We Fail"):
        built(tmp_path / "half.mathamr", parser, RayCluster(cluster.address, resources={"CPU": 0.5, "GPU": 0.5}), FAILS)
    assert parser.embedded_count == 1
    assert len(loaded(tmp_path)) <= 4


def test_a_parser_that_is_not_on_a_node_ends_the_job_with_the_reason(cluster, tmp_path):
    parser = TransitionAmrParser(tmp_path / "none", devices=["cpu"])
    with pytest.raises(ParserUnavailableError, match="none"):
        built(tmp_path / "none.mathamr", parser, RayCluster(cluster.address))
