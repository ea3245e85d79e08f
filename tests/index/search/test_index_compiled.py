"""The scan of codes by compiled code: its scores, its answers, and what happens without it."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_scans import score_codes, score_codes_compiled

from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.index.search import compiled, folder, int8
from pyterrier_mathamr.index.search.queries import QueryBatch

here = pytest.mark.skipif(
    compiled.compiled(32) is None, reason="there is no llvmlite, or the processor lacks AVX-512 VNNI"
)


def asked(rng: np.random.Generator, lengths: list[int], d: int, weighted: bool) -> QueryBatch:
    rows = rng.standard_normal((sum(lengths), d)).astype(np.float32)
    ends = np.cumsum([0, *lengths])
    if not weighted:
        return QueryBatch(rows, ends)
    return QueryBatch(rows, ends, rng.uniform(-1, 2, len(rows)), rng.uniform(-3, 3, len(lengths)))


@here
@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=20),
    queries=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    d=st.sampled_from((4, 8, 32, 36, 100, 128)),
    weighted=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_a_compiled_score_is_within_the_error_that_is_stated(lengths, queries, d, weighted, seed):
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((sum(lengths), d)) * rng.uniform(0.01, 3, d)).astype(np.float32)
    offsets = np.cumsum([0, *lengths])
    of = asked(rng, queries, d, weighted)
    codes, scales, bounds = int8.encode_rows(rows)
    coded = int8.encode_queries(of, scales, bounds)
    found = score_codes_compiled(codes, offsets, coded, of).T
    products = rows.astype(float) @ of.rows.astype(float).T
    best = np.array([products[a:b].max(axis=0) for a, b in itertools.pairwise(offsets)])
    true = np.add.reduceat(best * (1.0 if of.weights is None else of.weights), of.offsets[:-1], axis=1)
    if of.document_weights is not None:
        true += products[offsets[1:] - 1][:, of.offsets[1:] - 1] * of.document_weights
    assert (np.abs(found - true) <= coded.errors).all()


@here
@pytest.mark.parametrize("chunk", [compiled.CHUNK, compiled.TILE])
@pytest.mark.parametrize("around", [-1, 0, 1])
def test_documents_of_a_tile_and_of_a_chunk_have_the_scores_that_torch_finds(chunk, around):
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, chunk + around, 1, 5 * chunk + around])
    codes = rng.integers(-127, 128, (offsets[-1], 32)).astype(np.int8)
    codes[offsets[1:] - 1] = np.array([[127], [-127], [127]])  # the greatest number, in the last row
    of = QueryBatch(np.sign(rng.standard_normal((50, 32))).astype(np.float32), np.array([0, 16, 17, 50]))
    coded = int8.encode_queries(of, np.ones(32, dtype=np.float32), np.ones(2))
    assert score_codes_compiled(codes, offsets, coded, of) == pytest.approx(
        score_codes(codes, offsets, coded, of), rel=1e-5
    )


@here
@pytest.mark.parametrize("weighted", [True, False])
def test_answers_are_those_of_the_scan_by_torch(part_rows, monkeypatch, tmp_path, documents, topics, weighted):
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    monkeypatch.setattr(folder, "QUERY_ROWS", 20)
    part_rows(300, d=32)
    docs, frame = documents([1, 4, 2, 70, 3] * 30, d=32), topics([3, 1, 33, 16, 5], d=32)
    if weighted:
        weights = [np.linspace(-1, 2, len(rows)) for rows in frame["query_embs"]]
        frame = frame.assign(query_weights=weights, query_document_weight=[0.5, -1.0, 0.0, 2.0, 1.0])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    scans = []
    fill = compiled.CompiledScan.fill
    monkeypatch.setattr(compiled.CompiledScan, "fill", lambda *of: (scans.append(1), fill(*of)))
    found = index.colbert(num_results=12)(frame)
    assert scans
    monkeypatch.setattr(folder, "compiled", lambda dimensions: None)
    assert found.equals(index.colbert(num_results=12)(frame))


@here
def test_what_is_wrong_is_not_used(monkeypatch):
    assert compiled.compiled.__wrapped__(30) is None  # not a number of whole words
    monkeypatch.setattr(compiled, "_compile", lambda: lambda *of: None)
    assert compiled.compiled.__wrapped__(32) is None


@here
def test_a_processor_without_the_instruction_has_none(monkeypatch):
    import llvmlite.binding

    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: {"avx2": True})
    assert compiled._compile.__wrapped__() is None


def test_without_the_extra_torch_scans(monkeypatch, tmp_path, documents, topics, judge):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setattr(compiled, "_compile", compiled._compile.__wrapped__)
    monkeypatch.setattr(folder, "compiled", compiled.compiled.__wrapped__)
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    assert compiled.compiled.__wrapped__(32) is None
    docs, frame = documents([2, 9, 3], d=32), topics([4], d=32)
    found = MathAMRIndex(tmp_path / "x").index(docs).colbert()(frame)
    assert found["docno"].tolist() == [docno for docno, _ in judge(frame["query_embs"][0], docs)]
