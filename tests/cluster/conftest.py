"""A Ray cluster of two nodes on this machine, started once for all tests that need one."""

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from waiting import until


class TwoNodes:
    """The head, on which the tests are, and a second node that may be killed and started again."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self._options = {"num_cpus": 1, "num_gpus": 1, "object_store_memory": 80 << 20}  # no real GPU
        head = {**self._options, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self.cluster.address
        self._second = None

    def second(self):
        """Return the second node, started if it is not alive."""
        if self._second is None:
            self._second = self.cluster.add_node(**self._options)
            self.cluster.wait_for_nodes()
        return self._second

    def kill(self):
        """Kill all processes of the second node, as a power cut does."""
        self.cluster.remove_node(self._second, allow_graceful=False)
        self._second = None

    @contextmanager
    def killed_when(self, condition):
        """Kill the second node during the block, once a condition holds."""
        killing = threading.Thread(target=lambda: until(condition) and self.kill())
        killing.start()
        yield
        killing.join()


@pytest.fixture(scope="session")
def _cluster() -> Iterator[TwoNodes]:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    import ray

    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # short: a socket's path has at most 107 characters
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # the functions that tests map are in tests
        nodes = TwoNodes()
        try:
            yield nodes
        finally:
            ray.shutdown()
            nodes.cluster.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster(_cluster) -> TwoNodes:
    """Two nodes of one core each, both alive."""
    _cluster.second()
    return _cluster
