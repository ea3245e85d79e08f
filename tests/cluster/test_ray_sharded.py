"""Exact search over parts on two nodes: what one index finds, also when an actor or a node dies."""

import os
import signal
import threading

import pandas as pd
import pytest

from pyterrier_mathamr import MathAMRIndex, RayCluster, ShardedIndex
from pyterrier_mathamr.index import MathAMRIndexError
from pyterrier_mathamr.store import NotBuiltError
from tests.index.sharded.sharded_parts import STRATEGIES, asked, cut, drawn

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]

LIMIT = 240.0
DOCUMENTS, QUERIES = drawn(seed=0, documents=200, copies=100), asked(seed=1, queries=200)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return MathAMRIndex(tmp_path_factory.mktemp("whole") / "index").index(DOCUMENTS)


@pytest.fixture(scope="module")
def sharded(_cluster, tmp_path_factory):
    """Three parts of 20, 0 and 280 documents, searched on both nodes; the actors stay from test to test."""
    _cluster.second()
    path = tmp_path_factory.mktemp("parts")
    cut(path, DOCUMENTS, [20, 20])
    index = ShardedIndex(ShardedIndex.join(path).path, RayCluster(_cluster.address), time_limit=LIMIT)
    yield index
    index.close()


def search(index):
    return index.colbert(num_results=30)(QUERIES)


def assert_same(sharded, whole):
    for name in ("ColBERT", "single vector", "doc-VN"):
        expected = STRATEGIES[name](whole)(QUERIES)
        pd.testing.assert_frame_equal(STRATEGIES[name](sharded)(QUERIES), expected, check_exact=True)
    scored = whole.scorer(normalise=True)(expected)
    pd.testing.assert_frame_equal(sharded.scorer(normalise=True)(expected), scored, check_exact=True)


def process_of(index, part):
    import ray

    return ray.get(index._places.places[part]._running[0].__ray_call__.remote(lambda _: os.getpid()))


def test_search_is_equal_on_200_queries_before_and_after_a_node_died(cluster, sharded, whole):
    assert_same(sharded, whole)
    places = sharded._places.places
    assert len({place.node for place in places}) == 2
    assert str(sharded.explain(QUERIES.iloc[0], "a0000")) == str(whole.explain(QUERIES.iloc[0], "a0000"))
    cluster.kill()
    assert_same(sharded, whole)
    assert len({place.node for place in places}) == 1


def test_an_actor_that_dies_or_hangs_while_it_searches(cluster, sharded, whole, monkeypatch):
    expected = search(whole)
    search(sharded)
    victim, done = process_of(sharded, 2), []
    os.kill(victim, signal.SIGSTOP)  # it has been asked, and cannot answer
    searching = threading.Thread(target=lambda: done.append(search(sharded)))
    searching.start()
    os.kill(victim, signal.SIGKILL)
    searching.join(LIMIT)
    pd.testing.assert_frame_equal(done[0], expected, check_exact=True)

    hanging = process_of(sharded, 0)
    os.kill(hanging, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(sharded._places, "seconds", 3.0)
        with pytest.raises(MathAMRIndexError, match="part-000000"):
            search(sharded)
    os.kill(hanging, signal.SIGCONT)  # Ray has asked it to end
    pd.testing.assert_frame_equal(search(sharded), expected, check_exact=True)


def test_a_node_and_an_actor_that_die_beside_an_update_find_the_old_state_the_new_one_or_a_named_error(
    cluster, tmp_path
):
    some, new = DOCUMENTS[:90], [{**document, "docno": f"new{i}"} for i, document in enumerate(DOCUMENTS[:20])]
    cut(tmp_path / "parts", some, [30, 60])
    joined, whole = ShardedIndex.join(tmp_path / "parts"), MathAMRIndex(tmp_path / "whole").index(some)
    index = ShardedIndex(joined.path, RayCluster(cluster.address), time_limit=LIMIT)
    old = search(whole)

    def update():
        yield from new[:10]
        cluster.kill()
        pd.testing.assert_frame_equal(search(index), old, check_exact=True)
        yield from new[10:]

    pd.testing.assert_frame_equal(search(index), old, check_exact=True)
    MathAMRIndex(joined.path / "part-000001").indexer("append").index(update())
    os.kill(process_of(index, 1), signal.SIGKILL)
    with pytest.raises(MathAMRIndexError, match="part-000001"):  # it has other documents than the joined folder says
        search(index)
    ShardedIndex.join(joined.path)
    search(index)
    os.kill(process_of(index, 1), signal.SIGKILL)
    whole.indexer("append").index(new)
    pd.testing.assert_frame_equal(search(index), search(whole), check_exact=True)
    index.close()


def test_a_part_that_lies_on_no_node_is_named(cluster, tmp_path):
    index = ShardedIndex([tmp_path / "part-000009"], RayCluster(cluster.address), time_limit=LIMIT)
    with pytest.raises(NotBuiltError, match=r"part-000009: none of the \d nodes"):
        index.colbert()(QUERIES)
    index.close()
