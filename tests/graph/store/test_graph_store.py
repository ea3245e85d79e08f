"""The store of graphs: by id, resumed after a kill, never half replaced."""

import json
import pickle

import pandas as pd
import pyterrier as pt
import pytest
from graph_examples import one_sentence, whole
from store_examples import files, graph, rows

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import GraphError, GraphStore
from pyterrier_mathamr.store import DuplicateIdError, UnknownIdError, WriteError


def test_what_was_stored_comes_back_in_order(store):
    stored = [{"docno": "b", "graph": whole()}, {"docno": "a", "graph": one_sentence()}]
    assert store.index(stored) is store
    assert (len(store), store.ids(), list(store)) == (2, ["b", "a"], ["b", "a"])
    assert store["b"].amr == whole().amr
    assert (store["b"].id, store["b"].formula_ids) == ("b", whole().formula_ids)
    assert [row["docno"] for row in store.get_corpus_iter()] == ["b", "a"]
    assert ("a" in store, "c" in store, 3 in store) == (True, False, False)


@pytest.mark.parametrize("numbers", [[], [1], [1, 2], range(30)])
def test_a_store_of_any_number_of_graphs_is_opened_again(store, numbers):
    store.indexer(shard_size=7).index(rows(*numbers))
    again = GraphStore(store.path)
    assert again.ids() == [str(i) for i in numbers]
    assert again.get_many(again.ids()) == [graph(i) for i in numbers]


def test_queries_are_stored_by_qid(store):
    store.index([{"qid": "A.1", "query_graph": whole()}, {"qid": "A.2", "graph": whole()}])
    assert store.ids() == ["A.1", "A.2"]


@pytest.mark.parametrize("name", ["a b", "ü\n", "x" * 500, "漢字", "a ::b", "", '"', "1\0", "\ud800", "x" * 20_000])
def test_ids_of_any_characters_are_kept(store, name):
    store.index([{"docno": name, "graph": whole()}, {"docno": "other", "graph": whole()}])
    assert store[name].id == name


def test_unknown_ids_are_all_named(store):
    store.index(rows(1, 2))
    with pytest.raises(UnknownIdError, match="'7', '9'") as caught:
        store.get_many(["1", "7", "2", "9"])
    assert caught.value.ids == ["7", "9"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(KeyError):
        store["nope"]


def test_a_duplicate_id_is_refused_and_nothing_is_replaced(store):
    store.index(rows(1))
    with pytest.raises(DuplicateIdError, match="'3'"):
        store.indexer("overwrite").index(rows(3, 2, 3))
    assert GraphStore(store.path).ids() == ["1"]


def test_create_refuses_what_exists(store):
    store.index(rows(1))
    with pytest.raises(WriteError, match="append"):
        store.index(rows(2))
    assert store.ids() == ["1"]


def test_an_empty_folder_can_be_filled(store):
    store.path.mkdir()
    assert store.index(rows(1)).ids() == ["1"]


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


def test_adding_a_few_graphs_many_times_gives_the_graphs_of_one_build_in_few_parts(store, tmp_path):
    whole = GraphStore(tmp_path / "whole.mathamr").index(rows(*range(40)))
    for i in range(40):
        store.indexer("append").index(rows(i))
    assert store.ids() == whole.ids()
    assert store.get_many(store.ids()) == whole.get_many(whole.ids())
    assert len(list(store.path.glob("part-*"))) < 8


def test_what_is_deleted_is_gone_for_every_reader_and_can_be_stored_again(store, tmp_path):
    store.indexer(shard_size=3).index(rows(*range(10)))
    store.delete(["0", "4", "5"])
    left = [str(i) for i in (1, 2, 3, 6, 7, 8, 9)]
    for _ in range(2):
        assert (len(store), store.ids(), "4" in store) == (7, left, False)
        assert [row["docno"] for row in store.get_corpus_iter()] == left
        assert store.get_many(left) == [graph(int(name)) for name in left]
        with pytest.raises(UnknownIdError, match="'4'"):
            store.get("4")
        store.to_penman(tmp_path / "left.amr")
        assert GraphStore(tmp_path / "left.mathamr").from_penman(tmp_path / "left.amr", mode="overwrite").ids() == left
        store.compact()
    store.indexer("append").index(rows(4))
    assert store.ids() == [*left, "4"]


def test_append_refuses_ids_that_are_there_and_builds_where_nothing_is(store):
    store.indexer("append").index(rows(1))
    with pytest.raises(DuplicateIdError, match="'1'"):
        store.indexer("append").index(rows(2, 1))
    assert GraphStore(store.path).ids() == ["1"]


def test_the_metadata_makes_it_an_artifact_that_pyterrier_loads(store):
    store.index(rows(1))
    meta = json.loads((store.path / "pt_meta.json").read_text())
    assert (meta["type"], meta["format"], meta["package_hint"]) == ("graph_store", "mathamr", "pyterrier-mathamr")
    assert pt.Artifact.load(str(store.path)) == store


def test_rows_without_id_or_graph_are_refused(store):
    with pytest.raises(pt.validate.InputValidationError):
        store.index([{"docno": "1", "text": "x"}])
    with pytest.raises(GraphError, match="GraphBuilder"):
        store.index([{"docno": "1", "graph": "(a / b)"}])


def test_wrong_options_are_refused(store):
    with pytest.raises(ConfigError, match="mode='replace'"):
        store.indexer("replace")
    with pytest.raises(ConfigError, match="shard_size=0"):
        store.indexer(shard_size=0)
    with pytest.raises(ConfigError, match="side='left'"):
        store.loader(side="left")


@pytest.mark.parametrize("name", ["graphs.amr", "graphs.amr.gz"])
def test_penman_files_go_out_and_in(store, tmp_path, name):
    store.index([{"docno": "1", "graph": whole()}, {"docno": "2", "graph": one_sentence()}])
    store.to_penman(tmp_path / name)
    again = GraphStore(tmp_path / "again.mathamr").from_penman(tmp_path / name)
    assert again.get_many(["1", "2"]) == store.get_many(["1", "2"])
    again.to_penman(tmp_path / ("2" + name))
    assert (tmp_path / ("2" + name)).read_bytes() == (tmp_path / name).read_bytes()


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


def test_the_loader_names_unknown_documents(store):
    store.index(rows(1))
    with pytest.raises(UnknownIdError, match="'x'"):
        store.loader()(pd.DataFrame({"docno": ["1", "x"]}))


def test_a_rank_cutoff_goes_before_the_loader(store):
    store.index(rows(1, 2))
    ranking = pd.DataFrame(
        {"qid": ["q"] * 2, "query": ["x"] * 2, "docno": ["1", "2"], "score": [2.0, 1.0], "rank": [0, 1]}
    )
    fused = (store.loader() % 1).compile()
    assert fused == pt.RankCutoff(1) >> store.loader() or fused[0] == pt.RankCutoff(1)
    assert fused(ranking)["docno"].tolist() == ["1"]


def test_equal_transformers_are_equal_and_survive_a_worker_process(store):
    store.index(rows(1))
    len(store)
    assert pickle.loads(pickle.dumps(store.loader())) == store.loader()
    assert pickle.loads(pickle.dumps(store)).ids() == ["1"]
    assert store.loader() != store.loader(side="query")
    assert hash(store.indexer()) == hash(store.indexer())
    assert store.indexer() != store.indexer("append")
    assert eval(
        repr(store.loader(side="both")), {**vars(pt), "GraphLoader": type(store.loader()), "GraphStore": GraphStore}
    ) == (store.loader(side="both"))


TestLoader = pt.testing.transformer_test_class(lambda: GraphStore.example().loader())
TestLoaderOfBoth = pt.testing.transformer_test_class(lambda: GraphStore.example().loader(side="both"))
