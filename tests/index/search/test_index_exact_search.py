"""Exact and approximate search against the plainest loop."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.running import resources
from pyterrier_mathamr.index import MathAMRIndex, transformers
from pyterrier_mathamr.index.search import maxsim
from pyterrier_mathamr.index.search.maxsim import best_places
from pyterrier_mathamr.index.search.queries import QueryBatch

SHAPES = st.lists(st.integers(1, 7), min_size=1, max_size=40)


def pairs(frame: pd.DataFrame, qid: str) -> list[tuple[str, float]]:
    rows = frame[frame["qid"] == qid]
    return list(zip(rows["docno"], rows["score"], strict=True))


def assert_same_ranking(found: list[tuple[str, float]], true: list[tuple[str, float]]) -> None:
    assert [docno for docno, _ in found] == [docno for docno, _ in true]
    assert [score for _, score in found] == pytest.approx([score for _, score in true], abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(lengths=SHAPES, queries=st.lists(st.integers(1, 5), min_size=1, max_size=4), k=st.integers(1, 50))
def test_the_exact_search_returns_what_the_plain_loop_returns(
    tmp_path_factory, documents, topics, judge, lengths, queries, k
):
    docs, frame = documents(lengths), topics(queries)
    index = MathAMRIndex(tmp_path_factory.mktemp("h") / "x").index(docs)
    found = index.colbert(num_results=k)(frame)
    single = index.single_vector(num_results=k)(frame)
    last = [{"docno": doc["docno"], "doc_embs": doc["doc_embs"][-1:]} for doc in docs]
    for qid, query in zip(frame["qid"], frame["query_embs"], strict=True):
        assert_same_ranking(pairs(found, qid), judge(query, docs)[:k])
        assert_same_ranking(pairs(single, qid), judge(query[-1:], last)[:k])


@settings(max_examples=10, deadline=None)
@given(lengths=SHAPES, k=st.integers(1, 10), candidates=st.integers(1, 20))
def test_two_stages_rank_the_first_stage_s_best_by_maxsim(
    tmp_path_factory, documents, topics, judge, lengths, k, candidates
):
    docs, frame = documents(lengths), topics([3])
    index = MathAMRIndex(tmp_path_factory.mktemp("h") / "x").index(docs)
    found = index.doc_vn(candidates, num_results=k)(frame)
    query = frame["query_embs"][0]
    last = [{"docno": doc["docno"], "doc_embs": doc["doc_embs"][-1:]} for doc in docs]
    chosen = {docno for docno, _ in judge(query[-1:], last)[:candidates]}
    assert_same_ranking(pairs(found, "q0"), judge(query, [doc for doc in docs if doc["docno"] in chosen])[:k])


def test_negative_scores_stay_negative(tmp_path: Path):
    docs = [
        {"docno": "a", "doc_embs": np.array([[-0.6, -0.8]])},
        {"docno": "b", "doc_embs": np.array([[-1.0, 0.0], [0.0, -1.0]])},
    ]
    frame = pd.DataFrame({"qid": ["1"]}).assign(query_embs=[np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    # b: max(-1, 0) + max(0, -1) + max(-0.6, -0.8);  a: -0.6 - 0.8 - (0.36 + 0.64)
    assert_same_ranking(pairs(index.colbert()(frame), "1"), [("b", -0.6), ("a", -2.4)])


def test_equal_scores_are_ordered_by_docno_whatever_the_order_of_arrival(tmp_path: Path):
    names = ["10", "9", "é", "Z", "a", "中"]
    row = np.array([[0.6, 0.8]])
    frame = pd.DataFrame({"qid": ["1"]}).assign(query_embs=[row])
    index = MathAMRIndex(tmp_path / "x").index({"docno": name, "doc_embs": row} for name in names)
    assert index.colbert()(frame)["docno"].tolist() == ["10", "9", "Z", "a", "é", "中"]
    assert index.colbert(num_results=3)(frame)["docno"].tolist() == ["10", "9", "Z"]
    ranking = frame.merge(pd.DataFrame({"docno": names}), how="cross")
    assert index.scorer()(ranking)["docno"].tolist() == ["10", "9", "Z", "a", "é", "中"]


@pytest.mark.parametrize("cores", [1, 3])
def test_documents_in_many_blocks_and_shards_are_searched_as_one(
    part_rows, monkeypatch, tmp_path, documents, topics, judge, cores
):
    part_rows(37)
    monkeypatch.setattr(maxsim, "BLOCK_ROWS", 5)
    monkeypatch.setattr(maxsim, "_SHARED", 0)
    monkeypatch.setattr(resources, "usable_cores", lambda: cores)
    docs, frame = documents([1, 4, 9, 2, 30, 3, 3, 1, 8, 2, 6, 6, 12, 1, 5] * 3), topics([2, 6])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    assert len(index.snapshot().shards) > 3
    found = index.colbert(num_results=20)(frame)
    for qid, query in zip(frame["qid"], frame["query_embs"], strict=True):
        assert_same_ranking(pairs(found, qid), judge(query, docs)[:20])


def test_a_document_of_a_hundred_thousand_rows_is_scored_in_pieces(tmp_path: Path, documents, topics):
    docs = documents([100_000, 3])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    query = topics([4])
    best = (query["query_embs"][0] @ docs[0]["doc_embs"].T).max(axis=1).sum()
    assert pairs(index.colbert()(query), "q0")[0] == ("d0", pytest.approx(float(best), abs=1e-5))


def test_the_same_document_has_the_same_score_in_every_strategy_and_batch(tmp_path: Path, documents, topics):
    docs, frame = documents([3, 1, 7, 2, 5] * 40, d=32), topics([5, 3, 8], d=32)
    index = MathAMRIndex(tmp_path / "x").index(docs)
    together = index.colbert()(frame)
    apart = pd.concat([index.colbert()(frame.iloc[[i]]) for i in range(3)], ignore_index=True)
    pd.testing.assert_frame_equal(together, apart)
    pd.testing.assert_frame_equal(together, index.colbert(batch_size=2)(frame))
    pd.testing.assert_frame_equal(together, index.doc_vn(candidates=len(docs))(frame))
    shuffled = together.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(together, index.scorer()(shuffled).sort_values(["qid", "rank"], ignore_index=True))


def test_the_margin_of_the_scan_covers_its_rounding(tmp_path: Path, documents, topics):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 9, 4] * 50, d=32))
    snapshot, query = index.snapshot(), topics([13], d=32)["query_embs"][0]
    batch = QueryBatch(query, np.array([0, 13]))
    rows, offsets = snapshot.shards[0].field("all")
    scanned = maxsim.scan(rows, offsets, batch)[0]
    products = rows.astype(float) @ query.astype(float).T
    true = np.array([products[a:b].max(axis=0).sum() for a, b in itertools.pairwise(offsets)])
    bound = maxsim.float32_error(batch, snapshot.max_norm, 32)[0]
    assert 0 < np.abs(scanned - true).max() < bound < 1e-3


def test_weights_and_the_query_s_size_scale_the_score(index: MathAMRIndex, topics):
    frame = topics([3])
    plain = index.colbert()(frame)
    halved = index.colbert(normalise=True)(frame)
    assert halved["score"].tolist() == pytest.approx((plain["score"] / 3).tolist())
    only_last = index.colbert()(frame.assign(query_weights=[[0.0, 0.0, 1.0]]))
    last_alone = index.colbert()(frame.assign(query_embs=[frame["query_embs"][0][-1:]]))
    assert only_last["docno"].tolist() == last_alone["docno"].tolist()
    assert only_last["score"].tolist() == pytest.approx(last_alone["score"].tolist())


@pytest.mark.parametrize("strategy", ["single_vector", "doc_vn", "colbert"])
def test_the_approximate_search_of_a_small_index_finds_what_the_exact_one_finds(
    tmp_path: Path, documents, topics, strategy
):
    index = MathAMRIndex(tmp_path / "x").index(documents([3, 1, 4] * 30))
    frame = topics([4, 2])
    approximate = getattr(index, strategy)(num_results=5, exact=False)(frame)
    pd.testing.assert_frame_equal(approximate, getattr(index, strategy)(num_results=5)(frame))
    again = getattr(MathAMRIndex(index.path), strategy)(num_results=5, exact=False)(frame)
    pd.testing.assert_frame_equal(approximate, again)


def test_the_more_rows_are_taken_the_more_of_the_best_an_approximate_search_finds(tmp_path: Path, documents, topics):
    index = MathAMRIndex(tmp_path / "x").index(documents([3] * 500))
    frame = topics([4] * 8)
    best = index.colbert(num_results=10)(frame)[["qid", "docno"]]
    shares = []
    for hits in (2, 16, 128):
        found = index.colbert(exact=False, hits=hits, num_results=10)(frame)[["qid", "docno"]]
        shares.append(len(best.merge(found)) / len(best))
    assert shares[0] < 0.3 < shares[1] < 0.95 < shares[2]
    single = [index.single_vector(exact=how, num_results=10)(frame)[["qid", "docno"]] for how in (True, False)]
    assert len(single[0].merge(single[1])) > 0.95 * len(single[0])


def test_a_batch_of_queries_returns_what_it_freed_and_a_single_one_does_not(monkeypatch, index, topics):
    returned = []
    monkeypatch.setattr(transformers, "return_free_memory", lambda: returned.append(True))
    monkeypatch.setattr(transformers, "_MANY", 3)
    for count, times in ((1, 0), (3, 1)):
        index.colbert()(topics([2] * count))
        assert len(returned) == times


@given(scores=st.lists(st.integers(0, 6).map(float), max_size=30), k=st.integers(1, 40), seed=st.integers(0, 99))
def test_the_best_are_ordered_by_score_and_equal_ones_by_docno(scores, k, seed):
    docnos = np.random.default_rng(seed).permutation([f"d{i}" for i in range(len(scores))]).tolist()
    asked = []

    def read(places):
        asked.extend(places.tolist())
        return [docnos[place] for place in places.tolist()]

    found = best_places(np.array(scores), k, read)
    assert found.tolist() == sorted(range(len(scores)), key=lambda i: (-scores[i], docnos[i]))[:k]
    assert all(scores.count(scores[place]) > 1 for place in asked)
