"""Rows stored as int8 or int4 with a scale for each: nothing else is kept, and every search is exact for them."""

import numpy as np
import pandas as pd
import pytest
from folder_bytes import folder_bytes

from pyterrier_mathamr import Processes
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex, ShardedIndex
from pyterrier_mathamr.index.search import folder
from pyterrier_mathamr.store import DamagedError, UnfinishedJobError

both = pytest.mark.parametrize("dtype", ["int8", "int4"])


def coded(dtype, path, docs, kind=MathAMRIndex):
    index = kind(path)
    index.indexer(dtype=dtype).index(docs)
    return index


def stored(index):
    return [{**doc, "docno": doc["docno"]} for doc in index.get_corpus_iter()]


def ten_lengths(documents):
    """Documents whose rows have lengths from a thousandth to a thousand."""
    docs = documents([1, 3, 2, 5, 1, 4] * 5)
    return [{**doc, "doc_embs": doc["doc_embs"] * np.float32(10.0 ** (i % 7 - 3))} for i, doc in enumerate(docs)]


def test_a_row_comes_back_within_half_a_step_of_its_own_scale(tmp_path, documents):
    docs = ten_lengths(documents)
    for doc, found in zip(docs, coded("int8", tmp_path / "x", docs).get_corpus_iter(), strict=True):
        step = np.abs(doc["doc_embs"]).max(axis=1, keepdims=True) / 127
        assert found["doc_embs"].dtype == np.float32
        assert (np.abs(found["doc_embs"] - doc["doc_embs"]) <= step * 0.51).all()


def test_a_row_of_four_bits_has_an_error_of_a_tenth_of_its_length_or_so(tmp_path, documents):
    docs = [{**doc, "doc_embs": 1000 * doc["doc_embs"]} for doc in documents([3, 2] * 50, d=128)]
    errors = []
    for doc, found in zip(docs, coded("int4", tmp_path / "x", docs).get_corpus_iter(), strict=True):
        errors += np.linalg.norm(found["doc_embs"] - doc["doc_embs"], axis=1).tolist()
    assert 95 < np.mean(errors) < 112  # the best possible with 15 steps for normally distributed numbers is 106
    assert max(errors) < 180


def test_four_bits_hold_whole_numbers_from_minus_seven_to_seven_exactly(tmp_path):
    row = np.array([[7, -7, 0, 1, -1, 2, 3, -4]], dtype=np.float32)
    index = coded("int4", tmp_path / "x", [{"docno": "d", "doc_embs": np.vstack([row, 2 * row[:, ::-1]])}])
    (found,) = index.get_corpus_iter()
    assert found["doc_embs"].tolist() == [row[0].tolist(), (2 * row[0, ::-1]).tolist()]


def test_four_bits_need_a_width_that_is_a_multiple_of_eight(tmp_path, documents):
    with pytest.raises(ConfigError, match="multiple of 8"):
        coded("int4", tmp_path / "x", documents([2], d=12))
    assert not (tmp_path / "x").exists()


@both
@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("shard_rows", [7, 1 << 19])
def test_every_strategy_finds_what_brute_force_finds_in_the_stored_rows(
    part_rows, tmp_path, documents, topics, weigh, assert_ranked, monkeypatch, shard_rows, codes, dtype
):
    part_rows(shard_rows)
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: codes)
    docs = ten_lengths(documents)
    docs += [{**doc, "docno": f"same-{doc['docno']}"} for doc in docs[:6]]  # ties
    frame = weigh(topics([3, 1]), [0.5, 0.0])
    index = coded(dtype, tmp_path / "x", docs)
    plain = MathAMRIndex(tmp_path / "plain").index(stored(index))
    for retriever in (index.colbert(num_results=9), index.doc_vn(36, num_results=9)):
        assert_ranked(retriever(frame), frame, stored(index), 9)
    for strategy in ("single_vector", "doc_vn", "colbert"):
        for exact in (True, False):
            options = {"num_results": 9, "exact": exact}
            found, true = (getattr(of, strategy)(**options)(frame) for of in (index, plain))
            pd.testing.assert_frame_equal(found, true)
    pd.testing.assert_frame_equal(index.scorer()(plain.colbert()(frame)), plain.scorer()(plain.colbert()(frame)))


@both
def test_appending_deleting_and_compacting_leave_the_search_exact(tmp_path, documents, topics, assert_ranked, dtype):
    index = coded(dtype, tmp_path / "x", documents([2, 1, 4, 3]))
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


@both
def test_rows_that_are_merged_keep_their_bytes_and_other_dtypes_are_converted(tmp_path, documents, dtype):
    docs = ten_lengths(documents)
    one = coded(dtype, tmp_path / "1", docs)
    assert folder_bytes(MathAMRIndex.merge(tmp_path / "2", one).path) == folder_bytes(one.path)
    plain = MathAMRIndex(tmp_path / "plain").index(docs)
    assert folder_bytes(MathAMRIndex.merge(tmp_path / "3", plain, dtype=dtype).path) == folder_bytes(one.path)
    wide = MathAMRIndex.merge(tmp_path / "4", one, dtype="float32")
    assert folder_bytes(wide.path) == folder_bytes(MathAMRIndex(tmp_path / "5").index(stored(one)).path)


@pytest.mark.parametrize(("dtype", "bits"), [("int8", 8), ("int4", 4)])
def test_a_row_needs_its_bits_for_each_number_and_four_bytes_for_its_scale(tmp_path, documents, dtype, bits):
    sizes = []
    for documents_stored in (100, 1100):
        index = coded(dtype, tmp_path / str(documents_stored), documents([4] * documents_stored, d=96))
        part = index.snapshot().parts[0]
        assert not {"codes", "scales", "code_bounds", "document_vectors"} & set(part._arrays)
        sizes.append(len(b"".join(folder_bytes(index.path).values())))
    assert (sizes[1] - sizes[0]) / 1000 < 4 * (96 * bits / 8 + 4) + 64  # and the docno, offsets, order and fingerprint


@both
def test_formulas_are_ranked_by_the_stored_rows(tmp_path, documents, topics, dtype):
    docs = [{**doc, "formula_ids": [f"{doc['docno']}f"]} for doc in documents([2] * 30)]
    index = coded(dtype, tmp_path / "x", docs, MathAMRFormulaIndex)
    plain = MathAMRFormulaIndex.merge(tmp_path / "plain", index, dtype="float32")
    frame = topics([2]).assign(query_formula_ids=[["a"]], query_formula_id="a")
    for exact in (True, False):
        found, true = (of.retriever(exact=exact)(frame) for of in (index, plain))
        pd.testing.assert_frame_equal(found, true)


def test_codes_without_scales_and_numbers_without_codes_are_refused(tmp_path, documents):
    for dtype, name in (("int8", "row_scales"), ("int4", "row_scales"), ("float32", "code_bounds")):
        index = MathAMRIndex(tmp_path / dtype)
        index.indexer(dtype=dtype).index(documents([2, 3]))
        file = next(index.path.glob("part-*/arrays.safetensors"))
        content = file.read_bytes().replace(f'"{name}"'.encode(), f'"{name[:-1]}_"'.encode())
        file.write_bytes(content)
        with pytest.raises(DamagedError, match=f"has no {name}"):
            len(MathAMRIndex(index.path))


@both
def test_a_scale_that_is_no_positive_number_is_refused(tmp_path, documents, topics, dtype):
    index = coded(dtype, tmp_path / "x", documents([2, 3]))
    (part,) = index.snapshot().parts
    scale = part["row_scales"][2].tobytes()
    file = next(index.path.glob("part-*/arrays.safetensors"))
    file.write_bytes(file.read_bytes().replace(scale, np.float32(np.nan).tobytes()))
    with pytest.raises(DamagedError, match="scale"):
        MathAMRIndex(index.path).colbert()(topics([1]))


@both
def test_rows_that_come_again_are_compared_as_their_codes_round_them(part_rows, tmp_path, documents, dtype):
    part_rows(4)
    docs = documents([5, 3])
    near, far = ([{**docs[0], "doc_embs": docs[0]["doc_embs"] * by}, docs[1]] for by in (1 + 1e-6, -1))

    def dying():
        yield docs[0]
        raise KeyboardInterrupt

    def resumed(of):
        MathAMRIndex(tmp_path / "x").indexer(dtype=dtype, resume=True).index(of)

    with pytest.raises(KeyboardInterrupt):
        resumed(dying())
    with pytest.raises(UnfinishedJobError, match="'d0'"):
        resumed(far)
    resumed(near)
    whole = coded(dtype, tmp_path / "whole", docs)
    assert stored(MathAMRIndex(tmp_path / "x"))[0]["doc_embs"].tolist() == stored(whole)[0]["doc_embs"].tolist()


@both
def test_parts_find_what_one_index_finds(tmp_path, documents, topics, dtype):
    docs = documents([2, 1, 4, 3, 5, 2])
    parts = [coded(dtype, tmp_path / str(i), docs[i::2]) for i in range(2)]
    together, one = ShardedIndex([part.path for part in parts], Processes(1)), coded(dtype, tmp_path / "x", docs)
    pd.testing.assert_frame_equal(together.colbert()(topics([3])), one.colbert()(topics([3])))
