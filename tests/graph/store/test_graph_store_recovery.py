"""A store that is killed, torn, damaged or of another format: what was there stays, and the rest is named."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from store_examples import dies_after, files, graph, rows

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.amr import AmrError
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph, TensorStore
from pyterrier_mathamr.graph.store import Record, pack
from pyterrier_mathamr.store import (
    DamagedError,
    FormatError,
    NotBuiltError,
    OtherArtifactError,
    UnfinishedJobError,
    WriteError,
)

DATA = Path(__file__).parents[2] / "data"


def test_the_same_graphs_give_the_same_bytes_also_after_a_kill(store, tmp_path):
    store.indexer(shard_size=3).index(rows(*range(10)))
    killed = GraphStore(tmp_path / "killed.mathamr")
    with pytest.raises(KeyboardInterrupt):
        killed.indexer(shard_size=3).index(dies_after(rows(*range(8))))
    assert (killed.built(), killed.unfinished()) == (False, 6)
    with pytest.raises(NotBuiltError, match="finished 6 rows"):
        killed.ids()
    killed.indexer(shard_size=3).index(rows(*range(10)))
    assert files(killed.path) == files(store.path)


def test_a_job_that_goes_on_is_given_all_graphs_again(store):
    with pytest.raises(KeyboardInterrupt):
        store.indexer(shard_size=3).index(dies_after(rows(*range(8))))
    with pytest.raises(UnfinishedJobError, match="rows without these"):
        store.indexer(shard_size=3).index(rows(*range(6, 10)))
    store.discard()
    assert store.indexer(shard_size=3).index(rows(*range(6, 10))).ids() == ["6", "7", "8", "9"]


@pytest.mark.parametrize("damage", [lambda data: data[:-5], lambda data: data[:5], lambda data: b"?" + data[1:]])
def test_a_torn_part_is_cut_off_with_a_warning_and_built_again(store, damage):
    with pytest.raises(KeyboardInterrupt):
        store.indexer(shard_size=2).index(dies_after(rows(*range(7))))
    torn = store.path.parent / ".graphs.mathamr.job" / "parts" / "part-000001" / "arrays.safetensors"
    torn.write_bytes(damage(torn.read_bytes()))
    with pytest.warns(MathAMRWarning, match="part-000001"):
        store.indexer(shard_size=2).index(rows(*range(7)))
    assert store.get_many(store.ids()) == [graph(i) for i in range(7)]


def test_a_kill_while_replacing_or_adding_leaves_the_store_as_it_was(store):
    store.index(rows(1))
    for mode in ("overwrite", "append"):
        with pytest.raises(KeyboardInterrupt):
            store.indexer(mode, shard_size=1).index(dies_after(rows(2, 3)))
        assert GraphStore(store.path).ids() == ["1"]
        assert store.unfinished() == 2
        store.discard()
    assert store.unfinished() == 0


def test_a_job_of_another_mode_is_not_mixed_in(store):
    store.index(rows(1))
    with pytest.raises(KeyboardInterrupt):
        store.indexer("overwrite", shard_size=1).index(dies_after(rows(2, 3)))
    with pytest.raises(UnfinishedJobError, match="mode: overwrite, not append"):
        store.indexer("append").index(rows(4))
    store.discard()
    assert store.indexer("append").index(rows(4)).ids() == ["1", "4"]


def test_going_on_with_other_graphs_is_refused(store):
    with pytest.raises(KeyboardInterrupt):
        store.indexer(shard_size=1).index(dies_after(rows(1, 2)))
    with pytest.raises(UnfinishedJobError, match="row '1': one content, not another"):
        store.index([{"docno": "1", "graph": graph(99)}])


def test_opening_what_was_not_built_says_so(store):
    with pytest.raises(NotBuiltError, match="no finished graph_store"):
        len(store)
    assert (store.built(), bool(store), store.unfinished()) == (False, True, 0)


def test_a_store_of_another_format_is_refused_until_it_is_overwritten(store):
    store.index(rows(1))
    meta = json.loads((store.path / "pt_meta.json").read_text())
    (store.path / "pt_meta.json").write_text(json.dumps({**meta, "format_version": 99}))
    with pytest.raises(FormatError, match="format 99, this release reads 3"):
        GraphStore(store.path).ids()
    assert store.indexer("overwrite").index(rows(2)).ids() == ["2"]


def test_a_store_of_the_format_before_is_refused_with_what_rebuilds_it():
    with pytest.raises(FormatError, match=r"format 2, .*to_penman under the release that made it.*import-graphs FILE"):
        GraphStore(DATA / "graph-store-format-2").ids()


def test_a_store_of_this_format_opens():
    store = GraphStore(DATA / "graph-store-format-3")
    store.verify()
    assert store.ids() == ["1", "2", "3"]
    assert store["2"].text == "The sum FORMULA_0 is even."
    assert store["2"].latex == ("a + b",)


PLACES = {
    "a folder of other things": lambda path: (path.mkdir(), (path / "thesis.tex").write_text("chapter 1")),
    "a file": lambda path: path.write_text("chapter 1"),
    "another artifact": lambda path: TensorStore.build(path, []),
}


@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_graph_store_is_neither_read_nor_replaced(store, place, mode):
    PLACES[place](store.path)
    before = files(store.path)
    with pytest.raises(OtherArtifactError, match=r"not a graph_store|no graph_store"):
        store.indexer(mode).index(rows(1))
    with pytest.raises(OtherArtifactError):
        len(store)
    assert files(store.path) == before


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    for build in (lambda path: GraphStore(path).index(rows(1)), lambda path: TensorStore.build(path, [])):
        with pytest.raises(WriteError, match=r"file/new.*cannot be written"):
            build(tmp_path / "file" / "new")


@pytest.mark.parametrize(
    "data",
    [
        *map(pack, ("[]", "{}", '{"amr": {"variables": "a", "edges": [[], [], []], "labels": []}}', "x", "[" * 99_999)),
        b"\xff\xff",
    ],
)
def test_a_record_that_is_no_graph_is_reported(store, data):
    store.indexer().index_records([Record("1", data)], {})
    with pytest.raises(DamagedError, match="the record of '1' is no graph"):
        store.get("1")


def test_what_penman_cannot_write_is_refused(store):
    unwritable = MathAMRGraph(replace(graph(1).amr, variables=("a b", "")), (), "1")
    with pytest.raises(AmrError, match="variable"):
        store.index([{"docno": "1", "graph": unwritable}])


def test_graphs_are_kept_in_parts_that_are_bounded_in_bytes(store, monkeypatch):
    monkeypatch.setattr("pyterrier_mathamr.graph.store.GRAPHS", replace(store.KIND, part_bytes=1000))
    parts = []
    monkeypatch.setattr("pyterrier_mathamr.store.Job.add", lambda job, content: parts.append(content))
    monkeypatch.setattr("pyterrier_mathamr.store.Job.commit", lambda job, details: None)
    store.index(rows(*range(50)))
    sizes = [len(content.arrays["records"]) for content in parts]
    assert sum(len(content.ids) for content in parts) == 50
    assert max(sizes) <= 1000 < min(sizes[:-1]) + 200
