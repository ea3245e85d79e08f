"""Building an index: what comes back, what is refused, and that nothing is changed by what is refused."""

import os
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from folder_bytes import folder_bytes
from index_folders import docnos, names

from pyterrier_mathamr.index import EmbeddingError, MathAMRIndex, ModelMismatchError
from pyterrier_mathamr.store import DuplicateIdError, UnknownIdError, WriteError


def test_the_same_documents_make_the_same_bytes(tmp_path, documents):
    docs = documents([3, 1, 2, 1])
    first = MathAMRIndex(tmp_path / "a").index(docs)
    second = MathAMRIndex(tmp_path / "b").index(iter(docs))
    assert folder_bytes(first.path) == folder_bytes(second.path)
    assert names(tmp_path) == ["a", "b"]
    third = MathAMRIndex(tmp_path / "c").index(first.get_corpus_iter())
    assert folder_bytes(third.path) == folder_bytes(first.path)
    vectors = pd.Series([doc["doc_embs"] for doc in docs], dtype=object)
    frame = pd.DataFrame({"docno": [doc["docno"] for doc in docs], "doc_embs": vectors})
    assert folder_bytes(MathAMRIndex(tmp_path / "d").index(frame).path) == folder_bytes(first.path)
    with pytest.raises(pt.validate.InputValidationError, match="doc_embs"):
        MathAMRIndex(tmp_path / "e").index([{"docno": "d1", "text": "no vectors"}])


def test_indexed_vectors_come_back_bit_by_bit(tmp_path, documents):
    docs = documents([3, 1, 2, 1])
    docs[1]["formula_ids"], docs[2]["formula_ids"] = [], ["9", ""]
    found = {doc["docno"]: doc for doc in MathAMRIndex(tmp_path / "a").index(docs).get_corpus_iter()}
    assert len(found) == 4
    for doc in docs:
        np.testing.assert_array_equal(found[doc["docno"]]["doc_embs"], doc["doc_embs"])
        assert found[doc["docno"]].get("formula_ids") == doc.get("formula_ids")


def test_create_refuses_an_existing_artifact_overwrite_replaces_it_and_append_adds_to_it(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    with pytest.raises(WriteError):
        index.index(documents([1]))
    index.indexer("append").index(documents([1, 3], seed=5, name="e"))
    assert docnos(index) == ["d0", "d1", "e0", "e1"]
    index.indexer("overwrite").index(documents([4], d=3, name="f"))
    assert docnos(index) == ["f0"]
    assert index.verify() is None
    assert names(tmp_path) == ["x"]
    assert len(list(index.path.glob("part-*"))) == 1


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
    with pytest.raises(DuplicateIdError, match="'d0', 'd1'"):
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
    "wrong width": (np.ones((2, 3)), "3 dimensions, but the index has 2"),
    "no rows": (np.ones((0, 2)), "empty"),
    "no columns": (np.ones((2, 0)), "empty"),
    "one-dimensional": (np.ones(2), r"shape \(2,\)"),
    "ragged": ([[1.0], [1.0, 2.0]], "not an array of numbers"),
    "text": (np.array([["a", "b"]]), "not an array of numbers"),
    "nothing": (None, "not an array of numbers"),
}


@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
def test_bad_embeddings_name_the_document_and_change_nothing(tmp_path, documents, mode):
    index = MathAMRIndex(tmp_path / "x")
    if mode != "create":
        index.index(documents([2, 1], d=2))
    before = folder_bytes(tmp_path)
    for value, reason in BAD.values():
        stream = [*documents([1, 2], d=2, name="good"), {"docno": "the bad one", "doc_embs": value}]
        with pytest.raises(EmbeddingError, match=reason) as caught:
            index.indexer(mode).index(stream)
        assert caught.value.docno == "the bad one"
        assert folder_bytes(tmp_path) == before


def test_docnos_of_any_unicode_and_of_a_kilobyte_are_found_again(tmp_path):
    odd = ["x" * 1024, "𝔘𝔫𝔦", "'; --", "\u00e9", "e\u0301", "\ud800", "a b"]
    rows = np.eye(len(odd), dtype=np.float32)
    docs = [{"docno": docno, "doc_embs": rows[i : i + 1]} for i, docno in enumerate(odd)]
    index = MathAMRIndex(tmp_path / "x").index(docs)
    assert index.snapshot().find(odd).tolist() == list(range(len(odd)))
    assert [doc["docno"] for doc in index.get_corpus_iter()] == odd


@pytest.mark.parametrize("rows_of_a_shard", [1, 1000])
def test_duplicates_are_refused_by_name_in_a_stream_across_shards_and_across_appends(
    part_rows, tmp_path, documents, rows_of_a_shard
):
    part_rows(rows_of_a_shard)
    docs = documents([1, 2, 1, 3, 1])
    with pytest.raises(DuplicateIdError, match="'d1'") as caught:
        MathAMRIndex(tmp_path / "x").index([*docs, docs[1]])
    assert caught.value.ids == ["d1"]
    assert not names(tmp_path)
    index = MathAMRIndex(tmp_path / "x").index(docs)
    before = folder_bytes(tmp_path)
    with pytest.raises(DuplicateIdError, match="'d3'"):
        index.indexer("append").index([*documents([1], name="e"), docs[3]])
    assert folder_bytes(tmp_path) == before


@pytest.mark.parametrize(
    ("mode", "empty"), [("create", []), ("overwrite", []), ("append", pd.DataFrame(columns=["docno", "doc_embs"]))]
)
def test_a_stream_without_documents_builds_an_empty_index(tmp_path, documents, topics, mode, empty):
    index = MathAMRIndex(tmp_path / "x")
    if mode == "overwrite":
        index.index(documents([1]))
    index.indexer(mode, model="a", dtype="float16").index(empty)
    assert index.built()
    assert (len(index), index.model, list(index.get_corpus_iter())) == (0, "a", [])
    index.verify()
    frame = topics([2, 3])
    for stage in (index, index.single_vector(), index.doc_vn(), index.colbert(), index.colbert(exact=False)):
        assert stage(frame).empty
    with pytest.raises(UnknownIdError):
        index.vec_loader()(pd.DataFrame({"docno": ["d0"]}))
    index.indexer("append").index(documents([2], d=8))
    assert docnos(index) == ["d0"]
    assert index.snapshot().meta.dtype == "float16"
    assert len(index.colbert()(frame)) == 2


def test_errors_survive_a_worker_process():
    for error in (EmbeddingError("d" * 2000, "is odd"), ModelMismatchError(Path("x"), "a", "b")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
        assert len(str(error)) < 300


def test_a_stream_ten_times_longer_needs_no_more_memory(part_rows, tmp_path):
    part_rows(1024, d=64)
    rows = np.eye(4, 64, dtype=np.float32)

    def peak(count):
        tracemalloc.start()
        MathAMRIndex(tmp_path / str(count)).index({"docno": str(i), "doc_embs": rows + i} for i in range(count))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)  # allocates everything that is made once
    assert peak(3000) < 1.5 * peak(300)  # the rows are 3 MB and 0.3 MB; each part's description stays


@pytest.mark.parametrize("d", [8, 64])
def test_parts_are_cut_by_the_bytes_of_their_rows_whatever_their_width(part_rows, tmp_path, documents, d):
    part_rows(1250, d=8)  # 40,000 bytes
    index = MathAMRIndex(tmp_path / "x").index(documents([10] * 300, d=d))
    *full, _ = [part["rows"].nbytes for part in index.snapshot().parts]
    assert len(full) == 300 * 40 * d // full[0]
    assert all(40_000 <= size < 40_000 + 40 * d for size in full)


def test_an_example_is_gone_when_python_ends(tmp_path):
    code = "import pyterrier_mathamr.index as of; print(len(of.MathAMRIndex.example()), len(of.QdrantIndex.example()))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["3", "3"], done.stderr
    assert not names(tmp_path)
