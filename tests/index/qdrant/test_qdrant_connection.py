"""Faults between us and Qdrant are named errors; keys stay secret."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import qdrant_client

from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.index import QdrantError, QdrantFormulaIndex, QdrantIndex
from pyterrier_mathamr.index.qdrant import collection
from pyterrier_mathamr.store import UnknownIdError, WriteError

KEY = "the-right-key"


FAULTS = [("query", kind) for kind in ("unreachable", "slow", "lost", "late", "garbled", 429, 503)]
FAULTS += [("get_collection", "lost"), ("retrieve", "late")]


def test_a_query_goes_on_after_one_fault_and_ends_with_a_name_after_many(server, remote, posts, topics):
    index, frame = remote().index(posts), topics([2])
    whole = index.colbert(num_results=9)(frame)
    for name, kind in FAULTS:
        for times in (1, 4):
            server.requests.clear()
            broken = iter([kind] * times)
            server.fault = lambda of, name=name, broken=broken: next(broken, None) if of == name else None
            if times == 1:
                pd.testing.assert_frame_equal(index.colbert(num_results=9)(frame), whole)
                continue
            with pytest.raises(
                QdrantError, match="timeout" if kind in ("slow", "late") else "while (searching|opening)"
            ):
                index.colbert(num_results=9)(frame)
            assert server.names().count(name) == 4


def test_pauses_double_and_the_server_s_own_wish_is_kept(server, posts, monkeypatch):
    pauses = []
    monkeypatch.setattr(collection.time, "sleep", pauses.append)
    monkeypatch.setattr(collection.random, "uniform", lambda low, high: high)
    index = QdrantIndex("https://qdrant.test", "some", pause=0.5, retries=3)
    server.fault = lambda name: 503
    with pytest.raises(QdrantError):
        index.built()
    assert pauses == [0.5, 1.0, 2.0]
    pauses.clear()
    server.fault, server.retry_after = lambda name: 429, "7"
    with pytest.raises(QdrantError, match="too many requests"):
        index.built()
    assert pauses == [7.0, 7.0, 7.0]


def test_a_wrong_key_is_named_at_once_and_a_right_one_is_taken_from_the_argument_or_the_environment(
    server, remote, posts, monkeypatch
):
    server.key = KEY
    for key in (None, "another-key"):
        with pytest.raises(QdrantError, match="QDRANT_API_KEY") as caught:
            remote(api_key=key).index(posts)
        assert "another-key" not in str(caught.value) + repr(caught.value)
    assert len(server.requests) == 2
    assert not remote(api_key=KEY).built()
    monkeypatch.setenv("QDRANT_API_KEY", KEY)
    assert not remote().built()


def test_a_key_is_in_no_repr_pickle_or_comparison(remote, server, posts):
    index = remote(api_key=KEY, timeout=7)
    index.index(posts)
    retriever = index.colbert()
    for thing in (index, retriever, index.indexer()):
        assert KEY not in repr(thing)
    for thing in (index, retriever, index.indexer(resume=True)):
        data = pickle.dumps(thing)
        assert KEY.encode() not in data
        assert pickle.loads(data) == thing
    copy = pickle.loads(pickle.dumps(index))
    assert (copy.timeout, copy.retries) == (7, 3)
    assert copy == remote() != remote(api_key=KEY).__class__("https://elsewhere", "some")
    assert hash(copy) == hash(index)
    assert eval(repr(index)) == index
    assert pickle.loads(pickle.dumps(QdrantError("a", "b", 422))).status == 422


def test_a_collection_that_is_absent_foreign_or_of_another_kind_is_named(server, remote, posts, topics):
    index = remote()
    with pytest.raises(QdrantError, match="no such collection"):
        index.colbert()(topics([2]))
    assert not index.built()
    server.create("some", {"vectors": {"doc": {"size": 8, "distance": "Cosine"}}})
    for wrong in (lambda: index.built(), lambda: index.indexer("overwrite").index(posts), lambda: len(index)):
        with pytest.raises(QdrantError, match="not made by this package"):
            wrong()
    assert "some" in server.collections
    other = QdrantIndex("https://qdrant.test", "posts").index(posts)
    formulas = QdrantFormulaIndex(other.location, "posts")
    for wrong in (
        lambda: len(formulas),
        lambda: formulas.indexer("overwrite").index([{**posts[0], "formula_ids": []}]),
    ):
        with pytest.raises(QdrantError, match="of documents, not of formulas"):
            wrong()
    assert len(other) == len(posts)
    server.collections["posts--a"].metadata.update({"dimensions": 9})
    with pytest.raises(QdrantError, match="has 8 dimensions where 9 were written"):
        len(other)
    server.collections["posts--a"].metadata.update({"dimensions": 8, "format_version": 99})
    with pytest.raises(QdrantError, match="format 99"):
        len(other)


def test_points_that_vanish_between_the_search_and_their_vectors_are_named(server, remote, posts, topics):
    index = remote().index(posts)

    def fault(name):
        if name == "retrieve":
            server.collections["some--a"].delete({"filter": {}})

    server.fault = fault
    with pytest.raises(QdrantError, match="vanished"):
        index.colbert()(topics([2]))


def test_without_the_extra_the_error_explains_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    for place in ("https://qdrant.test", tmp_path):
        with pytest.raises(MissingExtraError, match=r"pyterrier-mathamr\[qdrant\]"):
            QdrantIndex(place).built()


def test_a_folder_that_is_open_elsewhere_is_named_and_in_one_process_it_is_shared(monkeypatch, tmp_path, posts):
    held = qdrant_client.QdrantClient(path=str(tmp_path / "q"))
    with pytest.raises(WriteError, match="another process"):
        QdrantIndex(tmp_path / "q").built()
    held.close()
    index = QdrantIndex(tmp_path / "q", "a").index(posts[:3])
    assert len(QdrantIndex(tmp_path / "q", "a")) == 3
    copy = pickle.loads(pickle.dumps(index))
    assert len(copy) == 3
    monkeypatch.chdir(tmp_path)
    relative = QdrantIndex("q", "a")
    assert relative == index
    assert hash(relative) == hash(index)


def test_contents_of_a_folder_are_there_when_it_is_opened_again(tmp_path, posts, topics):
    frame = topics([3])
    index = QdrantIndex(tmp_path / "q", "a").index(posts[:6])
    index.indexer("append").index(posts[6:9])
    found = index.colbert()(frame)
    index.collection.client.close()
    again = QdrantIndex(tmp_path / "q", "a")
    pd.testing.assert_frame_equal(again.colbert()(frame), found)
    with pytest.raises(UnknownIdError):
        again.delete(["nowhere"])


def test_options_that_cannot_be_are_refused():
    for options in ({"collection": "a/b"}, {"collection": ""}, {"timeout": 0}, {"retries": -1}):
        with pytest.raises(ConfigError) as caught:
            QdrantIndex("https://qdrant.test", **options)
        assert [caught.value.option] == list(options)


def test_a_query_without_vectors_finds_nothing_and_topics_keep_their_columns():
    index = QdrantIndex.example()
    frame = pd.DataFrame({"qid": ["a", "b"], "lang": ["en", "de"]})
    frame = frame.assign(query_embs=[np.empty((0, 4), np.float32), np.ones((2, 4), np.float32)])
    retriever = index.colbert(num_results=2)
    found = retriever(frame)
    assert found[["qid", "lang", "rank"]].to_numpy().tolist() == [["b", "de", 0], ["b", "de", 1]]
    assert retriever(frame.iloc[:1]).empty
    assert ("d1" in index, "d9" in index) == (True, False)
    with pytest.raises(ConfigError, match="hnsw_ef"):
        retriever.set_parameter("hnsw_ef", 0)
