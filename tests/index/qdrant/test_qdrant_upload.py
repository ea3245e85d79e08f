"""Uploading to Qdrant: one step at the end, nothing lost and nothing twice, whatever breaks in the middle."""

import numpy as np
import pandas as pd
import pytest
from index_folders import docnos, docnos_of

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.index import (
    EmbeddingError,
    MathAMRIndex,
    ModelMismatchError,
    QdrantError,
    QdrantFormulaIndex,
    QdrantIndex,
)
from pyterrier_mathamr.index.qdrant import upload
from pyterrier_mathamr.index.qdrant.index import QdrantDocumentIndexer
from pyterrier_mathamr.store import DuplicateIdError, WriteError

KINDS = ("unreachable", "slow", "lost", "late", "garbled", 429, 500, 503, 504, 408)


def test_a_request_that_fails_once_is_sent_again_and_nothing_is_lost_or_there_twice(server, remote, posts, monkeypatch):
    monkeypatch.setattr(upload, "BATCH_POINTS", 5)
    left = {name: ["lost"] for name in ("create", "payload_index", "update", "alias", "count")}
    left["upsert"] = [fault for kind in KINDS for fault in (kind, None)]
    server.fault = lambda name: left[name].pop(0) if left.get(name) else None
    index = remote().index(posts)
    assert not any(left.values())
    assert docnos(index) == docnos_of(posts)
    assert len(index) == len(posts)
    assert index.snapshot().meta.pending == 0


@pytest.mark.parametrize("kind", ["lost", 503])
def test_an_upload_that_is_given_up_leaves_what_stood_and_goes_on_where_it_was(server, remote, posts, kind, topics):
    index = remote().index(posts[:5])
    frame = topics([2])
    before = index.colbert()(frame)
    sent = len(server.sent_ids())
    passing = iter([None] * 3)
    server.fault = lambda name: next(passing, kind) if name == "upsert" else None
    indexer = index.indexer("overwrite", resume=True)
    with pytest.raises(QdrantError, match="resume=True"):
        indexer.index(indexer.pending(posts, 10))
    pd.testing.assert_frame_equal(index.colbert()(frame), before)
    assert len(index) == 5
    server.fault = lambda name: None
    stored = 40 if kind == "lost" else 30  # the fourth batch came through, though its answer did not
    indexer = index.indexer("overwrite", resume=True)
    assert [post["docno"] for post in indexer.pending(posts, 10)] == [post["docno"] for post in posts[stored:]]
    sent = len(server.sent_ids())
    indexer.index(posts)
    assert len(server.sent_ids()) - sent == len(posts) - stored
    assert docnos(index) == docnos_of(posts)


def test_without_resume_a_failed_upload_removes_its_points(server, remote, posts):
    index = remote()
    bad = [*posts[:25], {"docno": "bad", "doc_embs": np.full((2, 8), np.nan, np.float32)}]
    for mode in ("create", "overwrite"):
        with pytest.raises(EmbeddingError, match=r"'bad'.*NaN"):
            index.indexer(mode).index(bad)
        assert not server.collections
        assert not index.built()
    index.index(posts[30:])
    with pytest.raises(EmbeddingError, match="bad"):
        index.indexer("append").index(bad)
    assert docnos(index) == docnos_of(posts[30:])
    assert server.collections["some--a"].count() == {"count": len(posts) - 30}


def test_readers_see_an_addition_only_when_it_is_whole(server, remote, posts, topics):
    index, frame = remote().index(posts[:20]), topics([2])
    before = index.colbert()(frame)
    seen = []

    def stream():
        for post in posts[20::8]:
            seen.append((len(remote()), remote().colbert()(frame), docnos(remote())))
            yield post

    index.indexer("append").index(stream())
    assert seen
    for count, ranked, held in seen:
        assert count == 20
        pd.testing.assert_frame_equal(ranked, before)
        assert held == docnos_of(posts[:20])
    assert docnos(index) == docnos_of(posts[:20] + posts[20::8])
    assert len(index.colbert()(frame)) == len(index)


def test_a_docno_that_comes_twice_is_refused_in_one_stream_and_across_additions(server, remote, posts):
    index = remote()
    for twice in (posts[:5] + posts[:1], posts[:15] + posts[:1]):  # in one batch, and in two
        with pytest.raises(DuplicateIdError, match="'d0'"):
            index.index(twice)
        assert not index.built()
    index.index(posts[:15])
    with pytest.raises(DuplicateIdError, match="'d3'"):
        index.indexer("append").index([*posts[15:40], posts[3]])
    assert docnos(index) == docnos_of(posts[:15])


def test_of_a_formula_in_two_posts_the_first_place_counts_and_the_other_is_named(server, posts):
    index = QdrantFormulaIndex("https://qdrant.test", "formulas")
    first = {**posts[1], "formula_ids": ["f1", "f2"]}
    with pytest.warns(MathAMRWarning, match="f1"):
        index.index([first, {**posts[3], "formula_ids": ["f3", "f1"]}])
    with pytest.warns(MathAMRWarning, match="f2"):
        index.indexer("append").index([{**posts[6], "formula_ids": ["f4", "f2"]}])
    held = {row["docno"]: row["post_id"] for row in index.get_corpus_iter()}
    assert held == {"f1": "d1", "f2": "d1", "f3": "d3", "f4": "d6"}


def test_docnos_of_any_length_and_writing_are_kept(remote, posts):
    odd = ["π/4 ", "x" * 1000, "0", "🦊", " 7"]
    index = remote().index({**post, "docno": docno} for post, docno in zip(posts, odd, strict=False))
    assert docnos(index) == sorted(odd)


def test_modes_do_what_they_do_in_a_folder(server, remote, posts, topics):
    index = remote()
    index.indexer(model="a").index([])
    assert index.built()
    assert index.colbert()(topics([2])).empty
    index.indexer("append", model="a").index(posts[:3])
    with pytest.raises(WriteError, match="already"):
        index.index(posts)
    index.indexer("append").index([])
    with pytest.raises(ModelMismatchError):
        index.indexer("append", model="b").index(posts[3:])
    with pytest.raises(EmbeddingError, match="3 dimensions, but the index has 8"):
        index.indexer("append").index([{"docno": "x", "doc_embs": np.eye(3, dtype=np.float32)}])
    assert docnos(index) == docnos_of(posts[:3])
    assert index.model == "a"
    index.indexer("overwrite").index([{"docno": "x", "doc_embs": np.eye(3, dtype=np.float32)}])
    assert docnos(index) == ["x"]
    assert len(server.collections) == 1
    index.delete(["x"])
    assert len(index) == 0
    with pytest.raises(Exception, match="'x'"):
        index.delete(["x"])


def test_vectors_that_qdrant_cannot_hold_are_refused_by_docno(server, remote, monkeypatch):
    monkeypatch.setattr(upload, "MOST_NUMBERS", 1007)
    for docno, rows, reason in (
        ("a\ud800", np.eye(8), "valid Unicode"),
        ("long", np.tile(np.eye(8), (20, 1)), "160 rows, and Qdrant accepts at most 125"),
        ("zero", np.zeros((1, 8)), "no direction"),
        ("empty", np.zeros((0, 8)), "empty"),
    ):
        with pytest.raises(EmbeddingError, match=reason) as caught:
            remote().index([{"docno": docno, "doc_embs": rows.astype(np.float32)}])
        assert caught.value.docno == docno
    assert not server.sent_ids()


def test_points_that_a_server_loses_are_noticed_before_the_collection_is_visible(server, remote, posts):
    index = remote().index(posts[:5])
    kinds = iter([None, "swallowed"])
    server.fault = lambda name: next(kinds, None) if name == "upsert" else None
    with pytest.raises(QdrantError, match="60 points of 70"):
        index.indexer("overwrite").index(posts)
    assert docnos(index) == docnos_of(posts[:5])


def test_a_longer_row_is_taken_note_of_before_it_is_stored(server, remote, posts, topics, tmp_path):
    long = [*posts[:11], {"docno": "long", "doc_embs": posts[3]["doc_embs"] * 30}]
    index = remote().index(long)
    assert index.snapshot().meta.max_norm > 30
    assert server.names().index("update") < [at for at, name in enumerate(server.names()) if name == "upsert"][1]
    frame = topics([3])
    judge = MathAMRIndex(tmp_path / "j").index(long)
    pd.testing.assert_frame_equal(index.colbert(num_results=5)(frame), judge.colbert(num_results=5)(frame))


def test_a_server_that_never_answers_in_time_is_a_timeout_and_a_request_that_is_refused_is_not_sent_again(
    server, remote, posts
):
    for kind in ("slow", "late", 504):
        server.requests.clear()
        server.fault = lambda name, kind=kind: kind if name == "upsert" else None
        with pytest.raises(QdrantError, match=r"while storing points.*timeout"):
            remote().index(posts)
        assert server.names().count("upsert") == 4
    server.requests.clear()
    server.fault = lambda name: 422 if name == "create" else None
    with pytest.raises(QdrantError, match=r"creating the collection.*422.*a fault") as caught:
        remote().index(posts)
    assert caught.value.status == 422
    assert server.names().count("create") == 1


def test_an_old_collection_that_cannot_be_dropped_is_reported_and_the_new_one_is_used(server, remote, posts):
    index = remote().index(posts[:5])
    server.fault = lambda name: 503 if name == "drop" else None
    with pytest.warns(MathAMRWarning, match="some--a"):
        index.indexer("overwrite").index(posts)
    assert docnos(index) == docnos_of(posts)
    server.fault = lambda name: None
    index.indexer("overwrite").index(posts[:7])
    assert docnos(index) == docnos_of(posts[:7])


def test_a_collection_that_vanishes_in_the_middle_is_named(server, remote, posts, topics):
    index = remote().index(posts)
    snapshot = index.snapshot()
    server.drop("some--a")
    with pytest.raises(QdrantError, match="no such collection while reading points"):
        snapshot.find(["d1"])


def test_the_number_format_of_a_folder_is_refused_for_a_collection(remote):
    with pytest.raises(TypeError, match="dtype"):
        QdrantDocumentIndexer(remote(), dtype="float16")


def local(folder, name, posts, **options):
    index = QdrantIndex(folder, name)
    index.indexer(**options).index(posts)
    return index


def test_a_merged_collection_finds_what_one_finds_that_was_filled_at_once(tmp_path, posts, judge_index, topics):
    parts = [
        local(tmp_path / "one", "a", posts[:30], model="mini@1"),
        local(tmp_path / "one", "b", posts[30:31], model="mini@1"),
        local(tmp_path / "two", "c", posts[31:], model="mini@1"),
    ]
    merged = QdrantIndex.merge(tmp_path / "one", "all", *parts)
    assert (len(merged), merged.model) == (len(posts), "mini@1")
    frame = topics([3, 1, 6])
    for strategy in ("colbert", "single_vector"):
        expected = getattr(judge_index, strategy)(num_results=20)(frame)
        pd.testing.assert_frame_equal(getattr(merged, strategy)(num_results=20)(frame), expected, check_exact=True)
    found = {doc["docno"]: doc for doc in merged.get_corpus_iter()}
    for post in posts:
        np.testing.assert_array_equal(found[post["docno"]]["doc_embs"], post["doc_embs"])
        assert found[post["docno"]].get("formula_ids") == post.get("formula_ids")
    assert [len(part) for part in parts] == [30, 1, len(posts) - 31]


def test_a_failed_merge_leaves_no_local(tmp_path, posts, documents):
    one = local(tmp_path / "q", "a", posts[:3], model="mini@1")
    two = local(tmp_path / "q", "b", posts[2:5])
    refused = [
        (DuplicateIdError, two),
        (ModelMismatchError, local(tmp_path / "q", "c", posts[5:6], model="large@2")),
        (EmbeddingError, local(tmp_path / "q", "d", documents([2], d=3, name="narrow"))),
        (QdrantError, QdrantFormulaIndex(tmp_path / "q", "e")),
        (QdrantError, MathAMRIndex(tmp_path / "folder").index(posts[6:8])),
        (QdrantError, QdrantIndex(tmp_path / "q", "nothing")),
    ]
    for error, other in refused:
        with pytest.raises(error):
            QdrantIndex.merge(tmp_path / "q", "new", one, other)
        assert not QdrantIndex(tmp_path / "q", "new").built()
    with pytest.raises(WriteError, match="already"):
        QdrantIndex.merge(tmp_path / "q", "b", one)
    assert len(QdrantIndex.merge(tmp_path / "q", "none")) == 0
    assert len(QdrantIndex.merge(tmp_path / "q", "new", one)) == 3
