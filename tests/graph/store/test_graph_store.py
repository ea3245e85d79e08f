"""The store of graphs: by id, the same bytes after a kill, damage and old formats named.

What every artifact does (jobs, modes, deletion, publication) is tested once for all of them in ``tests/store``.
"""

import pickle
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
from graph_examples import one_sentence, whole
from store_examples import dies_after, files, graph, rows

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.amr import AmrError
from pyterrier_mathamr.graph import GraphError, GraphStore, MathAMRGraph
from pyterrier_mathamr.graph.store import Record, pack
from pyterrier_mathamr.store import (
    DamagedError,
    FormatError,
    NotBuiltError,
    UnfinishedJobError,
    UnknownIdError,
    WriteError,
)

DATA = Path(__file__).parents[2] / "data"


def test_stored_graphs_come_back_in_order(store):
    stored = [{"docno": "b", "graph": whole()}, {"docno": "a", "graph": one_sentence()}]
    assert store.index(stored) is store
    assert (len(store), store.ids(), list(store)) == (2, ["b", "a"], ["b", "a"])
    assert store["b"].amr == whole().amr
    assert (store["b"].id, store["b"].formula_ids) == ("b", whole().formula_ids)
    assert [row["docno"] for row in store.get_corpus_iter()] == ["b", "a"]
    assert ("a" in store, "c" in store, 3 in store) == (True, False, False)
    store.indexer("overwrite").index([{"qid": "A.1", "query_graph": whole()}, {"qid": "A.2", "graph": whole()}])
    assert store.ids() == ["A.1", "A.2"]


def test_ids_of_any_printed_characters_are_kept(store):
    names = ["a b", "ü", "漢字", "a ::b", " a", '"', "\ud800", "x" * 20_000]
    store.index([{"docno": name, "graph": one_sentence()} for name in names])
    assert [store[name].id for name in names] == names


def test_unknown_ids_are_all_named(store):
    store.index(rows(1, 2))
    with pytest.raises(UnknownIdError, match="'7', '9'") as caught:
        store.get_many(["1", "7", "2", "9"])
    assert caught.value.ids == ["7", "9"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(UnknownIdError, match="'x'"):
        store.loader()(pd.DataFrame({"docno": ["1", "x"]}))


def test_overwrite_replaces_and_append_adds(store):
    store.index(rows(1))
    store.indexer("overwrite").index(rows(2, 3))
    assert store.ids() == ["2", "3"]
    old = files(store.path)
    store.indexer("append", shard_size=2).index(rows(4, 5, 6))
    assert store.ids() == ["2", "3", "4", "5", "6"]
    assert store["6"] == graph(6)
    assert {name: files(store.path)[name] for name in old if name != "pt_meta.json"}.items() <= old.items()
    assert [file for file in store.path.parent.iterdir() if file != store.path] == []


def test_rows_without_id_or_graph_are_refused(store):
    with pytest.raises(pt.validate.InputValidationError):
        store.index([{"docno": "1", "text": "x"}])
    with pytest.raises(GraphError, match="GraphBuilder"):
        store.index([{"docno": "1", "graph": "(a / b)"}])
    unwritable = MathAMRGraph(replace(graph(1).amr, variables=("a b", "")), (), "1")
    with pytest.raises(AmrError, match="variable"):
        store.index([{"docno": "1", "graph": unwritable}])


def test_wrong_options_are_refused(store):
    with pytest.raises(ConfigError, match="mode='replace'"):
        store.indexer("replace")
    with pytest.raises(ConfigError, match="shard_size=0"):
        store.indexer(shard_size=0)
    with pytest.raises(ConfigError, match="side='left'"):
        store.loader(side="left")


def test_a_file_that_cannot_be_written_leaves_the_one_that_was_there(store, tmp_path, monkeypatch):
    store.index(rows(1, 2))
    file = tmp_path / "graphs.amr"
    file.write_text("(a / before)")

    def full(graph):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyterrier_mathamr.graph.MathAMRGraph.to_penman", full)
    with pytest.raises(WriteError, match=r"graphs\.amr: .*No space left"):
        store.to_penman(file)
    assert file.read_text() == "(a / before)"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graphs.amr", "graphs.mathamr"]
    with pytest.raises(WriteError, match="No such file or directory"):
        store.to_penman(tmp_path / "nowhere" / "graphs.amr")


def test_the_loader_joins_graphs_to_each_kind_of_frame(store):
    store.index([*rows(1, 2), {"docno": "q", "graph": graph(5)}])
    ranking = pd.DataFrame({"qid": ["q", "q", "q"], "docno": ["2", "1", "2"]})
    assert [g.id for g in store.loader()(ranking)["graph"]] == ["2", "1", "2"]
    assert [g.id for g in store.loader(side="query")(ranking)["query_graph"]] == ["q"] * 3
    assert list(store.loader(side="both")(ranking).columns) == ["qid", "docno", "graph", "query_graph"]
    assert store.loader()(ranking[["qid"]])["query_graph"][0].id == "q"
    assert [g.id for g in store.loader()(ranking[["docno"]])["graph"]] == ["2", "1", "2"]


def test_the_same_graphs_give_the_same_bytes_also_after_a_kill(store, tmp_path):
    store.indexer(shard_size=3).index(rows(*range(10)))
    killed = GraphStore(tmp_path / "killed.mathamr")
    with pytest.raises(KeyboardInterrupt):
        killed.indexer(shard_size=3).index(dies_after(rows(*range(8))))
    assert (killed.built(), killed.unfinished()) == (False, 6)
    with pytest.raises(NotBuiltError, match="finished 6 rows"):
        killed.ids()
    with pytest.raises(UnfinishedJobError, match="row '1': one content, not another"):
        killed.indexer(shard_size=3).index([{"docno": "0", "graph": graph(0)}, {"docno": "1", "graph": graph(99)}])
    killed.indexer(shard_size=3).index(rows(*range(10)))
    assert files(killed.path) == files(store.path)


def test_a_store_of_this_format_opens_and_one_of_the_format_before_is_refused_with_what_rebuilds_it():
    with pytest.raises(FormatError, match=r"format 2, .*to_penman under the release that made it.*import-graphs FILE"):
        GraphStore(DATA / "graph-store-format-2").ids()
    store = GraphStore(DATA / "graph-store-format-3")
    store.verify()
    assert store.ids() == ["1", "2", "3"]
    assert store["2"].text == "The sum FORMULA_0 is even."
    assert store["2"].latex == ("a + b",)


@pytest.mark.parametrize(
    "data",
    [
        *map(pack, ("[]", "{}", '{"amr": {"variables": "a", "edges": [[], [], []], "labels": []}}', "x", "[" * 99_999)),
        b"\xff\xff",
    ],
)
def test_a_record_that_is_not_a_graph_is_reported(store, data):
    store.indexer().index_records([Record("1", data)], {})
    with pytest.raises(DamagedError, match="the record of '1' is not a graph"):
        store.get("1")


def test_graphs_are_kept_in_parts_that_are_bounded_in_bytes(store, monkeypatch):
    monkeypatch.setattr("pyterrier_mathamr.graph.store.GRAPHS", replace(store.KIND, part_bytes=1000))
    parts = []
    monkeypatch.setattr("pyterrier_mathamr.store.Job.add", lambda job, content: parts.append(content))
    monkeypatch.setattr("pyterrier_mathamr.store.Job.commit", lambda job, details: None)
    store.index(rows(*range(50)))
    sizes = [len(content.arrays["records"]) for content in parts]
    assert sum(len(content.ids) for content in parts) == 50
    assert max(sizes) <= 1000 < min(sizes[:-1]) + 200


TestLoader = pt.testing.transformer_test_class(lambda: GraphStore.example().loader())
TestLoaderOfBoth = pt.testing.transformer_test_class(lambda: GraphStore.example().loader(side="both"))
