"""Exact search over parts on two nodes: what one index finds, also when an actor or a node dies."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr import MathAMRIndex, RayCluster, ShardedIndex
from pyterrier_mathamr.index import MathAMRIndexError
from pyterrier_mathamr.store import NotBuiltError

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]

LIMIT = 240.0


def rows(rng, count):
    found = rng.standard_normal((count, 8))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def documents():
    """A document in three has the rows of another under a new docno."""
    rng = np.random.default_rng(0)
    drawn = [{"docno": f"m{i:03d}", "doc_embs": rows(rng, 1 + i % 5)} for i in range(200)]
    return drawn + [{**drawn[2 * i], "docno": f"{'az'[i % 2]}{i:03d}"} for i in range(100)]


@pytest.fixture(scope="module")
def queries():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(200)], "query": "text"})
    return frame.assign(query_embs=pd.Series([rows(rng, 1 + i % 4) for i in range(200)], dtype=object))


@pytest.fixture(scope="module")
def whole(documents, tmp_path_factory):
    return MathAMRIndex(tmp_path_factory.mktemp("whole") / "index").index(documents)


@pytest.fixture(scope="module")
def folder(documents, tmp_path_factory):
    """Three parts of 20, 0 and 280 documents."""
    path, order = tmp_path_factory.mktemp("parts"), np.random.default_rng(2).permutation(len(documents))
    for part, places in enumerate(np.split(order, [20, 20])):
        MathAMRIndex(path / f"part-{part:06d}").index([documents[place] for place in places])
    return ShardedIndex.join(path).path


@pytest.fixture(scope="module")
def sharded(_cluster, folder):
    """Searched on both nodes; its actors stay from test to test."""
    _cluster.second()
    index = ShardedIndex(folder, RayCluster(_cluster.address), time_limit=LIMIT)
    yield index
    index.close()


def assert_same(sharded, whole, queries):
    for find in ("colbert", "single_vector"):
        expected = getattr(whole, find)(num_results=30)(queries)
        found = getattr(sharded, find)(num_results=30)(queries)
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    candidates = whole.doc_vn(candidates=40, num_results=10)(queries)
    pd.testing.assert_frame_equal(sharded.doc_vn(candidates=40, num_results=10)(queries), candidates, check_exact=True)
    expected = whole.scorer(normalise=True)(candidates)
    pd.testing.assert_frame_equal(sharded.scorer(normalise=True)(candidates), expected, check_exact=True)


def process_of(index, part):
    import ray

    found: int = ray.get(index._places.places[part]._running[0].__ray_call__.remote(lambda _: os.getpid()))
    return found


def test_search_is_equal_on_200_queries_before_and_after_a_node_died(cluster, sharded, whole, queries):
    assert_same(sharded, whole, queries)
    places = sharded._places.places
    assert len({place.node for place in places}) == 2
    assert str(sharded.explain(queries.iloc[0], "a000")) == str(whole.explain(queries.iloc[0], "a000"))
    cluster.kill()
    assert_same(sharded, whole, queries)
    assert len({place.node for place in places}) == 1


def test_an_actor_that_dies_or_hangs_while_it_searches(cluster, sharded, whole, queries, monkeypatch):
    expected = whole.colbert(num_results=20)(queries)

    def search():
        return sharded.colbert(num_results=20)(queries)

    search()
    victim, done = process_of(sharded, 2), []
    os.kill(victim, signal.SIGSTOP)  # it has been asked, and cannot answer
    searching = threading.Thread(target=lambda: done.append(search()))
    searching.start()
    os.kill(victim, signal.SIGKILL)
    searching.join(LIMIT)
    pd.testing.assert_frame_equal(done[0], expected, check_exact=True)

    hanging = process_of(sharded, 0)
    os.kill(hanging, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(sharded._places, "seconds", 3.0)
        with pytest.raises(MathAMRIndexError, match="part-000000"):
            search()
    os.kill(hanging, signal.SIGCONT)  # Ray has asked it to end
    pd.testing.assert_frame_equal(search(), expected, check_exact=True)


def test_a_node_and_an_actor_that_die_beside_an_update_find_the_old_state_the_new_one_or_a_named_error(
    cluster, documents, queries, tmp_path
):
    some, new = documents[:90], [{**document, "docno": f"new{i}"} for i, document in enumerate(documents[:20])]
    for part in range(3):
        MathAMRIndex(tmp_path / "parts" / f"part-{part:06d}").index(some[part::3])
    joined, whole = ShardedIndex.join(tmp_path / "parts"), MathAMRIndex(tmp_path / "whole").index(some)
    index = ShardedIndex(joined.path, RayCluster(cluster.address), time_limit=LIMIT)

    def search(of):
        return of.colbert(num_results=30)(queries)

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


def test_a_part_that_lies_on_no_node_is_named(cluster, folder, queries):
    index = ShardedIndex([folder / "part-000009"], RayCluster(cluster.address), time_limit=LIMIT)
    with pytest.raises(NotBuiltError, match=r"part-000009: none of the \d nodes"):
        index.colbert()(queries)
    index.close()
