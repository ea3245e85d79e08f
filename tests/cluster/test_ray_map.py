"""Work on two nodes: order, errors, a node that dies, a caller that stops."""

import os
import signal
import threading
import time
from collections import Counter
from functools import partial

import pytest
from hanging import hang_on
from waiting import gone, until

from pyterrier_mathamr import RayCluster
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.ray_cluster import ClusterError

pytestmark = pytest.mark.enable_socket


def square(number):
    return number * number


def environment(_):
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_WAIT_POLICY")
    return tuple(os.environ[name] for name in names)


def refuse(number):
    if number == 5:
        raise ConfigError("number", number, "another one")
    return number


def endless_on(node, folder, number):
    """Leave a file; never end on one node."""
    (folder / f"{number}-{os.getpid()}").touch()
    hang_on(node, folder)
    return number


def slowly(folder, number):
    (folder / f"{number}-{os.getpid()}").touch()
    time.sleep(600)


def test_results_come_in_the_order_of_the_items_which_are_read_a_few_ahead(cluster):
    read = []
    items = (read.append(i) or i for i in range(200))
    results = RayCluster(cluster.address).map(square, items)
    assert next(results) == 0
    assert len(read) < 100
    assert list(results) == [i * i for i in range(1, 200)]


@pytest.mark.slow
def test_workers_compute_on_one_thread_and_sleep_while_they_wait(cluster):
    assert set(RayCluster(cluster.address).map(environment, range(4))) == {("1", "1", "1", "PASSIVE")}


@pytest.mark.slow
def test_an_error_of_the_work_is_raised_in_its_place(cluster):
    results = RayCluster(cluster.address, workers=1).map(refuse, range(10))
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ConfigError, match="number=5 is not accepted; give another one"):
        next(results)


@pytest.mark.slow
def test_a_node_that_dies_costs_only_its_work(cluster, tmp_path):
    work = partial(endless_on, cluster.second().node_id, tmp_path)
    with cluster.killed_when((tmp_path / "begun").exists):
        assert list(RayCluster(cluster.address).map(work, range(30))) == list(range(30))
    attempts = Counter(file.name.partition("-")[0] for file in tmp_path.glob("*-*"))
    assert len(attempts) == 30
    assert sum(attempts.values()) == 31  # the node's item twice


@pytest.mark.slow
def test_a_caller_that_stops_ends_the_work(cluster, tmp_path):
    results = RayCluster(cluster.address).map(partial(slowly, tmp_path), range(20))
    with pytest.raises(KeyboardInterrupt):
        stop_when(results, lambda: len(list(tmp_path.iterdir())) == 2)
    running = [int(file.name.partition("-")[2]) for file in tmp_path.iterdir()]
    assert until(lambda: all(map(gone, running)))
    assert list(RayCluster(cluster.address).map(square, range(3))) == [0, 1, 4]


def stop_when(results, condition):
    """Interrupt the wait for the first result, as Ctrl-C does, once the work has begun."""

    def watch():
        until(condition)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=watch).start()
    try:
        next(results)
    finally:
        results.close()


@pytest.mark.slow
def test_resources_that_no_node_has_and_other_clusters_are_refused(cluster):
    with pytest.raises(ClusterError, match="none of its nodes has CPU: 1, GPU: 2"):
        list(RayCluster(cluster.address, resources={"GPU": 2}).map(square, [1]))
    list(RayCluster("auto").map(square, [1]))
    with pytest.raises(ClusterError, match="one process uses one cluster"):
        list(RayCluster("192.0.2.1:6379").map(square, [1]))


def test_a_missing_head_is_reported_at_once():
    pytest.importorskip("ray", reason="the extra ray is not installed")
    import ray

    ray.shutdown()
    with pytest.raises(ClusterError, match=r"127.0.0.1:1: it cannot be reached .* `ray start --head` starts a cluster"):
        RayCluster("127.0.0.1:1").connect()
