"""A store that is killed, torn, damaged or of another format: what stood stays, and the rest is named."""

import json
from dataclasses import replace

import numpy as np
import pytest
from store_examples import dies_after, files, graph, rows

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.amr import AmrError
from pyterrier_mathamr.graph import (
    ChangedGraphError,
    DamagedStoreError,
    GraphStore,
    MathAMRGraph,
    NotBuiltError,
    StoreFormatError,
    UnfinishedJobError,
)
from pyterrier_mathamr.graph.shard import pack, write_shard


def test_the_same_graphs_give_the_same_bytes_also_after_a_kill(store, tmp_path):
    store.indexer(shard_size=3).index(rows(*range(10)))
    killed = GraphStore(tmp_path / "killed.mathamr")
    with pytest.raises(KeyboardInterrupt):
        killed.indexer(shard_size=3).index(dies_after(rows(*range(8))))
    assert (killed.built(), killed.unfinished_ids()) == (False, frozenset("012345"))
    with pytest.raises(NotBuiltError, match="after 6 graphs"):
        killed.ids()
    killed.indexer(shard_size=3).index(rows(*range(10)))
    assert files(killed.path) == files(store.path)


def test_a_job_goes_on_with_only_the_graphs_that_are_left(store):
    with pytest.raises(KeyboardInterrupt):
        store.indexer(shard_size=3).index(dies_after(rows(*range(8))))
    store.indexer(shard_size=3).index(rows(*range(6, 10)))
    assert store.ids() == [str(i) for i in range(10)]


@pytest.mark.parametrize("damage", [lambda data: data[:-5], lambda data: data[:5], lambda data: b"?" + data[1:]])
def test_a_torn_shard_is_cut_off_with_a_warning_and_built_again(store, damage):
    with pytest.raises(KeyboardInterrupt):
        store.indexer(shard_size=2).index(dies_after(rows(*range(7))))
    torn = store.path.parent / ".graphs.mathamr.partial" / "shard-00001.bin"
    torn.write_bytes(damage(torn.read_bytes()))
    assert {"0", "1"} <= store.unfinished_ids()
    with pytest.warns(MathAMRWarning, match="shard-00001.bin"):
        store.indexer(shard_size=2).index(rows(*range(7)))
    assert store.get_many(store.ids()) == [graph(i) for i in range(7)]


def test_a_kill_while_replacing_or_adding_leaves_the_store_as_it_was(store):
    store.index(rows(1))
    for mode in ("overwrite", "append"):
        with pytest.raises(KeyboardInterrupt):
            store.indexer(mode, shard_size=1).index(dies_after(rows(2, 3)))
        assert GraphStore(store.path).ids() == ["1"]
        store.discard()
    assert (store.unfinished(), store.unfinished_ids()) == (0, frozenset())


def test_a_job_of_another_mode_is_not_mixed_in(store):
    store.index(rows(1))
    with pytest.raises(KeyboardInterrupt):
        store.indexer("overwrite", shard_size=1).index(dies_after(rows(2, 3)))
    with pytest.raises(UnfinishedJobError, match="'overwrite'"):
        store.indexer("append").index(rows(4))
    store.discard()
    assert store.indexer("append").index(rows(4)).ids() == ["1", "4"]


def test_going_on_with_other_graphs_is_refused(store):
    with pytest.raises(KeyboardInterrupt):
        store.indexer(shard_size=1).index(dies_after(rows(1, 2)))
    with pytest.raises(ChangedGraphError, match="'1'"):
        store.index([{"docno": "1", "graph": graph(99)}])


def test_opening_what_was_not_built_says_how_to_build_it(store):
    with pytest.raises(NotBuiltError, match="indexer"):
        len(store)
    assert (store.built(), bool(store), store.unfinished_ids()) == (False, True, frozenset())


def test_a_store_of_another_format_is_refused(store):
    store.index(rows(1))
    meta = json.loads((store.path / "pt_meta.json").read_text())
    (store.path / "pt_meta.json").write_text(json.dumps({**meta, "version": 99}))
    with pytest.raises(StoreFormatError, match="format 99"):
        GraphStore(store.path).ids()


def test_a_store_of_penman_texts_says_how_its_graphs_are_kept(store):
    store.index(rows(1))
    meta = json.loads((store.path / "pt_meta.json").read_text())
    (store.path / "pt_meta.json").write_text(json.dumps({**meta, "version": 1}))
    with pytest.raises(StoreFormatError, match="to_penman under a release that reads format 1"):
        GraphStore(store.path).ids()


def test_unfinished_work_of_another_format_is_refused_and_can_be_discarded(store):
    with pytest.raises(KeyboardInterrupt):
        store.indexer(shard_size=1).index(dies_after(rows(1)))
    job = store.path.parent / ".graphs.mathamr.partial" / "job.json"
    job.write_text(json.dumps({**json.loads(job.read_text()), "format": 1}))
    with pytest.raises(StoreFormatError, match="discard"):
        store.index(rows(1))
    store.discard()
    assert store.index(rows(1)).ids() == ["1"]


def test_a_record_that_is_no_graph_is_reported(store):
    store.index(rows(1))
    for text in ("[]", "{}", '{"amr": {"variables": "a", "edges": [[], [], []], "labels": []}}', "x"):
        record = pack(text)
        write_shard(store.path / "shard-00000.bin", ["1"], [record])
        np.save(store.path / "records-0.npy", np.array([[0, 0, len(record)]]))
        meta = json.loads((store.path / "pt_meta.json").read_text())
        meta["shards"] = [(store.path / "shard-00000.bin").stat().st_size]
        (store.path / "pt_meta.json").write_text(json.dumps(meta))
        with pytest.raises(DamagedStoreError, match="no graph"):
            GraphStore(store.path).get("1")


def test_what_penman_cannot_write_is_refused(store):
    unwritable = MathAMRGraph(replace(graph(1).amr, variables=("a b", "")), (), "1")
    with pytest.raises(AmrError, match="variable"):
        store.index([{"docno": "1", "graph": unwritable}])


@pytest.mark.parametrize("cut", [0, 10])
def test_a_shard_of_the_wrong_length_is_reported_before_it_is_read(store, cut):
    store.index(rows(1, 2))
    shard = store.path / "shard-00000.bin"
    shard.write_bytes(shard.read_bytes()[:cut])
    with pytest.raises(DamagedStoreError, match="shard-00000"):
        GraphStore(store.path).ids()


def test_a_damaged_record_is_reported(store):
    store.index(rows(1, 2))
    shard = store.path / "shard-00000.bin"
    shard.write_bytes(b"\xff" * 4 + shard.read_bytes()[4:])
    with pytest.raises(DamagedStoreError, match="record"):
        GraphStore(store.path).get("1")
