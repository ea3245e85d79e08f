"""Rows stored as float16, int8 or int4: little else is kept, and every search is exact for the rows as stored."""

import json

import numpy as np
import pandas as pd
import pytest
from folder_bytes import folder_bytes

from pyterrier_mathamr import Processes
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import EmbeddingError, MathAMRFormulaIndex, MathAMRIndex, ShardedIndex
from pyterrier_mathamr.index.search import folder
from pyterrier_mathamr.store import DamagedError, UnfinishedJobError
from pyterrier_mathamr.store.manifest import signed

every = pytest.mark.parametrize("dtype", ["float16", "int8", "int4"])
SAME = pd.testing.assert_frame_equal


def stored_as(dtype, path, docs, kind=MathAMRIndex, **options):
    index = kind(path)
    index.indexer(dtype=dtype, **options).index(docs)
    return index


def stored(index):
    return list(index.get_corpus_iter())


def of_many_lengths(documents):
    """Documents whose rows have lengths from a thousandth to a thousand."""
    docs = documents([1, 3, 2, 5, 1, 4] * 5)
    return [{**doc, "doc_embs": doc["doc_embs"] * np.float32(10.0 ** (i % 7 - 3))} for i, doc in enumerate(docs)]


def test_a_row_comes_back_rounded_to_float16_or_within_half_a_step_of_its_own_scale(tmp_path, documents):
    docs = of_many_lengths(documents)
    half, byte = (stored(stored_as(dtype, tmp_path / dtype, docs)) for dtype in ("float16", "int8"))
    for doc, as_half, as_byte in zip(docs, half, byte, strict=True):
        rows = doc["doc_embs"]
        assert as_half["doc_embs"].dtype == as_byte["doc_embs"].dtype == np.float32
        np.testing.assert_array_equal(as_half["doc_embs"], rows.astype(np.float16).astype(np.float32))
        step = np.abs(rows).max(axis=1, keepdims=True) / 127
        assert (np.abs(as_byte["doc_embs"] - rows) <= step * 0.51).all()


def test_a_row_of_four_bits_has_an_error_of_a_tenth_of_its_length_or_so(tmp_path, documents):
    docs = [{**doc, "doc_embs": 1000 * doc["doc_embs"]} for doc in documents([3, 2] * 50, d=128)]
    errors = []
    for doc, found in zip(docs, stored(stored_as("int4", tmp_path / "x", docs)), strict=True):
        errors += np.linalg.norm(found["doc_embs"] - doc["doc_embs"], axis=1).tolist()
    assert 95 < np.mean(errors) < 112  # the best possible with 15 steps for normally distributed numbers is 106
    assert max(errors) < 180


def test_four_bits_hold_whole_numbers_from_minus_seven_to_seven_exactly_in_widths_that_are_multiples_of_eight(
    tmp_path, documents
):
    row = np.array([[7, -7, 0, 1, -1, 2, 3, -4]], dtype=np.float32)
    index = stored_as("int4", tmp_path / "x", [{"docno": "d", "doc_embs": np.vstack([row, 2 * row[:, ::-1]])}])
    assert stored(index)[0]["doc_embs"].tolist() == [row[0].tolist(), (2 * row[0, ::-1]).tolist()]
    with pytest.raises(ConfigError, match="multiple of 8"):
        stored_as("int4", tmp_path / "y", documents([2], d=12))
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 16), ("int8", 8), ("int4", 4)])
def test_a_row_needs_its_bits_for_each_number_and_codes_four_bytes_for_its_scale(tmp_path, documents, dtype, bits):
    index = stored_as(dtype, tmp_path / "x", documents([4] * 1000, d=96))
    (part,) = index.snapshot().parts
    assert part["rows"].nbytes == 4000 * 96 * bits / 8
    if dtype != "float16":
        assert not {"codes", "scales", "code_bounds", "document_vectors"} & set(part._arrays)
        size = len(b"".join(folder_bytes(index.path).values()))
        assert size / 1000 < 4 * (96 * bits / 8 + 4) + 70  # and the docno, offsets, order and fingerprint


@every
@pytest.mark.parametrize(("shard_rows", "codes"), [(30, False), (30, True), (1 << 19, True)])
def test_every_strategy_finds_what_brute_force_finds_in_the_stored_rows(
    part_rows, tmp_path, documents, topics, weigh, assert_ranked, monkeypatch, shard_rows, codes, dtype
):
    part_rows(shard_rows)
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: codes)
    docs = of_many_lengths(documents)
    docs += [{**doc, "docno": f"same-{doc['docno']}"} for doc in docs[:6]]  # ties
    frame = weigh(topics([3, 1]), [0.5, 0.0])
    index = stored_as(dtype, tmp_path / "x", docs)
    plain = MathAMRIndex(tmp_path / "plain").index(stored(index))
    for retriever in (index.colbert(num_results=9), index.doc_vn(36, num_results=9)):
        assert_ranked(retriever(frame), frame, stored(index), 9)
    for strategy in ("single_vector", "doc_vn", "colbert"):
        for exact in (True, False):
            found, true = (getattr(of, strategy)(num_results=9, exact=exact)(frame) for of in (index, plain))
            SAME(found, true)
    SAME(index.scorer()(plain.colbert()(frame)), plain.scorer()(plain.colbert()(frame)))


@every
def test_a_long_document_is_scanned_in_pieces_and_parts_find_what_one_index_finds(
    tmp_path, documents, topics, monkeypatch, dtype
):
    monkeypatch.setattr("pyterrier_mathamr.index.search.maxsim.BLOCK_ROWS", 4)
    docs, frame = documents([30, 2, 1, 4, 3, 5]), topics([3]).assign(query_document_weight=0.5)
    parts = [stored_as(dtype, tmp_path / str(i), docs[i::2]).path for i in range(2)]
    index = stored_as(dtype, tmp_path / "x", docs)
    true = MathAMRIndex(tmp_path / "plain").index(stored(index)).colbert()(frame)
    SAME(index.colbert()(frame), true)
    SAME(ShardedIndex(parts, Processes(1)).colbert()(frame), true)


@every
def test_formulas_are_ranked_by_the_stored_rows(tmp_path, documents, topics, dtype):
    docs = [{**doc, "formula_ids": [f"{doc['docno']}f"]} for doc in documents([2] * 30)]
    index = stored_as(dtype, tmp_path / "x", docs, MathAMRFormulaIndex)
    plain = MathAMRFormulaIndex.merge(tmp_path / "plain", index, dtype="float32")
    frame = topics([2]).assign(query_formula_ids=[["a"]], query_formula_id="a")
    for exact in (True, False):
        SAME(index.retriever(exact=exact)(frame), plain.retriever(exact=exact)(frame))
    assert MathAMRFormulaIndex.merge(tmp_path / "again", plain, dtype=dtype).snapshot().meta.dtype == dtype


@every
def test_appending_deleting_and_compacting_leave_the_search_exact(tmp_path, documents, topics, assert_ranked, dtype):
    index = stored_as(dtype, tmp_path / "x", documents([2, 1, 4, 3]))
    index.indexer("append").index(documents([3, 2], name="e"))
    index.delete(["d1", "e0"])
    frame, before = topics([3]), stored(index)
    assert index.snapshot().meta.dtype == dtype
    assert_ranked(index.colbert()(frame), frame, before, 9)
    index.compact()
    index.verify()
    for old, new in zip(before, stored(index), strict=True):
        assert np.array_equal(old["doc_embs"], new["doc_embs"])
    assert_ranked(index.colbert()(frame), frame, before, 9)


@every
def test_rows_that_are_merged_keep_their_bytes_and_other_dtypes_are_converted(tmp_path, documents, dtype):
    docs = of_many_lengths(documents)
    one, plain = stored_as(dtype, tmp_path / "1", docs), MathAMRIndex(tmp_path / "2").index(docs)
    assert folder_bytes(MathAMRIndex.merge(tmp_path / "3", one).path) == folder_bytes(one.path)
    assert folder_bytes(MathAMRIndex.merge(tmp_path / "4", plain, dtype=dtype).path) == folder_bytes(one.path)
    wide = MathAMRIndex.merge(tmp_path / "5", one, dtype="float32")
    assert folder_bytes(wide.path) == folder_bytes(MathAMRIndex(tmp_path / "6").index(stored(one)).path)
    other = MathAMRIndex(tmp_path / "7").index(documents([3], name="e"))
    with pytest.raises(ConfigError, match=rf"dtype=None .* store rows as ({dtype} and float32|float32 and {dtype})"):
        MathAMRIndex.merge(tmp_path / "8", one, other)
    assert not (tmp_path / "8").exists()


@every
def test_rows_that_come_again_are_compared_as_they_were_rounded(part_rows, tmp_path, documents, dtype):
    part_rows(4)
    docs = documents([5, 3])
    near, far = ([{**docs[0], "doc_embs": docs[0]["doc_embs"] * by}, docs[1]] for by in (1 + 1e-6, -1))

    def dying():
        yield docs[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stored_as(dtype, tmp_path / "x", dying(), resume=True)
    with pytest.raises(UnfinishedJobError, match="'d0'"):
        stored_as(dtype, tmp_path / "x", far, resume=True)
    index, whole = stored_as(dtype, tmp_path / "x", near, resume=True), stored_as(dtype, tmp_path / "whole", docs)
    assert stored(index)[0]["doc_embs"].tolist() == stored(whole)[0]["doc_embs"].tolist()


@pytest.mark.parametrize(
    ("row", "reason"),
    [([70000.0, 0], "rounded to float16, contains NaN or infinity"), ([1e-9, 1e-9], "rounded to float16, is zero")],
)
def test_rows_that_float16_cannot_hold_are_refused_naming_the_document(tmp_path, row, reason):
    docs = [{"docno": "good", "doc_embs": np.eye(2)}, {"docno": "bad", "doc_embs": np.array([row])}]
    with pytest.raises(EmbeddingError, match=reason) as caught:
        stored_as("float16", tmp_path / "x", docs)
    assert caught.value.docno == "bad"
    assert not (tmp_path / "x").exists()
    assert len(MathAMRIndex(tmp_path / "x").index(docs)) == 2


def test_additions_are_stored_in_the_index_s_form_and_another_form_is_refused(tmp_path, documents):
    index = stored_as("float16", tmp_path / "x", documents([2, 1]))
    index.indexer("append", dtype="float16").index(documents([1], name="f"))
    before = folder_bytes(index.path)
    with pytest.raises(ConfigError, match=r"dtype='float32' .* stores float16; .*merge"):
        index.indexer("append", dtype="float32").index(documents([1], name="g"))
    assert folder_bytes(index.path) == before
    index.indexer("overwrite").index(documents([3]))
    assert index.snapshot().meta.dtype == "float32"
    with pytest.raises(ConfigError, match=r"dtype='int2'.*'float32' or 'float16' or 'int8' or 'int4'"):
        index.indexer(dtype="int2")


@pytest.mark.parametrize("details", [{"dtype": "float32"}, {"dtype": "float64"}, {"dtype": None}, {"dimensions": 3}])
def test_a_manifest_that_does_not_go_with_the_rows_is_refused(tmp_path, documents, details):
    index = stored_as("float16", tmp_path / "x", documents([2]))
    file = index.path / "pt_meta.json"
    content = json.loads(file.read_text())
    del content["checksum"]
    content["details"] |= details
    file.write_bytes(signed(content))
    with pytest.raises(DamagedError, match=r"dtype|rows"):
        len(MathAMRIndex(index.path))


def test_codes_without_scales_and_numbers_without_codes_are_refused(tmp_path, documents):
    for dtype, name in (("int8", "row_scales"), ("int4", "row_scales"), ("float32", "code_bounds")):
        index = stored_as(dtype, tmp_path / dtype, documents([2, 3]))
        file = next(index.path.glob("part-*/arrays.safetensors"))
        file.write_bytes(file.read_bytes().replace(f'"{name}"'.encode(), f'"{name[:-1]}_"'.encode()))
        with pytest.raises(DamagedError, match=f"has no {name}"):
            len(MathAMRIndex(index.path))
