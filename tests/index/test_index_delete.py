"""Deleting from an index, and compacting it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from folder_bytes import folder_bytes
from index_folders import docnos

from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.index.backend import How, QueryBatch
from pyterrier_mathamr.index.search import folder
from pyterrier_mathamr.store import UnknownIdError

GONE = ["d2", "d4", "d11", "d2"]


@pytest.fixture(params=[2, 1000])
def pruned(request, part_rows, tmp_path, documents):
    """An index after deletions, and one that was built without the deleted documents."""
    part_rows(request.param)
    docs = documents([2, 1, 5, 3, 1, 1, 4, 2, 2, 3, 1, 6])
    for i, doc in enumerate(docs):
        doc["formula_ids"] = [f"f{i}"]
    index = MathAMRIndex(tmp_path / "x").index(docs)
    index.delete(GONE)
    return index, MathAMRIndex(tmp_path / "y").index(doc for doc in docs if doc["docno"] not in GONE)


@pytest.mark.parametrize("codes_pay", [True, False])
def test_every_search_finds_what_an_index_without_the_deleted_finds(monkeypatch, pruned, topics, codes_pay):
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: codes_pay)
    frame = topics([3, 2, 5]).assign(query_document_weight=[0.5, -1.0, 0.0])
    for strategy, exact, k in product(("single_vector", "doc_vn", "colbert"), (True, False), (1, 4, 1000)):
        found, plain = (getattr(index, strategy)(num_results=k, exact=exact)(frame) for index in pruned)
        pd.testing.assert_frame_equal(found, plain, check_exact=True)


def test_a_device_that_keeps_the_codes_leaves_the_deleted_out(pruned, topics):
    batch = QueryBatch(topics([3])["query_embs"][0], np.array([0, 3]))
    found = [of.snapshot().select(batch, 4, "all", How(device="cpu"))[0] for of in pruned]
    names = [of.snapshot().texts("docno", hits.numbers) for of, hits in zip(pruned, found, strict=True)]
    assert names[0] == names[1]
    assert found[0].scores.tobytes() == found[1].scores.tobytes()


def test_deleted_documents_are_unknown_to_everything_that_accepts_docnos(pruned, topics):
    index, plain = pruned
    assert len(index) == len(plain) == 9
    assert [doc["docno"] for doc in index.get_corpus_iter()] == [doc["docno"] for doc in plain.get_corpus_iter()]
    assert "d2" not in index
    assert "d3" in index
    gone = topics([2]).assign(docno="d2")
    for refused in (
        lambda: index.scorer()(gone),
        lambda: index.vec_loader()(gone[["docno"]]),
        lambda: index.explain(gone.iloc[0], "d2"),
        lambda: index.delete(["d3", "d2"]),
    ):
        with pytest.raises(UnknownIdError, match="'d2'"):
            refused()
    assert "d3" in index
    ranking = plain.colbert()(topics([2]))
    pd.testing.assert_frame_equal(index.scorer()(ranking), plain.scorer()(ranking), check_exact=True)
    parts = [of.explain(topics([2]), "d9").parts for of in (index, plain)]
    pd.testing.assert_frame_equal(*parts)


def test_compacting_frees_what_was_deleted_and_it_can_be_added_again(pruned, documents, topics):
    index, plain = pruned
    before = sum(map(len, folder_bytes(index.path).values()))
    index.compact()
    assert sum(map(len, folder_bytes(index.path).values())) < before
    rows = [sum(len(part["rows"]) for part in of.snapshot().parts) for of in pruned]
    assert rows[0] == rows[1]
    index.verify()
    back = [*documents([1, 5], seed=3, name="new"), {**documents([2], seed=4)[0], "docno": "d2"}]
    for of in pruned:
        of.indexer("append").index(back)
    frame = topics([3, 2])
    pd.testing.assert_frame_equal(index.colbert()(frame), plain.colbert()(frame), check_exact=True)


def test_a_document_that_was_deleted_can_be_added_again_before_its_bytes_are_freed(pruned, documents):
    index, _ = pruned
    new = {**documents([3], seed=9)[0], "docno": "d2"}
    index.indexer("append").index([new])
    (found,) = (doc for doc in index.get_corpus_iter() if doc["docno"] == "d2")
    np.testing.assert_array_equal(found["doc_embs"], new["doc_embs"])
    index.compact()
    assert len(index) == 10
    assert "d4" not in index


def test_an_index_that_was_compacted_is_that_which_is_built_without_the_deleted(tmp_path, documents):
    docs = documents([2, 1, 5, 3, 1, 1, 4])
    index = MathAMRIndex(tmp_path / "x")
    for start in range(0, 7, 2):
        index.indexer("append").index(docs[start : start + 2])
    index.delete(["d2", "d4"])
    index.compact()
    plain = MathAMRIndex(tmp_path / "y").index(doc for doc in docs if doc["docno"] not in GONE)
    arrays = [next(data for name, data in folder_bytes(of.path).items() if "arrays" in name) for of in (index, plain)]
    assert arrays[0] == arrays[1]


def test_an_index_emptied_by_deletion_finds_nothing_and_accepts_new_documents(tmp_path, documents, topics):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    index.delete(["d0", "d1"])
    assert len(index) == 0
    assert index.built()
    for strategy in (index.single_vector(), index.doc_vn(), index.colbert(), index.colbert(exact=False)):
        found = strategy(topics([2]))
        assert list(found.columns) == ["qid", "query", "query_embs", "docno", "score", "rank"]
        assert found.empty
    index.indexer("append").index(documents([1], name="e"))
    assert docnos(index) == ["e0"]
