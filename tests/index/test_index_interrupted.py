"""Builds that fail, are killed or meet each other: what stood is searched, and what was done is taken up again."""

import contextlib
import errno
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
from index_folders import contents, docnos, names

from pyterrier_mathamr.index import (
    DuplicateDocnoError,
    EmbeddingError,
    IndexLockedError,
    IndexWriteError,
    MathAMRIndex,
    build,
    disk,
)
from pyterrier_mathamr.index.lock import lock_path, writer_lock


def failing(monkeypatch, calls: list[int], name: str, at: int | None) -> None:
    """Let the ``at``-th of all writing calls find the disk full; count them."""
    real = getattr(os, name)

    def call(*args, **kwargs):
        calls.append(1)
        if len(calls) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **kwargs)

    monkeypatch.setattr(disk.os, name, call)


@pytest.mark.parametrize("mode", ["overwrite", "append", "create"])
def test_whichever_write_fails_the_index_that_stood_is_searched(monkeypatch, tmp_path, documents, topics, mode):
    monkeypatch.setattr(build, "SHARD_ROWS", 4)
    index, frame = MathAMRIndex(tmp_path / "x"), topics([2])
    old = [] if mode == "create" else ["d0", "d1", "d2"]
    new = ["e0", "e1", "e2"] if mode != "append" else [*old, "e0", "e1", "e2"]
    stood = index.index(documents([2, 1, 3])).colbert()(frame) if old else None
    failed = 0
    while not index.built() or docnos(index) != new:
        with monkeypatch.context() as patch:
            calls: list[int] = []
            failing(patch, calls, "fsync", failed + 1)
            failing(patch, calls, "replace", failed + 1)
            with contextlib.suppress(IndexWriteError):
                index.indexer(mode).index(documents([2, 3, 1], name="e", seed=9))
        failed += 1
        index = MathAMRIndex(index.path)
        assert index.built() or not old
        if index.built():
            index.verify()
            assert docnos(index) == new or index.colbert()(frame).equals(stood)
    assert failed > 20  # so many writes failed, one in each round, before one round went through
    assert names(tmp_path) == ["x"]


def test_a_read_only_folder_is_a_named_error(monkeypatch, tmp_path, documents):
    def refused(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pyterrier_mathamr.index.lock.os.open", refused)
    with pytest.raises(IndexWriteError, match="Permission denied"):
        MathAMRIndex(tmp_path / "x").index(documents([1]))


def test_a_reader_keeps_its_snapshot_and_sees_changes_when_it_looks_again(tmp_path, documents, topics):
    index, reader = MathAMRIndex(tmp_path / "x"), MathAMRIndex(tmp_path / "x")
    index.index(documents([2, 1]))
    snapshot, frame = reader.snapshot(), topics([2])
    index.indexer("overwrite").index(documents([3, 1, 1], name="e"))
    assert snapshot.texts("docno", np.arange(2)) == ["d1", "d0"]
    assert len(reader) == 3
    assert set(reader.colbert()(frame)["docno"]) == {"e0", "e1", "e2"}


def test_a_second_writer_is_refused_with_the_first_one_s_name_and_age(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x")
    with writer_lock(index.path), pytest.raises(IndexLockedError, match=rf"process {os.getpid()} on .* for \d+ s"):
        index.index(documents([1]))
    lock_path(index.path).write_text("process 1 on a machine that died since 5\n")  # left behind, held by no one
    assert len(index.index(documents([1]))) == 1
    assert names(tmp_path) == ["x"]


def endless(path: str, rows: int, ready) -> None:
    build.SHARD_ROWS = rows

    def stream():
        for i in range(10_000):
            yield {"docno": f"d{i}", "doc_embs": np.array([[1.0, i]])}
            if i == 25:
                ready.set()
                time.sleep(60)

    MathAMRIndex(path).indexer(resume=True).index(stream())


def test_a_killed_build_is_resumed_to_the_same_bytes(monkeypatch, tmp_path):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=endless, args=(str(tmp_path / "x"), 10, ready))
    process.start()
    assert ready.wait(30)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    monkeypatch.setattr(build, "SHARD_ROWS", 10)
    docs = [{"docno": f"d{i}", "doc_embs": np.array([[1.0, i]])} for i in range(37)]
    index = MathAMRIndex(tmp_path / "x")
    assert not index.built()
    indexer = index.indexer(resume=True)
    pending = list(indexer.pending(docs))
    assert [doc["docno"] for doc in pending] == [f"d{i}" for i in range(20, 37)]
    indexer.index(pending)
    plain = MathAMRIndex(tmp_path / "y").index(docs)
    assert contents(index.path) == contents(plain.path)
    assert names(tmp_path) == ["x", "y"]


def test_resuming_with_the_whole_stream_skips_what_is_done_and_refuses_duplicates(monkeypatch, tmp_path, documents):
    monkeypatch.setattr(build, "SHARD_ROWS", 3)
    docs = documents([1, 2, 1, 2, 1])
    index = MathAMRIndex(tmp_path / "x")
    with pytest.raises(EmbeddingError):
        index.indexer(resume=True).index([*docs[:4], {"docno": "bad", "doc_embs": np.zeros((1, 8))}, *docs[4:]])
    assert names(tmp_path) == [".x.building"]
    with pytest.raises(DuplicateDocnoError, match="'d0'"):
        index.indexer(resume=True).index([*docs, docs[0]])
    index.indexer(resume=True).index(docs)
    assert contents(index.path) == contents(MathAMRIndex(tmp_path / "y").index(docs).path)


def test_without_resume_nothing_of_an_earlier_build_is_taken_over(monkeypatch, tmp_path, documents):
    monkeypatch.setattr(build, "SHARD_ROWS", 1)
    index = MathAMRIndex(tmp_path / "x")
    with pytest.raises(DuplicateDocnoError):
        index.indexer(resume=True).index([*documents([1, 1]), *documents([1])])
    index.index(documents([1], name="e"))
    assert docnos(index) == ["e0"]
