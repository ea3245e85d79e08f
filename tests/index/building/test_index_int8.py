"""Rows stored as int8 with a scale for each: nothing else is kept, and every search is exact for the stored rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from folder_bytes import folder_bytes

from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.index.search import folder
from pyterrier_mathamr.store import DamagedError


def int8(path: Path, docs, kind=MathAMRIndex, mode="create") -> MathAMRIndex:
    index = kind(path)
    index.indexer(mode, dtype="int8").index(docs)
    return index


def stored(index):
    return [{**doc, "docno": doc["docno"]} for doc in index.get_corpus_iter()]


def ten_lengths(documents):
    """Documents whose rows have lengths from a thousandth to a thousand."""
    docs = documents([1, 3, 2, 5, 1, 4] * 5)
    return [{**doc, "doc_embs": doc["doc_embs"] * np.float32(10.0 ** (i % 7 - 3))} for i, doc in enumerate(docs)]


def test_a_row_comes_back_within_half_a_step_of_its_own_scale(tmp_path, documents):
    docs = ten_lengths(documents)
    for doc, found in zip(docs, int8(tmp_path / "x", docs).get_corpus_iter(), strict=True):
        step = np.abs(doc["doc_embs"]).max(axis=1, keepdims=True) / 127
        assert found["doc_embs"].dtype == np.float32
        assert (np.abs(found["doc_embs"] - doc["doc_embs"]) <= step * 0.51).all()


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("shard_rows", [7, 1 << 19])
def test_every_strategy_finds_what_brute_force_finds_in_the_stored_rows(
    part_rows, tmp_path, documents, topics, weigh, assert_ranked, monkeypatch, shard_rows, codes
):
    part_rows(shard_rows)
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: codes)
    docs = ten_lengths(documents)
    docs += [{**doc, "docno": f"same-{doc['docno']}"} for doc in docs[:6]]  # ties
    frame = weigh(topics([3, 1]), [0.5, 0.0])
    index = int8(tmp_path / "x", docs)
    plain = MathAMRIndex(tmp_path / "plain").index(stored(index))
    for retriever in (index.colbert(num_results=9), index.doc_vn(36, num_results=9)):
        assert_ranked(retriever(frame), frame, stored(index), 9)
    for strategy in ("single_vector", "doc_vn", "colbert"):
        for exact in (True, False):
            options = {"num_results": 9, "exact": exact}
            found, true = (getattr(of, strategy)(**options)(frame) for of in (index, plain))
            pd.testing.assert_frame_equal(found, true)
    pd.testing.assert_frame_equal(index.scorer()(plain.colbert()(frame)), plain.scorer()(plain.colbert()(frame)))


def test_appending_deleting_and_compacting_leave_the_search_exact(tmp_path, documents, topics, assert_ranked):
    index = int8(tmp_path / "x", documents([2, 1, 4, 3]))
    index.indexer("append").index(documents([3, 2], name="e"))
    index.delete(["d1", "e0"])
    frame, before = topics([3]), stored(index)
    assert index.snapshot().meta.dtype == "int8"
    assert_ranked(index.colbert()(frame), frame, before, 9)
    index.compact()
    index.verify()
    for old, new in zip(before, stored(index), strict=True):
        assert np.array_equal(old["doc_embs"], new["doc_embs"])
    assert_ranked(index.colbert()(frame), frame, before, 9)


def test_rows_that_are_merged_keep_their_bytes_and_other_dtypes_are_converted(tmp_path, documents):
    docs = ten_lengths(documents)
    one = int8(tmp_path / "1", docs)
    assert folder_bytes(MathAMRIndex.merge(tmp_path / "2", one).path) == folder_bytes(one.path)
    plain = MathAMRIndex(tmp_path / "plain").index(docs)
    assert folder_bytes(MathAMRIndex.merge(tmp_path / "3", plain, dtype="int8").path) == folder_bytes(one.path)
    wide = MathAMRIndex.merge(tmp_path / "4", one, dtype="float32")
    assert folder_bytes(wide.path) == folder_bytes(MathAMRIndex(tmp_path / "5").index(stored(one)).path)


def test_a_row_needs_a_byte_for_each_number_and_four_for_its_scale(tmp_path, documents):
    sizes = []
    for documents_stored in (100, 1100):
        index = int8(tmp_path / str(documents_stored), documents([4] * documents_stored, d=96))
        part = index.snapshot().parts[0]
        assert not {"codes", "scales", "code_bounds", "document_vectors"} & set(part._arrays)
        sizes.append(len(b"".join(folder_bytes(index.path).values())))
    assert (sizes[1] - sizes[0]) / 1000 < 4 * (96 + 4) + 64  # and the docno, offsets, order and fingerprint


def test_formulas_are_ranked_by_the_stored_rows(tmp_path, documents, topics):
    docs = [{**doc, "formula_ids": [f"{doc['docno']}f"]} for doc in documents([2] * 30)]
    index = int8(tmp_path / "x", docs, MathAMRFormulaIndex)
    plain = MathAMRFormulaIndex.merge(tmp_path / "plain", index, dtype="float32")
    frame = topics([2]).assign(query_formula_ids=[["a"]], query_formula_id="a")
    for exact in (True, False):
        found, true = (of.retriever(exact=exact)(frame) for of in (index, plain))
        pd.testing.assert_frame_equal(found, true)


def test_codes_without_scales_and_numbers_without_codes_are_refused(tmp_path, documents):
    for dtype, name in (("int8", "row_scales"), ("float32", "code_bounds")):
        index = MathAMRIndex(tmp_path / dtype)
        index.indexer(dtype=dtype).index(documents([2, 3]))
        file = next(index.path.glob("part-*/arrays.safetensors"))
        content = file.read_bytes().replace(f'"{name}"'.encode(), f'"{name[:-1]}_"'.encode())
        file.write_bytes(content)
        with pytest.raises(DamagedError, match=f"has no {name}"):
            len(MathAMRIndex(index.path))
