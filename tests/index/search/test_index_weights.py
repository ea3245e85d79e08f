"""Weights of query rows and of the documents' own product, in every strategy, against the plainest loop."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_scans import score_codes

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import MathAMRIndex, MathAMRIndexError
from pyterrier_mathamr.index.search import folder, int8, maxsim
from pyterrier_mathamr.index.search.queries import QueryBatch

LENGTHS = [1, 4, 2, 7, 3] * 12


def blended(query, weights, blend, docs) -> list[tuple[str, float]]:
    """S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc, one product at a time; ties by docno."""
    scores = []
    for doc in docs:
        rows = doc["doc_embs"].astype(float)
        best = [max(float(np.dot(q.astype(float), row)) for row in rows) for q in query]
        total = sum(w * b for w, b in zip(weights, best, strict=True))
        total += blend * float(query[-1].astype(float) @ rows[-1])
        scores.append((doc["docno"], float(np.float32(total))))
    return sorted(scores, key=lambda found: (-found[1], found[0]))


def weigh(frame: pd.DataFrame, blends: list[float], seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    weights = pd.Series([rng.uniform(-1, 3, len(rows)) for rows in frame["query_embs"]], dtype=object)
    return frame.assign(query_weights=weights, query_document_weight=blends)


def assert_ranked(found: pd.DataFrame, frame: pd.DataFrame, docs, k: int) -> None:
    for asked in frame.itertuples():
        true = blended(asked.query_embs, asked.query_weights, asked.query_document_weight, docs)[:k]
        rows = found[found["qid"] == asked.qid]
        assert rows["docno"].tolist() == [docno for docno, _ in true]
        assert rows["score"].tolist() == pytest.approx([score for _, score in true], abs=2e-6)


@pytest.mark.parametrize("codes_pay", [True, False])
@pytest.mark.parametrize("block", [4096, 5])
@pytest.mark.parametrize("k", [1, 7, 1000])
def test_every_scan_finds_what_brute_force_finds_with_a_document_blend(
    part_rows, monkeypatch, tmp_path, documents, topics, codes_pay, block, k
):
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: codes_pay)
    part_rows(60, d=16)
    monkeypatch.setattr(maxsim, "BLOCK_ROWS", block)
    monkeypatch.setattr(int8, "PRODUCTS", 10 * block)
    docs, frame = documents([*LENGTHS, 13], d=16), weigh(topics([3, 1, 5], d=16), [2.5, -1.0, 0.0])
    found = MathAMRIndex(tmp_path / "x").index(docs).colbert(num_results=k)(frame)
    assert_ranked(found, frame, docs, k)


def test_all_strategies_and_the_scorer_give_a_document_the_same_blended_score(tmp_path, documents, topics):
    docs, frame = documents(LENGTHS), weigh(topics([3, 2]), [4.0, 0.5])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    true = index.colbert()(frame)
    assert_ranked(true, frame, docs, 1000)
    for ranked in (index.doc_vn()(frame), index.scorer()(true)):
        pd.testing.assert_frame_equal(ranked[["qid", "docno", "score"]], true[["qid", "docno", "score"]])
    some = index.colbert(exact=False)(frame).merge(true, on=["qid", "docno"])
    assert len(some) > 100
    assert some["score_x"].equals(some["score_y"])


def test_without_maxsim_the_blend_is_the_single_vector_and_without_both_all_is_zero(index, topics):
    frame = topics([3, 2]).assign(query_weights=[[0.0] * 3, [0.0] * 2])
    single = index.single_vector()(frame)
    alone = index.colbert()(frame.assign(query_document_weight=1.0))
    assert alone["docno"].tolist() == single["docno"].tolist()
    assert alone["score"].tolist() == pytest.approx(single["score"].tolist())
    assert (index.colbert()(frame)["score"] == 0).all()
    scored = index.scorer(vectors="document")(single)
    assert scored["score"].tolist() == single["score"].tolist()


def test_the_division_by_the_query_s_rows_divides_the_blend_too(index, topics):
    frame = weigh(topics([4]), [3.0])
    plain, divided = index.colbert()(frame), index.colbert(normalise=True)(frame)
    assert divided["docno"].tolist() == plain["docno"].tolist()
    assert divided["score"].tolist() == pytest.approx((plain["score"] / 4).tolist(), abs=1e-6)


def test_a_query_without_a_weight_of_its_own_counts_no_blend(index, topics):
    frame = topics([2, 3])
    some = index.colbert()(frame.assign(query_document_weight=[1.5, np.nan]))
    both = [index.colbert()(frame.iloc[[i]]) for i in range(2)]
    assert some[some["qid"] == "q1"]["score"].tolist() == both[1]["score"].tolist()
    assert some[some["qid"] == "q0"]["score"].tolist() != both[0]["score"].tolist()


@pytest.mark.parametrize("value", [np.inf, "much"])
def test_a_blend_that_is_no_number_is_refused_naming_the_query(index, topics, value):
    with pytest.raises(MathAMRIndexError, match="query 'q1': query_document_weight"):
        index.colbert()(topics([2, 3]).assign(query_document_weight=pd.Series([1.0, value], dtype=object)))


def test_a_scorer_compares_all_rows_or_the_document_s(index):
    with pytest.raises(ConfigError, match="vectors"):
        index.scorer(vectors="doc")
    assert index.scorer(vectors="document") != index.scorer()


def test_an_explanation_counts_the_weights_and_the_product_of_the_documents(index, topics):
    frame = weigh(topics([3]), [2.0])
    found = index.explain(frame, "d3")
    score = index.colbert()(frame).set_index("docno")["score"]["d3"]
    assert found.score == pytest.approx(score, abs=1e-5)
    product = found.parts[(found.parts["query_row"] == 2) & (found.parts["document_row"] == 4)]
    own = frame["query_weights"][0][2] if len(found.parts) == 3 else 0.0  # both terms may be of these two vectors
    assert product["weight"].tolist() == pytest.approx([2.0 + own])
    assert index.explain(topics([3]), "d3").parts["weight"].tolist() == [1.0] * 3


@settings(max_examples=20, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    queries=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    d=st.sampled_from((2, 8, 31, 32)),
    seed=st.integers(0, 1000),
)
def test_scores_of_both_scans_are_within_their_stated_errors(lengths, queries, d, seed):
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((sum(lengths), d)) * rng.uniform(0.01, 3, d)).astype(np.float32)
    offsets, bounds = np.cumsum([0, *lengths]), np.cumsum([0, *queries])
    asked = QueryBatch(
        rng.standard_normal((sum(queries), d)).astype(np.float32),
        bounds,
        rng.uniform(-1, 2, sum(queries)),
        rng.uniform(-20, 20, len(queries)),
    )
    products = rows.astype(float) @ asked.rows.astype(float).T
    best = np.array([products[a:b].max(axis=0) for a, b in itertools.pairwise(offsets)])
    true = np.add.reduceat(best * asked.weights, bounds[:-1], axis=1)
    true += products[offsets[1:] - 1][:, bounds[1:] - 1] * asked.document_weights
    as_bytes, scales, of_rows = int8.encode_rows(rows)
    coded = int8.encode_queries(asked, scales, of_rows)
    assert (np.abs(score_codes(as_bytes, offsets, coded, asked).T - true) <= coded.errors).all()
    found = maxsim.scan(rows, offsets, asked).T
    longest = float(np.linalg.norm(rows, axis=1).max())
    assert (np.abs(found - true) <= maxsim.float32_error(asked, longest, d)).all()


@settings(max_examples=12, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=30),
    queries=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    k=st.integers(1, 40),
    blend=st.floats(-5, 5),
)
def test_retrievers_of_any_corpus_find_what_the_plain_loop_finds(
    tmp_path_factory, documents, topics, lengths, queries, k, blend
):
    docs, frame = documents(lengths), weigh(topics(queries), [blend] * len(queries))
    index = MathAMRIndex(tmp_path_factory.mktemp("h") / "x").index(docs)
    assert_ranked(index.colbert(num_results=k)(frame), frame, docs, k)
    assert_ranked(index.doc_vn(len(docs), num_results=k)(frame), frame, docs, k)
