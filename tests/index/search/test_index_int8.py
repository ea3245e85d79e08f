"""The scan of int8 codes: its error bound, its products, and the rankings that it leads to."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_scans import score_codes

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import MathAMRIndex, indexing
from pyterrier_mathamr.index.backend import How
from pyterrier_mathamr.index.search import folder, int8, maxsim
from pyterrier_mathamr.index.search.queries import QueryBatch


def batch(rng: np.random.Generator, lengths: list[int], d: int, weighted: bool) -> QueryBatch:
    rows = rng.standard_normal((sum(lengths), d)).astype(np.float32)
    weights = rng.uniform(-1, 2, len(rows)) if weighted else None
    return QueryBatch(rows, np.cumsum([0, *lengths]), weights)


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    queries=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    d=st.sampled_from((2, 3, 8, 31, 32, 40)),
    scale=st.floats(-12, 12),
    weighted=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_a_score_from_bytes_is_within_its_stated_error(lengths, queries, d, scale, weighted, seed):
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((sum(lengths), d)) * rng.uniform(0.01, 3, d) * 10.0**scale).astype(np.float32)
    offsets = np.cumsum([0, *lengths])
    asked = batch(rng, queries, d, weighted)
    as_bytes, scales, bounds = int8.encode_rows(rows)
    coded = int8.encode_queries(asked, scales, bounds)
    found = score_codes(as_bytes, offsets, coded, asked).T
    products = rows.astype(float) @ asked.rows.astype(float).T
    best = np.array([products[a:b].max(axis=0) for a, b in itertools.pairwise(offsets)])
    weights = 1.0 if asked.weights is None else asked.weights
    true = np.add.reduceat(best * weights, asked.offsets[:-1], axis=1)
    assert (np.abs(found - true) <= coded.errors).all()


def test_the_error_of_unit_rows_is_small_enough_to_choose_by():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5000, 32)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    _, scales, bounds = int8.encode_rows(rows)
    query = QueryBatch(rows[:13], np.array([0, 13]))
    assert int8.encode_queries(query, scales, bounds).errors[0] < 13 * 0.02


def test_a_dimension_that_is_always_zero_is_no_trouble():
    rows = np.array([[0.6, 0.0, 0.8], [0.0, 0.0, -1.0]], np.float32)
    as_bytes, scales, bounds = int8.encode_rows(rows)
    assert as_bytes.tolist() == [[127, 0, 102], [0, 0, -127]]
    assert np.isfinite(scales).all()
    assert bounds[0] < 1


@pytest.mark.parametrize("by", ["compiled code", "torch", "numpy"])
@pytest.mark.parametrize(("k", "few"), [(1, 0), (7, 0), (7, 1 << 14), (1000, 1 << 14)])
def test_every_scan_finds_what_brute_force_finds(
    part_rows, monkeypatch, tmp_path, documents, topics, judge, by, k, few
):
    if by == "torch":
        monkeypatch.setattr(folder, "compiled", lambda dimensions: None)
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: by != "numpy")
    monkeypatch.setattr(folder, "_FEW", few)
    monkeypatch.setattr("pyterrier_mathamr.index.parts._READ_ROWS", 20)
    part_rows(60, d=16)
    docs, frame = documents([1, 4, 2, 7, 3] * 12, d=16), topics([3, 1, 5], d=16)
    found = MathAMRIndex(tmp_path / "x").index(docs).colbert(num_results=k)(frame)
    for qid, query in zip(frame["qid"], frame["query_embs"], strict=True):
        rows = found[found["qid"] == qid]
        true = judge(query, docs)[:k]
        assert rows["docno"].tolist() == [docno for docno, _ in true]
        assert rows["score"].tolist() == pytest.approx([score for _, score in true], abs=1e-6)


def test_near_ties_that_bytes_cannot_tell_apart_are_ranked_right(monkeypatch, tmp_path, judge):
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    angles = 1.0 + np.random.default_rng(3).permutation(300) * 1e-5
    docs = [
        {"docno": f"d{i}", "doc_embs": np.array([[np.cos(a), np.sin(a)]], np.float32)} for i, a in enumerate(angles)
    ]
    query = np.array([[1.0, 0.0], [0.6, 0.8]], np.float32)
    index = MathAMRIndex(tmp_path / "x").index(docs)
    hits = index.snapshot().select(QueryBatch(query, np.array([0, 2])), 10, "all", How())[0]
    assert index.snapshot().texts("docno", hits.numbers) == [docno for docno, _ in judge(query, docs)[:10]]


def test_a_long_document_is_scanned_in_pieces(monkeypatch, tmp_path, documents, topics):
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    docs, frame = documents([20_000, 2, 3]), topics([4])
    found = MathAMRIndex(tmp_path / "x").index(docs).colbert()(frame)
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: False)
    assert found.equals(MathAMRIndex(tmp_path / "x").colbert()(frame))


def test_many_queries_are_scanned_in_groups(monkeypatch, tmp_path, documents, topics):
    docs, frame = documents([3, 1, 4] * 20), topics([2, 5, 1, 9, 3])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    plain = index.colbert(num_results=6)(frame)
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    monkeypatch.setattr(folder, "QUERY_ROWS", 6)
    assert index.colbert(num_results=6)(frame).equals(plain)
    groups = list(QueryBatch(np.ones((20, 8), np.float32), np.array([0, 2, 7, 8, 17, 20])).of_rows(6))
    assert [np.diff(group.offsets).tolist() for group in groups] == [[2], [5, 1], [9], [3]]


def test_where_torch_has_no_integer_product_the_other_scan_is_used(monkeypatch):
    import torch

    def absent(*operands, **memory):
        raise NotImplementedError("no kernel for this CPU")

    monkeypatch.setattr(torch, "_int_mm", absent)
    assert int8.usable.__wrapped__(32) is False
    monkeypatch.setattr(torch, "_int_mm", lambda a, b, out: out.zero_())
    assert int8.usable.__wrapped__(32) is False  # a wrong answer


@pytest.mark.parametrize("d", [1, 2, 3, 32])
def test_an_integer_product_is_used_only_where_it_is_right(monkeypatch, d, tmp_path, documents, topics, judge):
    monkeypatch.setattr(folder, "CODES_PAY", 0)
    docs, frame = documents([2, 1, 3], d=d), topics([2], d=d)
    found = MathAMRIndex(tmp_path / "x").index(docs).colbert()(frame)
    assert found["docno"].tolist() == [docno for docno, _ in judge(frame["query_embs"][0], docs)]
    if d == 1:
        frame = frame.assign(query_embs=[np.array([[1.0], [0.5], [-2.0]], np.float32)])
        found = MathAMRIndex(tmp_path / "x").colbert()(frame)
        assert found["score"].tolist() == [score for _, score in judge(frame["query_embs"][0], docs)]


def test_the_number_of_torch_s_threads_is_left_as_it_was(monkeypatch, tmp_path, documents, topics):
    import torch

    before = torch.get_num_threads()
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    MathAMRIndex(tmp_path / "x").index(documents([2, 1])).colbert()(topics([2]))
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("d", [3, 8, 32])
@pytest.mark.parametrize("k", [1, 7, 1000])
def test_a_scan_of_codes_kept_on_a_device_finds_what_brute_force_finds(
    part_rows, tmp_path, documents, topics, judge, d, k
):
    part_rows(60, d)
    docs, frame = documents([1, 4, 2, 7, 3] * 12, d=d), topics([3, 1, 5], d=d)
    snapshot = MathAMRIndex(tmp_path / "x").index(docs).snapshot()
    batch = QueryBatch(np.concatenate(list(frame["query_embs"])), np.array([0, 3, 4, 9]), None, np.zeros(3))
    for _ in range(2):  # the second time the codes are there already
        found = snapshot.select(batch, k, "all", How(device="cpu"))
        for hits, query in zip(found, frame["query_embs"], strict=True):
            assert snapshot.texts("docno", hits.numbers) == [docno for docno, _ in judge(query, docs)[:k]]
    kept = [shard.kept("cpu", list) for shard in snapshot.shards]
    assert [tuple(codes.shape) for codes in kept] == [(len(s.part["codes"]) + 17, d + -d % 8) for s in snapshot.shards]


def test_a_device_without_integer_product_multiplies_bytes_exactly(monkeypatch):
    import torch

    codes_ = torch.randint(-127, 128, (40, 32), dtype=torch.int8)
    true = codes_.numpy().astype(int) @ codes_.numpy().astype(int).T
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: torch.zeros((a.shape[0], b.shape[1]), dtype=torch.int32))
    product = int8.product_on.__wrapped__("cpu", 32)
    np.testing.assert_array_equal(product(codes_, codes_.T).numpy(), true)


def test_the_precision_that_a_user_chose_for_torch_does_not_touch_the_scan(monkeypatch, tmp_path, documents, topics):
    import torch

    before = torch.get_float32_matmul_precision()
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    index, frame = MathAMRIndex(tmp_path / "x").index(documents([2, 1, 9] * 30, d=32)), topics([5, 2], d=32)
    true = index.colbert(num_results=9)(frame)
    torch.set_float32_matmul_precision("medium")
    try:
        assert index.colbert(num_results=9)(frame).equals(true)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_card_that_is_not_there_is_refused(monkeypatch, index):
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert index.colbert(device="cuda:0") == index.colbert(device="cuda:0")
    for device in ("cuda:1", "tpu", 0):
        with pytest.raises(ConfigError, match="device"):
            index.colbert(device=device)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigError, match="torch finds 0 CUDA devices"):
        index.colbert(device="cuda")


@pytest.mark.parametrize("columns", [16, 32, 160])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 17])
def test_the_greatest_products_are_found_whether_or_not_rows_are_paired(columns, length):
    import torch

    made = np.random.default_rng(0).integers(-(2**20), 2**20, (5, length, columns), dtype=np.int32)
    out = torch.empty((5, columns), dtype=torch.int32)
    int8.greatest(torch.from_numpy(made), out, int8.Memory())
    assert np.array_equal(out.numpy(), made.max(axis=1))


def test_blocks_of_any_size_give_the_same_scores(monkeypatch):
    rng = np.random.default_rng(0)
    rows, offsets = rng.standard_normal((400, 8)).astype(np.float32), np.array([0, 1, 2, 5, 8, 11, 31, 51, 151, 400])
    asked = QueryBatch(rows[:20] + 1, np.array([0, 3, 20]), None, np.array([0.5, -2.0]))
    as_bytes, scales, bounds = int8.encode_rows(rows)
    coded = int8.encode_queries(asked, scales, bounds)
    whole = score_codes(as_bytes, offsets, coded, asked)
    for made, best in ((1, 1), (100, 1), (1000, 500), (1000, 1 << 16)):
        monkeypatch.setattr(int8, "PRODUCTS", made)
        monkeypatch.setattr(int8, "BEST", best)
        found = score_codes(as_bytes, offsets, coded, asked)
        assert found == pytest.approx(whole, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("columns", [1, 13, 64, 100])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 16, 31])
def test_the_greatest_products_of_wide_and_of_narrow_queries_are_found(columns, length):
    products = np.random.default_rng(0).standard_normal((5 * length, columns))
    found = maxsim._best(products, np.arange(6) * length)
    assert np.array_equal(found, products.reshape(5, length, columns).max(axis=1))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 199), max_size=60, unique=True), st.booleans())
def test_rows_are_the_same_in_any_order_from_any_shard(tmp_path_factory, documents, numbers, ascending):
    docs = documents([1, 4, 2, 7, 3] * 40, d=4)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(indexing, "PART_BYTES", 4 * 60 * 4)
        snapshot = MathAMRIndex(tmp_path_factory.mktemp("read") / "x").index(docs).snapshot()
    wanted = np.array(sorted(numbers) if ascending else numbers, dtype=np.int64)
    rows, ends = snapshot.rows(wanted)
    by_docno = {doc["docno"]: doc["doc_embs"] for doc in docs}
    assert snapshot.lengths(wanted).tolist() == np.diff(ends).tolist()
    for docno, (first, last) in zip(snapshot.texts("docno", wanted), itertools.pairwise(ends.tolist()), strict=True):
        assert np.array_equal(rows[first:last], by_docno[docno])


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 300), k=st.integers(1, 40), copies=st.integers(1, 5), seed=st.integers(0, 99))
def test_what_is_settled_is_what_brute_force_finds_among_near_and_exact_ties(
    tmp_path_factory, judge, count, k, copies, seed
):
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 1e-3, (1 + count // copies, 2)).repeat(copies, axis=0)[:count]
    docs = [
        {"docno": f"d{i}", "doc_embs": np.stack([np.cos(of), np.sin(of)], axis=1).astype(np.float32)}
        for i, of in enumerate(angles)
    ]
    snapshot = MathAMRIndex(tmp_path_factory.mktemp("ties") / "x").index(docs).snapshot()
    query = np.array([[1.0, 0.0], [0.6, 0.8]], np.float32)
    hits = snapshot.select(QueryBatch(query, np.array([0, 2])), k, "all", How(device="cpu"))[0]
    assert snapshot.texts("docno", hits.numbers) == [docno for docno, _ in judge(query, docs)[:k]]
