"""The scans of all documents: each is within the error that it states, and only one that is right is used."""

import itertools
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.index.backend import QueryBatch, ScaledRows, pack_codes
from pyterrier_mathamr.index.search import compiled, folder, int8, maxsim

here = pytest.mark.skipif(
    compiled.compiled(32) is None, reason="there is no llvmlite, or the processor lacks AVX-512 VNNI"
)
SCANS = ["float32", "int8 by torch", *(["int8 compiled"] if compiled.compiled(32) else [])]
SCANS += [f"{scan}, {stored}" for scan in SCANS[1:] for stored in ("row scales", "four bits")]


def asked(rng, lengths, d, weighted):
    rows, ends = rng.standard_normal((sum(lengths), d)).astype(np.float32), np.cumsum([0, *lengths])
    if not weighted:
        return QueryBatch(rows, ends)
    return QueryBatch(rows, ends, rng.uniform(-1, 2, len(rows)), rng.uniform(-20, 20, len(lengths)))


def scanned(scan, rows, offsets, queries):
    """Return the scores of one scan and the errors that it states."""
    if scan == "float32":
        longest = float(np.linalg.norm(rows, axis=1).max())
        return maxsim.scan(rows, offsets, queries), maxsim.float32_error(queries, longest, rows.shape[1])
    kept = stored(scan, rows)
    coding = coding_of(kept) if isinstance(kept, ScaledRows) else int8.Coding(*int8.encode_rows(rows))
    coded = int8.encode_queries(queries, coding.scales, coding.bounds)
    return by_codes(scan, coding, offsets, coded, queries), coded.errors


def stored(scan, rows):
    """Return the rows as an index stores them whose scan this is."""
    quantize = {"row scales": int8.scaled_rows, "four bits": int8.packed_rows}.get(scan.partition(", ")[2])
    return quantize(rows) if quantize else rows


def coding_of(rows):
    longest = float(np.linalg.norm(widened(rows), axis=1).max())
    return int8.Coding(rows.codes, np.ones(rows.shape[1], np.float32), np.array([0.0, longest]), rows.scales)


def widened(rows):
    return maxsim.widened(rows, np.empty(rows.shape, np.float32))


def by_codes(scan, coding, offsets, coded, queries):
    scores = np.empty((len(queries), len(offsets) - 1), dtype=np.float32)
    if scan.startswith("int8 compiled"):
        single = len(coding.codes) == scores.shape[1]
        function = compiled.compiled(len(coding.scales), coding.row_scales is not None, single, coding.packed)
        run = compiled.CompiledScan(function, coding, offsets, coded, compiled.Columns(queries))
    else:
        scales = None if coding.row_scales is None else torch.from_numpy(coding.row_scales)
        run = int8.CodeScan(torch.from_numpy(coding.codes), scales, offsets, coded, queries, int8.Memory())
    run.fill(0, scores.shape[1], scores)
    return scores


def true_scores(rows, offsets, queries):
    products = rows.astype(float) @ queries.rows.astype(float).T
    best = np.array([products[a:b].max(axis=0) for a, b in itertools.pairwise(offsets)])
    true = np.add.reduceat(best * (1.0 if queries.weights is None else queries.weights), queries.offsets[:-1], axis=1)
    if queries.document_weights is not None:
        true += products[offsets[1:] - 1][:, queries.offsets[1:] - 1] * queries.document_weights
    return true.T


@settings(max_examples=40)
@given(
    scan=st.sampled_from(SCANS),
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=25) | st.integers(1, 40).map(lambda count: count * [1]),
    queries=st.lists(st.integers(1, 40), min_size=1, max_size=4) | st.lists(st.integers(1, 3), min_size=1, max_size=2),
    d=st.sampled_from((2, 3, 4, 8, 31, 32, 36, 64, 100, 128)),
    scale=st.floats(-6, 6),
    weighted=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_score_is_within_the_stated_error(scan, lengths, queries, d, scale, weighted, seed):
    words = 8 if scan.endswith("four bits") else 4 if scan.startswith("int8 compiled") else 1  # numbers in whole words
    d = words * -(-d // words)
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((sum(lengths), d)) * rng.uniform(0.01, 3, d) * 10.0**scale).astype(np.float32)
    offsets, batch = np.cumsum([0, *lengths]), asked(rng, queries, d, weighted)
    found, errors = scanned(scan, rows, offsets, batch)
    assert (np.abs(found - true_scores(widened(stored(scan, rows)), offsets, batch)) <= errors[:, None]).all()


def test_the_errors_of_unit_rows_are_small_enough_to_select_by():
    rows = np.random.default_rng(0).standard_normal((5000, 32)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    query = QueryBatch(rows[:13], np.array([0, 13]))
    for scan, most in (("float32", 1e-3), ("int8 by torch", 13 * 0.02)):
        found, errors = scanned(scan, rows, np.arange(0, 5001, 5), query)
        assert 0 < np.abs(found - true_scores(rows, np.arange(0, 5001, 5), query)).max() < errors[0] < most


def test_a_dimension_may_be_always_zero():
    rows = np.array([[0.6, 0.0, 0.8], [0.0, 0.0, -1.0]], np.float32)
    codes, scales, bounds = int8.encode_rows(rows)
    assert codes.tolist() == [[127, 0, 102], [0, 0, -127]]
    assert np.isfinite(scales).all()
    assert bounds[0] < 1


@here
@pytest.mark.parametrize("chunk", [compiled.CHUNK, compiled.TILE])
@pytest.mark.parametrize(("width", "ends"), [(32, [0, 16, 17, 50]), (64, [0, 1]), (128, [0, 1, compiled.FEW])])
def test_documents_of_a_tile_and_of_a_chunk_have_the_scores_that_torch_finds(chunk, width, ends):
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, *itertools.chain.from_iterable((chunk + i, 1, 5 * chunk + i) for i in (-1, 0, 1))])
    codes = rng.integers(-127, 128, (offsets[-1], width)).astype(np.int8)
    codes[offsets[1:] - 1] = np.array(3 * [[127], [-127], [127]])  # the greatest number, in the last row
    of = QueryBatch(np.sign(rng.standard_normal((ends[-1], width))).astype(np.float32), np.array(ends))
    scales = rng.uniform(0.1, 1, len(codes)).astype(np.float32)
    for stored, row_scales in ((codes, None), (codes, scales), (pack_codes(codes // 16 * 16), scales)):
        coding = int8.Coding(stored, np.ones(width, dtype=np.float32), np.ones(2), row_scales)
        coded = int8.encode_queries(of, coding.scales, coding.bounds)
        one, other = (by_codes(scan, coding, offsets, coded, of) for scan in ("int8 compiled", "int8 by torch"))
        assert one == pytest.approx(other, rel=1e-5)


def test_blocks_of_any_size_give_the_same_scores(monkeypatch):
    rng = np.random.default_rng(0)
    rows, offsets = rng.standard_normal((400, 8)).astype(np.float32), np.array([0, 1, 2, 5, 8, 11, 31, 51, 151, 400])
    batch = QueryBatch(rows[:20] + 1, np.array([0, 3, 20]), None, np.array([0.5, -2.0]))
    scans = ("int8 by torch", "int8 by torch, row scales", "int8 by torch, four bits")
    whole = [scanned(scan, rows, offsets, batch)[0] for scan in scans]
    for made, best in ((1, 1), (100, 1), (1000, 500), (1000, 1 << 16)):
        monkeypatch.setattr(int8, "FEW_PRODUCTS", made)
        monkeypatch.setattr(int8, "BEST", best)
        for scan, scores in zip(scans, whole, strict=True):
            assert scanned(scan, rows, offsets, batch)[0] == pytest.approx(scores, rel=1e-5, abs=1e-5)


def test_rows_side_by_side_have_the_scores_of_rows_one_by_one(monkeypatch):
    rng = np.random.default_rng(0)
    rows, offsets, batch = (
        rng.standard_normal((40, 8)).astype(np.float32),
        np.arange(0, 41, 2),
        asked(rng, [3], 8, True),
    )
    for scan in ("int8 by torch", "int8 by torch, row scales", "int8 by torch, four bits"):
        monkeypatch.setattr(int8, "two_rows_pay", lambda dimensions: False)
        single = scanned(scan, rows, offsets, batch)[0]
        monkeypatch.setattr(int8, "two_rows_pay", lambda dimensions: True)
        assert scanned(scan, rows, offsets, batch)[0] == pytest.approx(single, rel=1e-6)


def test_the_greatest_products_are_found_in_every_way():
    for columns, length in itertools.product((1, 13, 16, 32, 64, 160), (1, 2, 3, 8, 17, 31)):
        made = np.random.default_rng(0).integers(-(2**20), 2**20, (5, length, columns), dtype=np.int32)
        out = torch.empty((5, columns), dtype=torch.int32)
        int8.greatest(torch.from_numpy(made), out, int8.Memory())
        assert np.array_equal(out.numpy(), made.max(axis=1))
        as_floats = made.astype(np.float32).reshape(5 * length, columns)
        assert np.array_equal(maxsim.greatest(as_floats, np.arange(6) * length), made.max(axis=1))


def test_only_a_product_of_torch_that_is_right_is_used(monkeypatch):
    def absent(*operands, **memory):
        raise NotImplementedError("no kernel for this CPU")

    monkeypatch.setattr(torch, "_int_mm", absent)
    assert int8.usable.__wrapped__(32) is False
    monkeypatch.setattr(torch, "_int_mm", lambda a, b, out: out.zero_())
    assert int8.usable.__wrapped__(32) is False
    codes = torch.randint(-127, 128, (40, 32), dtype=torch.int8)
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: torch.zeros((a.shape[0], b.shape[1]), dtype=torch.int32))
    product = int8.product_on.__wrapped__("cpu", 32)  # of a device
    np.testing.assert_array_equal(product(codes, codes.T).numpy(), codes.numpy().astype(int) @ codes.numpy().T)


@here
def test_only_a_compiled_function_that_is_right_is_used(monkeypatch):
    import llvmlite.binding

    assert compiled.compiled.__wrapped__(30) is None  # not a number of whole words
    with monkeypatch.context() as patch:
        patch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: {"avx2": True})
        assert compiled._compile.__wrapped__(False, False, False) is None
    monkeypatch.setattr(compiled, "_compile", lambda *of: lambda *of: None)
    assert compiled.compiled.__wrapped__(32) is None


def test_without_the_extra_torch_scans(monkeypatch, tmp_path, documents, topics, assert_ranked):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setattr(compiled, "_compile", compiled._compile.__wrapped__)
    monkeypatch.setattr(folder, "compiled", compiled.compiled.__wrapped__)
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    assert compiled.compiled.__wrapped__(32) is None
    docs, frame = documents([2, 9, 3], d=32), topics([4], d=32)
    assert_ranked(MathAMRIndex(tmp_path / "x").index(docs).colbert()(frame), frame, docs, 3)


def test_torch_s_threads_and_precision_are_left_as_they_were_and_do_not_touch_the_scan(
    monkeypatch, tmp_path, documents, topics
):
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    index, frame = MathAMRIndex(tmp_path / "x").index(documents([2, 1, 9] * 30, d=32)), topics([5, 2], d=32)
    true = index.colbert(num_results=9)(frame)
    torch.set_float32_matmul_precision("medium")
    try:
        assert index.colbert(num_results=9)(frame).equals(true)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(precision)
    assert torch.get_num_threads() == threads


def test_a_card_that_is_not_there_is_refused(monkeypatch, index):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert index.colbert(device="cuda:0") == index.colbert(device="cuda:0")
    for device in ("cuda:1", "tpu", 0):
        with pytest.raises(ConfigError, match="device"):
            index.colbert(device=device)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigError, match="torch finds 0 CUDA devices"):
        index.colbert(device="cuda")
