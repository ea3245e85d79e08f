"""Rows stored as float16: half the room, and every search exact for the rows as they are stored."""

import json

import numpy as np
import pandas as pd
import pytest
from folder_bytes import folder_bytes

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import EmbeddingError, MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.index.search import folder
from pyterrier_mathamr.store import DamagedError, UnfinishedJobError
from pyterrier_mathamr.store.manifest import signed


def rounded(docs):
    """The same documents, each number the nearest that float16 has."""
    return [{**doc, "doc_embs": doc["doc_embs"].astype(np.float16).astype(np.float32)} for doc in docs]


def half(path, docs, **options):
    index = MathAMRIndex(path)
    index.indexer(dtype="float16", **options).index(docs)
    return index


@pytest.mark.parametrize("codes_pay", [0, 10**9])  # by the scan over bytes, and by that over the rows
@pytest.mark.parametrize("shard_rows", [7, 1 << 19])
def test_every_strategy_finds_what_brute_force_finds_in_the_rounded_rows(
    part_rows, monkeypatch, tmp_path, documents, topics, assert_ranked, codes_pay, shard_rows
):
    monkeypatch.setattr(folder, "CODES_PAY", codes_pay)
    part_rows(shard_rows)
    docs, frame = documents([1, 3, 2, 5, 1, 4] * 5), topics([3, 1])
    index, stored = half(tmp_path / "x", docs), rounded(docs)
    for retriever in (index.colbert(num_results=9), index.doc_vn(30, num_results=9)):  # there are 30 documents
        assert_ranked(retriever(frame), frame, stored, 9)
    plain = MathAMRIndex(tmp_path / "plain").index(stored)
    for strategy in ("single_vector", "doc_vn", "colbert"):
        for exact in (True, False):
            options = {"num_results": 9, "exact": exact}
            pd.testing.assert_frame_equal(
                getattr(index, strategy)(**options)(frame), getattr(plain, strategy)(**options)(frame)
            )
    reranked = index.scorer()(index.colbert()(frame))
    pd.testing.assert_frame_equal(reranked, plain.scorer()(plain.colbert()(frame)))


def test_a_long_document_in_float16_is_scanned_in_pieces(tmp_path, documents, topics, monkeypatch):
    monkeypatch.setattr("pyterrier_mathamr.index.search.maxsim.BLOCK_ROWS", 4)
    docs, frame = documents([30, 2, 1]), topics([3]).assign(query_document_weight=0.5)
    plain = MathAMRIndex(tmp_path / "plain").index(rounded(docs))
    pd.testing.assert_frame_equal(half(tmp_path / "x", docs).colbert()(frame), plain.colbert()(frame))


def test_the_rows_take_half_the_room_and_come_back_as_they_were_rounded(tmp_path, documents):
    docs = documents([4] * 100)
    index = half(tmp_path / "x", docs)
    plain = MathAMRIndex(tmp_path / "plain").index(docs)
    sizes = [of.snapshot().parts[0]["rows"].nbytes for of in (index, plain)]
    assert sizes == [100 * 4 * 8 * 2, 100 * 4 * 8 * 4]
    assert len(b"".join(folder_bytes(plain.path).values())) - len(b"".join(folder_bytes(index.path).values())) > 6300
    for found, stored in zip(index.get_corpus_iter(), rounded(docs), strict=True):
        assert found["doc_embs"].dtype == np.float32
        assert np.array_equal(found["doc_embs"], stored["doc_embs"])
    index.verify()


@pytest.mark.parametrize("details", [{"dtype": "float32"}, {"dtype": "float64"}, {"dtype": None}, {"dimensions": 3}])
def test_a_manifest_that_does_not_go_with_the_rows_is_refused(tmp_path, documents, details):
    index = half(tmp_path / "x", documents([2]))
    file = index.path / "pt_meta.json"
    content = json.loads(file.read_text())
    del content["checksum"]
    content["details"] |= details
    file.write_bytes(signed(content))
    with pytest.raises(DamagedError, match=r"dtype|rows"):
        len(MathAMRIndex(index.path))


@pytest.mark.parametrize(
    ("row", "reason"),
    [([70000.0, 0], "rounded to float16, contains NaN or infinity"), ([1e-9, 1e-9], "rounded to float16, is zero")],
)
def test_rows_that_float16_cannot_hold_are_refused_naming_the_document(tmp_path, row, reason):
    docs = [{"docno": "good", "doc_embs": np.eye(2)}, {"docno": "bad", "doc_embs": np.array([row])}]
    with pytest.raises(EmbeddingError, match=reason) as caught:
        half(tmp_path / "x", docs)
    assert caught.value.docno == "bad"
    assert not (tmp_path / "x").exists()
    assert len(MathAMRIndex(tmp_path / "x").index(docs)) == 2


def test_additions_are_stored_in_the_index_s_form_and_another_form_is_refused(tmp_path, documents):
    index = half(tmp_path / "x", documents([2, 1]))
    index.indexer("append").index(documents([3], name="e"))
    index.indexer("append", dtype="float16").index(documents([1], name="f"))
    assert index.snapshot().meta.dtype == "float16"
    before = folder_bytes(index.path)
    with pytest.raises(ConfigError, match=r"dtype='float32' .* stores float16; .*merge"):
        index.indexer("append", dtype="float32").index(documents([1], name="g"))
    assert folder_bytes(index.path) == before
    index.indexer("overwrite").index(documents([3]))
    assert index.snapshot().meta.dtype == "float32"
    with pytest.raises(ConfigError, match=r"dtype='int2'.*'float32' or 'float16' or 'int8' or 'int4'"):
        index.indexer(dtype="int2")


def test_merging_keeps_the_dtype_converts_where_it_is_asked_to_and_refuses_to_choose(tmp_path, documents):
    one, two = half(tmp_path / "1", documents([2])), MathAMRIndex(tmp_path / "2").index(documents([3], name="e"))
    assert MathAMRIndex.merge(tmp_path / "3", one).snapshot().meta.dtype == "float16"
    with pytest.raises(ConfigError, match=r"dtype=None .* store rows as float16 and float32"):
        MathAMRIndex.merge(tmp_path / "4", one, two)
    assert not (tmp_path / "4").exists()
    both = MathAMRIndex.merge(tmp_path / "4", one, two, dtype="float16")
    docs = [*documents([2]), *documents([3], name="e")]
    assert folder_bytes(both.path) == folder_bytes(half(tmp_path / "5", docs).path)
    wide = MathAMRIndex.merge(tmp_path / "6", one, dtype="float32")
    assert folder_bytes(wide.path) == folder_bytes(MathAMRIndex(tmp_path / "7").index(rounded(documents([2]))).path)


def test_rows_that_come_again_are_compared_as_float16_rounds_them(part_rows, tmp_path, documents):
    part_rows(4)
    docs = documents([5, 3])
    near, far = ([{**docs[0], "doc_embs": docs[0]["doc_embs"] + by}, docs[1]] for by in (9e-6, 2e-3))

    def dying():
        yield docs[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half(tmp_path / "x", dying(), resume=True)
    with pytest.raises(UnfinishedJobError, match="'d0'"):
        half(tmp_path / "x", far, resume=True)
    assert len(half(tmp_path / "x", near, resume=True)) == 2


def test_formulas_are_stored_in_float16_and_ranked_by_the_rounded_vectors(tmp_path, documents, topics):
    docs = [{**doc, "formula_ids": [f"{doc['docno']}f"]} for doc in documents([2] * 30)]
    index, plain = (MathAMRFormulaIndex(tmp_path / name) for name in ("x", "plain"))
    index.indexer(dtype="float16").index(docs)
    plain.index(rounded(docs))
    frame = topics([2]).assign(query_formula_ids=[["a"]], query_formula_id="a")
    for exact in (True, False):
        pd.testing.assert_frame_equal(index.retriever(exact=exact)(frame), plain.retriever(exact=exact)(frame))
    assert MathAMRFormulaIndex.merge(tmp_path / "m", plain, dtype="float16").snapshot().meta.dtype == "float16"
