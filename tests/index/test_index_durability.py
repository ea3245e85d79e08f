"""What a full disk, a kill at any point and a long stream do to an index: nothing."""

import multiprocessing
import os
import resource
import signal
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pyterrier_mathamr.index import EmbeddingError, IndexWriteError, MathAMRIndex, build, disk

FORK = multiprocessing.get_context("fork")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def in_a_process(work: Callable[[], object]) -> int | None:
    """Run something in a forked process and give its exit code."""
    process = FORK.Process(target=work)
    process.start()
    process.join(60)
    return process.exitcode


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_a_build_killed_at_any_write_is_resumed_to_the_same_bytes(monkeypatch, tmp_path, documents, mode):
    monkeypatch.setattr(build, "SHARD_ROWS", 4)
    old, new = documents([2, 1], name="a"), documents([2, 3, 1], seed=9)
    for name in ("x", "plain"):
        if mode != "create":
            MathAMRIndex(tmp_path / name).index(old)
    MathAMRIndex(tmp_path / "plain").indexer(mode).index(new)
    whole = contents(tmp_path / "plain")
    before = contents(tmp_path / "x") if mode != "create" else {}
    killed = 0

    def killed_at(point: int) -> None:
        calls = []

        def counted(real):
            def call(*args):
                calls.append(1)
                if len(calls) == point:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args)

            return call

        disk.os.fsync, disk.os.replace = counted(os.fsync), counted(os.replace)
        MathAMRIndex(tmp_path / "x").indexer(mode, resume=True).index(new)

    for point in range(1, 200):
        if in_a_process(lambda point=point: killed_at(point)) == 0:
            break
        killed += 1
        found = contents(tmp_path / "x") if (tmp_path / "x").exists() else {}
        assert found.get("pt_meta.json") in (before.get("pt_meta.json"), whole["pt_meta.json"])
        if found.get("pt_meta.json") == whole["pt_meta.json"]:  # killed after the swap: it counts already
            MathAMRIndex(tmp_path / "x").verify()
            break
        if before:
            MathAMRIndex(tmp_path / "x").verify()
    assert killed > 10
    if mode == "create" and contents(tmp_path / "x") != whole:
        MathAMRIndex(tmp_path / "x").indexer(mode, resume=True).index(new)
    found = contents(tmp_path / "x")
    assert {name: found[name] for name in whole} == whole  # an old shard may wait for the next writer to sweep it


@pytest.mark.parametrize("bytes_allowed", [100, 300, 700, 1500])
@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_a_disk_that_takes_no_more_bytes_is_a_named_error_and_harms_nothing(tmp_path, documents, mode, bytes_allowed):
    index = MathAMRIndex(tmp_path / "x")
    if mode != "create":
        index.index(documents([2, 1], name="a"))
    before = contents(tmp_path)

    def write() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_allowed, bytes_allowed))
        try:
            MathAMRIndex(index.path).indexer(mode).index(documents([40, 30, 20]))
        except IndexWriteError as error:
            os._exit(7 if "File too large" in str(error) and not error.swapped else 8)

    assert in_a_process(write) == 7
    assert contents(tmp_path) == before
    index.indexer(mode).index(documents([3]))
    index.verify()


def test_a_disk_that_fails_after_the_swap_says_that_the_new_index_counts(monkeypatch, tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1], name="a"))
    real = disk.sync_folder

    def fail(path: Path) -> None:
        if path == index.path and b'"e0"' not in (path / "pt_meta.json").read_bytes() and len(MathAMRIndex(path)) == 3:
            raise OSError(5, "Input/output error")
        real(path)

    monkeypatch.setattr(disk, "sync_folder", fail)
    with pytest.raises(IndexWriteError, match=r"new index is in place and whole.*Input/output error") as caught:
        index.indexer("append").index(documents([1], name="e"))
    assert caught.value.swapped
    index.verify()
    assert {doc["docno"] for doc in index.get_corpus_iter()} == {"a0", "a1", "e0"}
    assert names(tmp_path) == ["x"]


def test_a_stream_ten_times_longer_takes_no_more_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "SHARD_ROWS", 1024)
    rows = np.eye(4, 64, dtype=np.float32)

    def peak(count: int) -> int:
        tracemalloc.start()
        MathAMRIndex(tmp_path / str(count)).index({"docno": str(i), "doc_embs": rows + i} for i in range(count))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(300)  # what is made once
    assert peak(4000) < 1.5 * peak(400)  # the rows alone are 4 MB and 0.4 MB; each shard's description stays


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_a_bad_document_of_a_long_name_is_named_in_short(tmp_path, documents, mode):
    index = MathAMRIndex(tmp_path / "x")
    if mode != "create":
        index.index(documents([2, 1]))
    before = contents(tmp_path)
    bad = {"docno": "é𝔘" * 512, "doc_embs": np.full((100_000, 8), np.nan, np.float32)}
    with pytest.raises(EmbeddingError, match="row 0 of its doc_embs holds NaN") as caught:
        index.indexer(mode).index([*documents([3], name="e"), bad])
    assert caught.value.docno == bad["docno"]
    assert len(str(caught.value)) < 250
    assert contents(tmp_path) == before
