"""Every search of a folder against the plainest loop: by each scan, weighted or not, in parts, blocks and groups."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import best_places
from pyterrier_mathamr._common.running import resources
from pyterrier_mathamr.index import MathAMRIndex, MathAMRIndexError, indexing, transformers
from pyterrier_mathamr.index.backend import How, QueryBatch
from pyterrier_mathamr.index.search import folder, int8, maxsim

LENGTHS = [1, 4, 2, 7, 3, 70, 3, 1] * 8
SAME = pd.testing.assert_frame_equal


@pytest.fixture(params=["float32", "int8 by torch", "int8 compiled"])
def scan(request, monkeypatch):
    """The scan by which exact searches find their candidates; torch's where there is no compiled one."""
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: request.param != "float32")
    if request.param == "int8 by torch":
        monkeypatch.setattr(folder, "compiled", lambda *of: None)
    return request.param


@pytest.mark.parametrize(("d", "k", "weighted"), [(3, 7, True), (32, 1000, True), (32, 7, False)])
def test_every_scan_finds_what_brute_force_finds(
    scan, part_rows, monkeypatch, tmp_path, documents, topics, weigh, assert_ranked, d, k, weighted
):
    part_rows(300, d=d)
    for module, name, value in (
        *((folder, "QUERY_ROWS", 20), (folder, "_FEW", 16)),
        *((maxsim, "BLOCK_ROWS", 5), (maxsim, "_SHARED", 0)),
        *((int8, "PRODUCTS", 50), (int8, "FEW_PRODUCTS", 50)),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr("pyterrier_mathamr.index.parts._READ_ROWS", 20)
    docs, frame = documents(LENGTHS, d=d), topics([3, 1, 33, 16, 5], d=d)
    frame = weigh(frame, [2.5, -1.0, 0.0, 2.0, 1.0]) if weighted else frame
    found = MathAMRIndex(tmp_path / "x").index(docs).colbert(num_results=k)(frame)
    assert_ranked(found, frame, docs, k)


@settings(max_examples=10)
@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=40),
    queries=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    k=st.integers(1, 50),
    candidates=st.integers(1, 20),
    blend=st.one_of(st.none(), st.floats(-5, 5)),
)
def test_every_strategy_finds_what_the_plain_loop_finds(
    tmp_path_factory, documents, topics, weigh, judge, assert_ranked, lengths, queries, k, candidates, blend
):
    docs, plain = documents(lengths), topics(queries)
    frame = plain if blend is None else weigh(plain, [blend] * len(queries))
    index = MathAMRIndex(tmp_path_factory.mktemp("h") / "x").index(docs)
    assert_ranked(index.colbert(num_results=k)(frame), frame, docs, k)
    assert_ranked(index.doc_vn(len(docs), num_results=k)(frame), frame, docs, k)
    last = [{"docno": doc["docno"], "doc_embs": doc["doc_embs"][-1:]} for doc in docs]
    of_documents = plain.assign(query_embs=[rows[-1:] for rows in plain["query_embs"]])
    assert_ranked(index.single_vector(num_results=k)(frame), of_documents, last, k)
    found = index.doc_vn(candidates, num_results=k)(plain.iloc[:1])
    nearest = {docno for docno, _ in judge(of_documents["query_embs"][0], last)[:candidates]}
    assert_ranked(found, plain.iloc[:1], [doc for doc in docs if doc["docno"] in nearest], k)


@settings(max_examples=12)
@given(count=st.integers(1, 300), k=st.integers(1, 40), copies=st.integers(1, 5), seed=st.integers(0, 99))
def test_near_and_exact_ties_that_bytes_cannot_distinguish_are_ranked_right(
    tmp_path_factory, judge, count, k, copies, seed
):
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 1e-3, (1 + count // copies, 2)).repeat(copies, axis=0)[:count]
    rows = [np.stack([np.cos(of), np.sin(of)], axis=1).astype(np.float32) for of in angles]
    docs = [{"docno": f"d{i}", "doc_embs": of} for i, of in enumerate(rows)]
    snapshot = MathAMRIndex(tmp_path_factory.mktemp("ties") / "x").index(docs).snapshot()
    query = np.array([[1.0, 0.0], [0.6, 0.8]], np.float32)
    (hits,) = snapshot.select(QueryBatch(query, np.array([0, 2])), k, "all", How(device="cpu"))
    assert snapshot.texts("docno", hits.numbers) == [docno for docno, _ in judge(query, docs)[:k]]


@pytest.mark.parametrize("d", [3, 32])
def test_a_scan_of_codes_on_a_device_finds_what_brute_force_finds(part_rows, tmp_path, documents, topics, judge, d):
    part_rows(60, d)
    docs, frame = documents([1, 4, 2, 7, 3] * 12, d=d), topics([3, 1, 5], d=d)
    snapshot = MathAMRIndex(tmp_path / "x").index(docs).snapshot()
    batch = QueryBatch(np.concatenate(list(frame["query_embs"])), np.array([0, 3, 4, 9]), None, np.zeros(3))
    for k in (1, 1000):  # the second time the codes are there already
        found = snapshot.select(batch, k, "all", How(device="cpu"))
        for hits, query in zip(found, frame["query_embs"], strict=True):
            assert snapshot.texts("docno", hits.numbers) == [docno for docno, _ in judge(query, docs)[:k]]


@pytest.mark.parametrize(("compiled", "least"), [(True, 8), (False, 64)])
def test_codes_are_scanned_from_8_documents_a_result_and_by_torch_from_64(
    tmp_path, documents, monkeypatch, compiled, least
):
    snapshot = MathAMRIndex(tmp_path / "x").index(documents([1] * 128)).snapshot()
    monkeypatch.setattr(folder, "_compiled", lambda shard: compiled)
    monkeypatch.setattr(folder, "usable", lambda dimensions: True)
    assert [folder._codes_pay(snapshot, 128 // least + more) for more in (0, 1)] == [True, False]


def test_negative_scores_stay_negative(tmp_path):
    docs = [
        {"docno": "a", "doc_embs": np.array([[-0.6, -0.8]])},
        {"docno": "b", "doc_embs": np.array([[-1.0, 0.0], [0.0, -1.0]])},
    ]
    frame = pd.DataFrame({"qid": ["1"]}).assign(query_embs=[np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])])
    found = MathAMRIndex(tmp_path / "x").index(docs).colbert()(frame)
    # b: max(-1, 0) + max(0, -1) + max(-0.6, -0.8);  a: -0.6 - 0.8 - (0.36 + 0.64)
    assert found["docno"].tolist() == ["b", "a"]
    assert found["score"].tolist() == pytest.approx([-0.6, -2.4])


def test_equal_scores_are_ordered_by_docno_whatever_the_order_of_arrival(tmp_path):
    names, row = ["10", "9", "é", "Z", "a", "中"], np.array([[0.6, 0.8]])
    frame = pd.DataFrame({"qid": ["1"]}).assign(query_embs=[row])
    index = MathAMRIndex(tmp_path / "x").index({"docno": name, "doc_embs": row} for name in names)
    assert index.colbert()(frame)["docno"].tolist() == ["10", "9", "Z", "a", "é", "中"]
    assert index.colbert(num_results=3)(frame)["docno"].tolist() == ["10", "9", "Z"]
    ranking = frame.merge(pd.DataFrame({"docno": names}), how="cross")
    assert index.scorer()(ranking)["docno"].tolist() == ["10", "9", "Z", "a", "é", "中"]


@settings(max_examples=40)
@given(scores=st.lists(st.integers(0, 6).map(float), max_size=30), k=st.integers(1, 40), seed=st.integers(0, 99))
def test_the_best_are_ordered_by_score_and_only_equal_ones_are_read(scores, k, seed):
    docnos = np.random.default_rng(seed).permutation([f"d{i}" for i in range(len(scores))]).tolist()
    read = []

    def texts(places):
        read.extend(places.tolist())
        return [docnos[place] for place in places.tolist()]

    found = best_places(np.array(scores), k, texts)
    assert found.tolist() == sorted(range(len(scores)), key=lambda i: (-scores[i], docnos[i]))[:k]
    assert all(scores.count(scores[place]) > 1 for place in read)


@pytest.mark.parametrize("cores", [1, 3])
def test_threads_do_not_change_what_is_found(part_rows, monkeypatch, tmp_path, documents, topics, assert_ranked, cores):
    part_rows(37)
    monkeypatch.setattr(maxsim, "_SHARED", 0)
    for module in (resources, folder):
        monkeypatch.setattr(module, "usable_cores", lambda: cores)
    docs, frame = documents([1, 4, 9, 2, 30, 3, 3, 1, 8, 2, 6, 6, 12, 1, 5] * 3), topics([2, 6])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    assert len(index.snapshot().shards) > 3
    for pays in (True, False):
        monkeypatch.setattr(folder, "_codes_pay", lambda *of, pays=pays: pays)
        assert_ranked(index.colbert(num_results=20)(frame), frame, docs, 20)


def test_a_long_document_is_scored_in_pieces(scan, tmp_path, documents, topics):
    docs, query = documents([30_000, 3]), topics([4])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    best = (query["query_embs"][0] @ docs[0]["doc_embs"].T).max(axis=1).sum()
    found = index.colbert()(query)
    assert found["docno"][0] == "d0"
    assert found["score"][0] == pytest.approx(float(best), abs=1e-5)


def test_a_document_has_one_score_in_every_strategy_and_batch(tmp_path, documents, topics, weigh):
    docs, frame = documents([3, 1, 7, 2, 5] * 40, d=32), weigh(topics([5, 3, 8], d=32), [4.0, 0.5, 0.0])
    index = MathAMRIndex(tmp_path / "x").index(docs)
    together = index.colbert()(frame)
    SAME(together, pd.concat([index.colbert()(frame.iloc[[i]]) for i in range(3)], ignore_index=True))
    SAME(together, index.colbert(batch_size=2)(frame))
    SAME(together, index.doc_vn(candidates=len(docs))(frame))
    shuffled = together.sample(frac=1, random_state=0)
    SAME(together, index.scorer()(shuffled).sort_values(["qid", "rank"], ignore_index=True))
    some = index.colbert(exact=False)(frame).merge(together, on=["qid", "docno"])
    assert len(some) > 100
    assert some["score_x"].equals(some["score_y"])


def test_weights_scale_the_score(index, topics, weigh):
    frame = topics([3, 2])
    plain = index.colbert()(weigh(frame, [3.0, 1.0]))
    divided = index.colbert(normalise=True)(weigh(frame, [3.0, 1.0]))
    sizes = plain["qid"].map({"q0": 3, "q1": 2})
    assert divided["score"].tolist() == pytest.approx((plain["score"] / sizes).tolist(), abs=1e-6)
    zero = frame.assign(query_weights=[[0.0] * 3, [0.0] * 2])
    assert (index.colbert()(zero)["score"] == 0).all()
    single = index.single_vector()(zero)
    blend = index.colbert()(zero.assign(query_document_weight=1.0))  # nothing but the product of the documents
    assert blend["docno"].tolist() == single["docno"].tolist()
    assert blend["score"].tolist() == pytest.approx(single["score"].tolist())
    assert index.scorer(vectors="document")(single)["score"].tolist() == single["score"].tolist()
    assert index.scorer(vectors="document") != index.scorer()
    with pytest.raises(ConfigError, match="vectors"):
        index.scorer(vectors="doc")


def test_a_query_without_a_weight_has_no_blend(index, topics):
    frame = topics([2, 3])
    some = index.colbert()(frame.assign(query_document_weight=[1.5, np.nan]))
    both = [index.colbert()(frame.iloc[[i]]) for i in range(2)]
    assert some[some["qid"] == "q1"]["score"].tolist() == both[1]["score"].tolist()
    assert some[some["qid"] == "q0"]["score"].tolist() != both[0]["score"].tolist()


def test_a_blend_that_is_not_a_number_is_refused_naming_the_query(index, topics):
    for value in (np.inf, "much"):
        with pytest.raises(MathAMRIndexError, match="query 'q1': query_document_weight"):
            index.colbert()(topics([2, 3]).assign(query_document_weight=pd.Series([1.0, value], dtype=object)))


def test_an_explanation_counts_the_weights_and_the_product_of_the_documents(index, topics, weigh):
    frame = weigh(topics([3]), [2.0])
    found = index.explain(frame, "d3")
    score = index.colbert()(frame).set_index("docno")["score"]["d3"]
    assert found.score == pytest.approx(score, abs=1e-5)
    product = found.parts[(found.parts["query_row"] == 2) & (found.parts["document_row"] == 4)]
    own = frame["query_weights"][0][2] if len(found.parts) == 3 else 0.0  # both terms may be of these two vectors
    assert product["weight"].tolist() == pytest.approx([2.0 + own])
    assert index.explain(topics([3]), "d3").parts["weight"].tolist() == [1.0] * 3


@pytest.mark.parametrize("strategy", ["single_vector", "doc_vn", "colbert"])
def test_the_approximate_search_of_a_small_index_finds_what_the_exact_one_finds(tmp_path, documents, topics, strategy):
    index, frame = MathAMRIndex(tmp_path / "x").index(documents([3, 1, 4] * 30)), topics([4, 2])
    approximate = getattr(index, strategy)(num_results=5, exact=False)(frame)
    SAME(approximate, getattr(index, strategy)(num_results=5)(frame))
    SAME(approximate, getattr(MathAMRIndex(index.path), strategy)(num_results=5, exact=False)(frame))


@pytest.fixture(scope="module")
def large(tmp_path_factory, documents):
    return MathAMRIndex(tmp_path_factory.mktemp("large") / "x").index(documents([3] * 500))


@pytest.mark.parametrize("num_results", [150, 500, 5000])
def test_an_approximate_search_finds_as_many_documents_as_it_is_asked_for(large, topics, num_results):
    frame = topics([1, 1, 3])
    found = large.colbert(num_results=num_results, exact=False, hits=8)(frame)
    assert found.groupby("qid").size().tolist() == [min(num_results, 500)] * 3
    SAME(large.scorer()(found), found)
    assert len(large.single_vector(num_results=num_results, exact=False)(frame)) == len(found)


def test_the_more_rows_are_taken_the_more_of_the_best_an_approximate_search_finds(large, topics):
    index, frame = large, topics([4] * 8)
    best = index.colbert(num_results=10)(frame)[["qid", "docno"]]
    shares = []
    for hits in (2, 16, 128):
        found = index.colbert(exact=False, hits=hits, num_results=10)(frame)[["qid", "docno"]]
        shares.append(len(best.merge(found)) / len(best))
    assert shares[0] < 0.3 < shares[1] < 0.95 < shares[2]


def test_a_batch_of_queries_returns_what_it_freed_and_a_single_one_does_not(monkeypatch, index, topics):
    returned = []
    monkeypatch.setattr(transformers, "return_free_memory", lambda: returned.append(True))
    monkeypatch.setattr(transformers, "_MANY", 3)
    for count, times in ((1, 0), (3, 1)):
        index.colbert()(topics([2] * count))
        assert len(returned) == times


def test_rows_are_the_same_in_any_order_from_any_shard(tmp_path, monkeypatch, documents):
    docs = documents([1, 4, 2, 7, 3] * 40, d=4)
    monkeypatch.setattr(indexing, "PART_BYTES", 4 * 60 * 4)
    snapshot = MathAMRIndex(tmp_path / "x").index(docs).snapshot()
    by_docno = {doc["docno"]: doc["doc_embs"] for doc in docs}
    rng = np.random.default_rng(0)
    for numbers in ([], [7], *(rng.permutation(200)[:count] for count in (2, 60, 200)), np.arange(20, 90)):
        wanted = np.array(numbers, dtype=np.int64)
        rows, ends = snapshot.rows(wanted)
        assert snapshot.lengths(wanted).tolist() == np.diff(ends).tolist()
        for docno, (first, last) in zip(
            snapshot.texts("docno", wanted), itertools.pairwise(ends.tolist()), strict=True
        ):
            assert np.array_equal(rows[first:last], by_docno[docno])
