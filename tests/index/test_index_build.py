import contextlib
import errno
import json
import multiprocessing
import os
import pickle
import signal
import tarfile
import time
from pathlib import Path

import numpy as np
import pyterrier as pt
import pytest
from lz4.frame import LZ4FrameFile

from pyterrier_mathamr import index as room
from pyterrier_mathamr.index import (
    DuplicateDocnoError,
    EmbeddingError,
    EmptyStreamError,
    IndexCorruptError,
    IndexExistsError,
    IndexFile,
    IndexFormatError,
    IndexLockedError,
    IndexWriteError,
    MathAMRIndex,
    ModelMismatchError,
    NotAnIndexError,
    UnknownDocnoError,
    build,
    disk,
    shard,
)
from pyterrier_mathamr.index.lock import lock_path, writer_lock

DATA = Path(__file__).parents[1] / "data"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def docnos(index: MathAMRIndex) -> list[str]:
    return sorted(doc["docno"] for doc in index.get_corpus_iter())


def test_making_the_object_touches_nothing(tmp_path):
    index = MathAMRIndex(tmp_path / "x")
    assert not index.built()
    assert bool(index)
    assert repr(index) == f"MathAMRIndex({str(tmp_path / 'x')!r})"
    with pytest.raises(NotAnIndexError):
        len(index)
    assert not list(tmp_path.iterdir())


def test_the_same_documents_make_the_same_bytes(tmp_path, documents):
    docs = documents([3, 1, 2, 1])
    first = MathAMRIndex(tmp_path / "a").index(docs)
    second = MathAMRIndex(tmp_path / "b").index(iter(docs))
    assert contents(first.path) == contents(second.path)
    assert names(tmp_path) == ["a", "b"]
    third = MathAMRIndex(tmp_path / "c").index(first.get_corpus_iter())
    assert contents(third.path) == contents(first.path)


def test_what_was_indexed_comes_back_bit_by_bit(tmp_path, documents):
    docs = documents([3, 1, 2, 1])
    docs[1]["formula_ids"], docs[2]["formula_ids"] = [], ["9", ""]
    found = {doc["docno"]: doc for doc in MathAMRIndex(tmp_path / "a").index(docs).get_corpus_iter()}
    assert len(found) == 4
    for doc in docs:
        np.testing.assert_array_equal(found[doc["docno"]]["doc_embs"], doc["doc_embs"])
        assert found[doc["docno"]].get("formula_ids") == doc.get("formula_ids")


def test_create_refuses_what_stands_overwrite_replaces_it_and_append_adds_to_it(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    with pytest.raises(IndexExistsError):
        index.index(documents([1]))
    index.indexer("append").index(documents([1, 3], seed=5, name="e"))
    assert docnos(index) == ["d0", "d1", "e0", "e1"]
    index.indexer("overwrite").index(documents([4], d=3, name="f"))
    assert docnos(index) == ["f0"]
    assert index.verify() is None
    assert names(tmp_path) == ["x"]
    assert len(list(index.path.glob("shard-*"))) == 1


def test_appending_finds_what_building_at_once_finds(tmp_path, documents, topics):
    docs = documents([2, 1, 5, 3, 1, 1])
    at_once = MathAMRIndex(tmp_path / "a").index(docs)
    in_steps = MathAMRIndex(tmp_path / "b")
    for start in range(0, 6, 2):
        in_steps.indexer("append").index(docs[start : start + 2])
    frame = topics([3, 2])
    assert in_steps.colbert()(frame).equals(at_once.colbert()(frame))
    merged = MathAMRIndex.merge(tmp_path / "c", at_once, MathAMRIndex(tmp_path / "d").index(documents([1], name="z")))
    assert docnos(merged) == [*docnos(at_once), "z0"]


def test_merging_refuses_duplicates_and_other_models_and_leaves_nothing(tmp_path, documents):
    one, two = MathAMRIndex(tmp_path / "a"), MathAMRIndex(tmp_path / "b")
    one.indexer(model="mini").index(documents([1, 2]))
    two.indexer(model="large").index(documents([1], name="e"))
    with pytest.raises(ModelMismatchError, match=r"mini.*large"):
        MathAMRIndex.merge(tmp_path / "c", one, two)
    with pytest.raises(DuplicateDocnoError, match="'d0', 'd1'"):
        MathAMRIndex.merge(tmp_path / "c", one, one)
    with pytest.raises(ModelMismatchError):
        one.indexer("append", model="large").index(documents([1], name="e"))
    assert names(tmp_path) == ["a", "b"]


BAD = {
    "NaN": (np.array([[1, 0], [np.nan, 0]]), "row 1 .* NaN"),
    "infinity": (np.array([[np.inf, 0.0]]), "NaN or infinity"),
    "beyond float32": (np.array([[1e300, 0.0]]), "NaN or infinity"),
    "zero": (np.array([[1, 0], [0, 0], [0, 1.0]]), "row 1 .* zero"),
    "a length beyond float32": (np.array([[1e30, 0.0]], np.float32), "too long"),
    "wrong width": (np.ones((2, 3)), "3 dimensions, those of the index 2"),
    "no rows": (np.ones((0, 2)), "empty"),
    "no columns": (np.ones((2, 0)), "empty"),
    "one-dimensional": (np.ones(2), r"shape \(2,\)"),
    "ragged": ([[1.0], [1.0, 2.0]], "not an array of numbers"),
    "text": (np.array([["a", "b"]]), "not an array of numbers"),
    "nothing": (None, "not an array of numbers"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
def test_bad_embeddings_name_the_document_and_change_nothing(tmp_path, documents, bad, mode):
    value, reason = BAD[bad]
    index = MathAMRIndex(tmp_path / "x")
    if mode != "create":
        index.index(documents([2, 1], d=2))
    before = contents(tmp_path)
    stream = [*documents([1, 2], d=2, name="good"), {"docno": "the bad one", "doc_embs": value}]
    with pytest.raises(EmbeddingError, match=reason) as caught:
        index.indexer(mode).index(stream)
    assert caught.value.docno == "the bad one"
    assert contents(tmp_path) == before
    assert index.built() == (mode != "create")


@pytest.mark.parametrize("docno", ["", None, 7, b"x"])
def test_a_docno_that_is_no_name_is_refused(tmp_path, docno):
    with pytest.raises(EmbeddingError, match="docno"):
        MathAMRIndex(tmp_path / "x").index([{"docno": docno, "doc_embs": np.ones((1, 2))}])
    assert not names(tmp_path)


def test_docnos_of_any_unicode_and_of_a_kilobyte_are_found_again(tmp_path):
    odd = ["x" * 1024, "𝔘𝔫𝔦", "a\nb", "\x00", "'; --", "\u00e9", "e\u0301", "\ud800", " "]
    rows = np.eye(len(odd), dtype=np.float32)
    docs = [{"docno": docno, "doc_embs": rows[i : i + 1]} for i, docno in enumerate(odd)]
    index = MathAMRIndex(tmp_path / "x").index(docs)
    assert index.snapshot().find(odd).tolist() == list(range(len(odd)))
    assert [doc["docno"] for doc in index.get_corpus_iter()] == odd


@pytest.mark.parametrize("rows_of_a_shard", [1, 3, 1000])
def test_duplicates_are_refused_by_name_in_a_stream_across_shards_and_across_appends(
    monkeypatch, tmp_path, documents, rows_of_a_shard
):
    monkeypatch.setattr(build, "SHARD_ROWS", rows_of_a_shard)
    docs = documents([1, 2, 1, 3, 1])
    with pytest.raises(DuplicateDocnoError, match="'d1'") as caught:
        MathAMRIndex(tmp_path / "x").index([*docs, docs[1]])
    assert caught.value.docnos == ["d1"]
    assert not names(tmp_path)
    index = MathAMRIndex(tmp_path / "x").index(docs)
    before = contents(tmp_path)
    with pytest.raises(DuplicateDocnoError, match="'d3'"):
        index.indexer("append").index([*documents([1], name="e"), docs[3]])
    assert contents(tmp_path) == before


def test_two_docnos_with_one_hash_are_told_apart(monkeypatch, tmp_path, documents):
    monkeypatch.setattr(shard, "hash_texts", lambda texts: np.array([7 for _ in texts], np.uint64))
    monkeypatch.setattr("pyterrier_mathamr.index.snapshot.hash_texts", shard.hash_texts)
    monkeypatch.setattr("pyterrier_mathamr.index.build.hash_texts", shard.hash_texts)
    index = MathAMRIndex(tmp_path / "x").index(documents([1, 1, 1]))
    assert index.snapshot().find(["d2", "d0", "d1"]).tolist() == [2, 0, 1]
    with pytest.raises(UnknownDocnoError):
        index.snapshot().find(["d3"])


@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_a_stream_without_documents_builds_nothing(tmp_path, documents, mode):
    index = MathAMRIndex(tmp_path / "x")
    if mode == "overwrite":
        index.index(documents([1]))
    before = contents(tmp_path)
    with pytest.raises(EmptyStreamError):
        index.indexer(mode).index([])
    assert contents(tmp_path) == before


def test_an_error_of_the_stream_goes_through_and_leaves_what_stood(tmp_path, documents):
    def stream():
        yield from documents([1, 2], name="e")
        raise RuntimeError("the parser died")

    index = MathAMRIndex(tmp_path / "x").index(documents([1]))
    before = contents(tmp_path)
    for mode in ("overwrite", "append"):
        with pytest.raises(RuntimeError, match="the parser died"):
            index.indexer(mode).index(stream())
        assert contents(tmp_path) == before


def test_something_else_is_never_replaced(tmp_path, documents):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "thesis.tex").write_text("mine")
    for mode in ("create", "overwrite", "append"):
        with pytest.raises(NotAnIndexError):
            MathAMRIndex(tmp_path / "x").indexer(mode).index(documents([1]))
    (tmp_path / "x" / "pt_meta.json").write_text('{"type": "dense_index", "format": "flex"}')
    with pytest.raises(NotAnIndexError, match=r"dense_index\.flex"):
        MathAMRIndex(tmp_path / "x").indexer("overwrite").index(documents([1]))
    assert (tmp_path / "x" / "thesis.tex").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert len(MathAMRIndex(tmp_path / "empty").index(documents([1]))) == 1


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


def test_a_changed_cut_or_missing_file_is_named(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    rows = index.path / "shard-000000" / IndexFile.ROWS.filename
    good = rows.read_bytes()
    rows.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(IndexCorruptError, match=r"rows\.npy"):
        MathAMRIndex(index.path).verify()
    rows.write_bytes(good[:-4])
    with pytest.raises(IndexCorruptError, match="bytes"):
        len(MathAMRIndex(index.path))
    rows.unlink()
    with pytest.raises(IndexCorruptError, match="missing"):
        len(MathAMRIndex(index.path))
    rows.write_bytes(good)
    assert len(MathAMRIndex(index.path)) == 2
    (index.path / "pt_meta.json").write_text("{")
    with pytest.raises(IndexCorruptError, match="JSON"):
        len(MathAMRIndex(index.path))


@pytest.mark.parametrize("version", [0, room.FORMAT_VERSION + 1])
def test_a_format_this_release_does_not_read_is_refused_and_says_what_to_do(tmp_path, documents, version):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    meta = index.path / "pt_meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "format_version": version}))
    with pytest.raises(IndexFormatError, match=f"index format {version}, but this release reads 1 to 2"):
        len(MathAMRIndex(index.path))


def test_a_shard_name_cannot_lead_outside_the_index(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2]))
    meta = json.loads((index.path / "pt_meta.json").read_text())
    meta["shards"][0]["name"] = "../x/shard-000000"
    (index.path / "pt_meta.json").write_text(json.dumps(meta))
    with pytest.raises(IndexCorruptError):
        len(MathAMRIndex(index.path))


def test_the_kept_index_of_format_1_is_still_read(topics):
    index = pt.Artifact.load(str(DATA / "index-format-1"))
    index.verify()
    assert isinstance(index, MathAMRIndex)
    assert index.model == "a model"
    docs = {doc["docno"]: doc for doc in index.get_corpus_iter()}
    assert docs["2"]["formula_ids"] == ["f1", ""]
    np.testing.assert_array_equal(docs["1"]["doc_embs"], np.array([[0.6, 0.8]], np.float32))
    query = topics([1]).assign(query_embs=[np.array([[1.0, 0.0]])])
    found = index.colbert()(query)
    assert found["docno"].tolist() == ["2", "1", "drei"]
    assert found["score"].tolist() == pytest.approx([1.0, 0.6, -0.6])


def test_the_kept_index_of_format_2_is_still_read():
    index = pt.Artifact.load(str(DATA / "index-format-2"))
    index.verify()
    docs = {doc["docno"]: doc for doc in index.get_corpus_iter()}
    assert docs["2"]["formula_ids"] == ["f1", ""]
    np.testing.assert_array_equal(docs["1"]["doc_embs"], np.array([[0.6, 0.8]], np.float16))


def test_the_kept_formula_index_of_format_1_is_still_read():
    index = pt.Artifact.load(str(DATA / "formula-index-format-1"))
    index.verify()
    found = list(index.get_corpus_iter())
    assert [(row["docno"], row["post_id"], row["visual_id"]) for row in found] == [("f1", "2", "v1"), ("f2", "3", "")]
    np.testing.assert_array_equal(found[1]["formula_vec"], [0.0, 1.0])


def test_the_files_of_the_kept_index_are_those_of_the_format():
    """A file that is added or dropped changes the format: raise FORMAT_VERSION, and keep an index of the old one."""
    for name, layout in (
        ("index-format-1", "documents"),
        ("index-format-2", "documents"),
        ("formula-index-format-1", "formulas"),
    ):
        kept = {path.name for path in (DATA / name / "shard-000000").iterdir()}
        assert kept == {file.filename for file in IndexFile.of(layout)}


def test_a_package_is_unpacked_and_loaded_elsewhere(tmp_path, documents, topics):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1, 3]))
    package = index.build_package(str(tmp_path / "x.tar.lz4"), verbose=False)
    with LZ4FrameFile(package) as data, tarfile.open(fileobj=data) as tar:
        tar.extractall(tmp_path / "elsewhere", filter="data")
    index.path.rename(tmp_path / "moved")
    loaded = pt.Artifact.load(str(tmp_path / "elsewhere"))
    assert isinstance(loaded, MathAMRIndex)
    loaded.verify()
    frame = topics([2])
    assert loaded.colbert()(frame).equals(MathAMRIndex(tmp_path / "moved").colbert()(frame))
    assert str(tmp_path).encode() not in b"".join(contents(tmp_path / "elsewhere").values())


def test_an_encoder_s_stream_is_indexed_through_a_pipeline(tmp_path, documents):
    vectors = {doc["docno"]: doc["doc_embs"] for doc in documents([2, 1, 3])}
    encode = pt.apply.doc_embs(lambda row: vectors[row["docno"]])
    index = MathAMRIndex(tmp_path / "x")
    (encode >> index.indexer()).index({"docno": docno} for docno in vectors)
    assert docnos(index) == sorted(vectors)


def test_the_first_record_must_have_the_columns(tmp_path):
    with pytest.raises(pt.validate.InputValidationError, match="doc_embs"):
        MathAMRIndex(tmp_path / "x").index([{"docno": "d1", "text": "no vectors"}])


def test_errors_survive_a_worker_process():
    errors = [
        UnknownDocnoError(Path("x"), ["d1"]),
        DuplicateDocnoError(Path("x"), ["d1"] * 9),
        EmbeddingError("d" * 2000, "is odd"),
        IndexFormatError(Path("x"), 9, range(1, 2)),
        IndexLockedError(Path("x"), "process 1"),
        ModelMismatchError(Path("x"), "a", "b"),
    ]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
        assert len(str(error)) < 300
