"""Peers agree on metadata late, or after the client gave up: no state is lost, mixed or taken back."""

import signal
import subprocess
import sys
import threading
import time
import warnings

import pandas as pd
import pytest
from index_folders import docnos, docnos_of

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.index import QdrantError, QdrantFormulaIndex, QdrantIndex
from pyterrier_mathamr.index.qdrant import collection
from pyterrier_mathamr.index.qdrant import index as of_index
from pyterrier_mathamr.store import DuplicateIdError, UnknownIdError, WriteError

HOST = "qdrant.test"
MODES = ["create", "append", "overwrite"]
LAST = {"create": "alias", "append": "update", "overwrite": "alias"}
"""The request that publishes a call."""


@pytest.fixture
def index(server, remote, posts, mode):
    """An index of five documents, which every peer shows; none for the mode ``create``."""
    made = remote()
    if mode != "create":
        made.index(posts[:5])
    server.settle()
    return made


def after(posts, mode):
    """Return the documents after the mode's call with all posts except the first five."""
    return posts if mode == "append" else posts[5:]


@pytest.mark.parametrize("mode", MODES)
def test_a_call_returns_when_its_result_can_be_read_back(server, remote, posts, index, mode, topics):
    server.delays[HOST] = 0.2

    def stream():
        yield from posts[5:]
        time.sleep(0.3)  # until the peer shows that a call is unfinished, which hides its points

    index.indexer(mode).index(stream())
    for reader in (index, remote()):
        assert docnos(reader) == docnos_of(after(posts, mode))
    assert len(index.colbert()(topics([2]))) == len(after(posts, mode))


def test_points_of_an_interrupted_call_are_discarded_when_discard_returns(server, remote, posts):
    index = remote().index(posts[:5])
    server.delays[HOST] = 0.2
    server.fault = lambda name: 422 if name == "count" else None
    with pytest.raises(QdrantError):
        index.indexer("append", resume=True).index(posts[5:])
    index.discard()
    assert index.snapshot().meta.pending == 0


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_reader_that_has_seen_a_state_never_goes_back(server, remote, posts, index, mode):
    index.indexer(mode).index(posts[5:])
    reader = remote()
    for some in (index, reader):
        assert docnos(some) == docnos_of(after(posts, mode))
        server.delays[HOST] = 1000  # another peer answers, which is behind
        assert remote().snapshot().meta.build == 1
        threading.Timer(0.2, server.delays.clear).start()
        assert docnos(some) == docnos_of(after(posts, mode))


@pytest.mark.parametrize("fault", ["an earlier state", "no collection"])
def test_a_server_that_stays_behind_is_named_and_then_believed(server, remote, posts, fault):
    index = remote(timeout=1).index(posts[:5])
    index.indexer("append").index(posts[5:10])
    if fault == "no collection":
        server.drop("some--a")
        assert not index.built()
    else:
        server.collections["some--a"].metadata["build"] = 1
        with pytest.raises(QdrantError, match="earlier state than before"):
            index.snapshot()
        assert docnos(index) == docnos_of(posts[:5])


def test_another_peer_shows_the_state_before_a_call_or_after_it_and_never_a_part(server, posts, topics):
    index = QdrantIndex("https://peer-1.test", "some").index(posts[:20])
    late, frame = QdrantIndex("https://peer-2.test", "some"), topics([2])
    server.settle()
    server.delays["peer-2.test"] = 1000
    before = index.colbert()(frame)

    def check():
        assert (len(late), docnos(late)) == (20, docnos_of(posts[:20]))
        pd.testing.assert_frame_equal(late.colbert()(frame), before)
        with pytest.raises(UnknownIdError, match="tie29"):
            late.snapshot().find(["tie29"])

    def stream():
        yield from posts[20:]
        assert index.snapshot().meta.pending
        assert not late.snapshot().meta.pending
        check()

    index.indexer("append").index(stream())
    check()
    server.settle()
    assert docnos(late) == docnos_of(posts)


def test_a_snapshot_finds_no_points_of_calls_that_end_after_it_was_opened(remote, posts):
    index = remote().index(posts[:5])
    snapshot = index.snapshot()
    index.indexer("append").index(posts[5:10])
    index.indexer("append").index(posts[10:15])
    assert len(snapshot) == len(list(snapshot.entries())) == 5


def publish_late(server, index, posts, mode, **options):
    """Upload while too few peers run for the last step, which happens when they are back."""
    passed = iter(["the first update of an addition"] if mode == "append" else [])
    server.fault = lambda name: "waiting" if name == LAST[mode] and not next(passed, None) else None
    with pytest.raises(QdrantError) as caught, pytest.warns(MathAMRWarning, match="more than half of the peers"):
        index.indexer(mode, **options).index(posts)
    assert "resume=True" in caught.value.reason or not options.get("resume")
    server.fault = lambda name: None
    server.commit()


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_call_whose_last_step_was_carried_out_later_ends_well_when_repeated(
    server, remote, posts, index, mode, pending
):
    publish_late(server, index, posts[5:], mode, resume=True)
    assert docnos(remote()) == docnos_of(after(posts, mode))
    sent = len(server.sent_ids())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for again in (index, remote()):  # also when it is repeated once more
            indexer = again.indexer(mode, resume=True)
            indexer.index(indexer.pending(posts[5:], 7) if pending else posts[5:])
            assert docnos(again) == docnos_of(after(posts, mode))
    if mode != "overwrite":  # which replaces what is there by the same
        assert ["complete before" in str(one.message) for one in caught] == [True, True]
        assert len(server.sent_ids()) == sent


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("mode", ["create", "append"])
def test_a_call_with_other_documents_than_a_complete_one_is_not_taken_for_it(
    server, remote, posts, index, mode, pending
):
    index.indexer(mode, resume=True).index(posts[5:30])
    turned = {**posts[9], "doc_embs": -posts[9]["doc_embs"]}
    for other in (posts[5:40], posts[5:20], [*posts[5:9], turned, *posts[10:30]], [*posts[5:30], posts[7]]):
        indexer = index.indexer(mode, resume=True)
        with pytest.raises(WriteError if mode == "create" else DuplicateIdError):
            indexer.index(indexer.pending(other, 5) if pending else other)
        index.discard()
    assert docnos(index) == docnos_of(after(posts[:30], mode))
    index.indexer("append", resume=True).index(posts[30:])
    assert docnos(index) == docnos_of(after(posts, mode))


def test_formulas_of_a_complete_call_are_not_sent_again_and_new_ones_are(server, documents):
    posts = [{**post, "formula_ids": [f"{post['docno']}-{i}" for i in range(2)]} for post in documents([3] * 12)]
    posts[7]["formula_ids"][1] = "d2-0"  # a formula of two posts
    index = QdrantFormulaIndex(f"https://{HOST}", "formulas", pause=0)
    with pytest.warns(MathAMRWarning, match="d2-0"):
        index.indexer("append", resume=True).index(posts[:10])
    sent = len(server.sent_ids())
    with pytest.warns(MathAMRWarning, match="complete before"):
        index.indexer("append", resume=True).index(posts[:10])
    assert (len(server.sent_ids()), len(index)) == (sent, 19)
    with pytest.warns(MathAMRWarning, match="19 formulas occurred again"):
        index.indexer("append", resume=True).index(posts)
    assert (len(server.sent_ids()), len(index)) == (sent + 4, 23)


@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_an_alias_that_is_moved_after_the_error_names_a_whole_collection(server, remote, posts, index, mode):
    publish_late(server, index, posts[5:], mode)
    assert docnos(remote()) == docnos_of(posts[5:])


def test_what_a_missing_majority_delays_is_named_after_the_first_timeout(server, posts, monkeypatch):
    index, seen = QdrantIndex(f"https://{HOST}", "some", retries=3), []
    server.fault = lambda name: "waiting" if name == "alias" else None
    with pytest.warns(MathAMRWarning, match="moving the alias.*half of the peers.*up to 3 times") as caught:  # noqa: PT031
        monkeypatch.setattr(collection.time, "sleep", lambda seconds: seen.append(len(caught)))
        with pytest.raises(QdrantError, match="timeout"):
            index.index(posts[:5])
    assert seen == [1, 1, 1]


def test_a_deletion_that_fails_says_what_it_left_and_is_repeatable(server, remote, posts, monkeypatch):
    monkeypatch.setattr(of_index, "REMOVED", 2)
    index, names = remote().index(posts[:9]), [f"d{i}" for i in range(5)]
    left = iter([None, None])
    server.fault = lambda name: next(left, 503) if name == "delete" else None
    with pytest.raises(QdrantError, match=r"4 of 5 were removed.* again") as caught:
        index.delete(names)
    assert caught.value.status == 503
    server.fault = lambda name: None
    with pytest.warns(MathAMRWarning, match="4 of 5 ids were not there.*'d0', 'd1', 'd2', 'd3'"):
        index.delete(names)
    assert docnos(index) == docnos_of(posts[5:9])
    with pytest.raises(UnknownIdError, match="'d0'"):
        index.delete(names)


KILLED = """
import os, signal, sys
from qdrant_client.local.persistence import CollectionPersistence
from pyterrier_mathamr.index import QdrantIndex

left, delete = [3], CollectionPersistence.delete
def dying(*given):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    delete(*given)
CollectionPersistence.delete = dying
QdrantIndex(sys.argv[1], "some").delete([f"d{i}" for i in range(8)])
"""


def test_a_killed_deletion_of_a_folder_is_repeatable(tmp_path, posts):
    index = QdrantIndex(tmp_path / "q", "some").index(posts[:10])
    index.collection.client.close()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "q")], check=False)
    assert killed.returncode == -signal.SIGKILL
    index = QdrantIndex(tmp_path / "q", "some")
    assert len(index) == 7
    with pytest.warns(MathAMRWarning, match="3 of 8 ids were not there"):
        index.delete([f"d{i}" for i in range(8)])
    assert docnos(index) == ["d8", "d9"]
