"""Searching in Qdrant is searching in a folder: the same documents, order and scores."""

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr.index import (
    CollectionOptions,
    MathAMRFormulaIndex,
    MathAMRIndex,
    MathAMRIndexError,
    QdrantFormulaIndex,
)
from pyterrier_mathamr.index.qdrant import index as qdrant_search
from pyterrier_mathamr.index.search.maxsim import float32_error

same = pd.testing.assert_frame_equal


def test_every_strategy_gives_the_rankings_and_scores_of_an_index_in_a_folder(some, posts, judge_index, topics):
    frame = topics([3, 1, 5])
    some.index(posts)
    for k in (1, 20, 1000):
        for name in ("single_vector", "colbert", "doc_vn"):
            same(getattr(some, name)(num_results=k)(frame), getattr(judge_index, name)(num_results=k)(frame))
        same(some.doc_vn(candidates=k)(frame), judge_index.doc_vn(candidates=k)(frame))
    same(some.colbert(normalise=True)(frame), judge_index.colbert(normalise=True)(frame))
    weighted = topics([3, 2, 2]).assign(query_document_weight=[-2.0, 0.5, 3.0])
    weighted["query_weights"] = [[1.0, 0.0, 2.5], [0.2, 0.7], [0.0, 0.0]]
    for k in (5, 1000):
        same(some.colbert(num_results=k)(weighted), judge_index.colbert(num_results=k)(weighted))
        same(some.doc_vn(7, num_results=k)(weighted), judge_index.doc_vn(7, num_results=k)(weighted))
    for found in (some.colbert(exact=False, hnsw_ef=64)(frame), some.doc_vn(exact=False)(frame)):
        merged = found.merge(judge_index.colbert()(frame), on=["qid", "docno"])
        assert len(merged) == len(found) > 10
        assert merged["score_x"].equals(merged["score_y"])
    assert len(some.single_vector(exact=False)(frame)) > 10


def test_subsets_and_conditions_on_kept_columns_are_searched_exactly_as_in_a_folder(some, posts, tmp_path, topics):
    frame, keep = topics([3, 1]), ["year", "tags"]
    columns = [{"year": 2000 + i % 9, "tags": [["algebra"], ["topology", "algebra"], []][i % 3]} for i in range(70)]
    posts = [{**post, **own} for post, own in zip(posts, columns, strict=True)]
    judge_index = MathAMRIndex(tmp_path / "kept").indexer(keep=keep).index(posts)
    some.indexer(keep=keep).index(posts[:40])
    some.indexer("append").index(posts[40:])
    subset = pd.DataFrame([(f"q{i % 2}", post["docno"]) for i, post in enumerate(posts[10:])], columns=["qid", "docno"])
    for where in ("year >= 2003 & 'topology' in tags", "year in [2001, 2007] | tags == 'algebra'", "year == 2"):
        for more in ({}, {"subset": subset}, {"subset": ["d3", "tie07", "d12"]}):
            for name in ("colbert", "single_vector", "doc_vn"):
                options = {"where": where, "num_results": 5, **more}
                same(getattr(some, name)(**options)(frame), getattr(judge_index, name)(**options)(frame))
        ranked = judge_index.colbert()(frame)
        same(some.scorer(where=where)(ranked), judge_index.scorer(where=where)(ranked))
    kept = {row["docno"]: (row["year"], row["tags"]) for row in some.get_corpus_iter()}
    assert kept == {post["docno"]: (post["year"], post["tags"]) for post in posts}


def test_scorer_loader_explanation_and_corpus_equal_a_folder_s(some, posts, judge_index, topics):
    frame = topics([3, 2])
    some.index(posts)
    ranked = judge_index.colbert()(frame).sample(frac=1, random_state=1)
    same(some.scorer()(ranked), judge_index.scorer()(ranked))
    same(some.scorer(vectors="document")(ranked), judge_index.scorer(vectors="document")(ranked))
    same(some(frame), some.colbert()(frame))
    same(some(ranked), some.scorer()(ranked))
    negative = ranked.assign(query_weights=[[-1.0] * len(rows) for rows in ranked["query_embs"]])
    same(some.scorer()(negative), judge_index.scorer()(negative))
    loaded = some.vec_loader()(pd.DataFrame({"docno": ["d3", "d0", "d3"]}))
    for given, docno in zip(loaded["doc_embs"], loaded["docno"], strict=True):
        np.testing.assert_array_equal(given, posts[int(docno[1:])]["doc_embs"])
    query = frame.iloc[0]
    found, true = some.explain(query, "d4").parts, judge_index.explain(query, "d4").parts
    pd.testing.assert_frame_equal(found.drop(columns="system"), true.drop(columns="system"))
    assert "doc_model" not in next(some.get_corpus_iter())
    some.indexer("overwrite", model="a@1").index(posts)
    kept = {row["docno"]: row for row in some.get_corpus_iter()}
    assert {row["doc_model"] for row in kept.values()} == {"a@1"}
    assert kept.keys() == {post["docno"] for post in posts}
    assert kept["d4"]["formula_ids"] == ["f1"]
    np.testing.assert_array_equal(kept["tie07"]["doc_embs"], posts[3]["doc_embs"])


def test_scores_that_are_off_by_the_most_that_float32_can_be_change_nothing(
    monkeypatch, remote, posts, judge_index, topics
):
    index, frame, honest = remote().index(posts), topics([3, 4]), qdrant_search._listed
    rng = np.random.default_rng(0)
    queries = iter(frame["query_embs"].tolist() * 100)
    errors = [float(float32_error(qdrant_search.QueryBatch(q, np.array([0, len(q)])), 1.0, 8)[0]) for q in queries]

    def dishonest(snapshot, points):
        found = honest(snapshot, points)
        scores = found.scores + rng.choice([-1, 1], len(found.scores)) * min(errors)
        order = np.argsort(-scores)
        return qdrant_search.Hits(found.numbers[order], scores[order])

    monkeypatch.setattr(qdrant_search, "_listed", dishonest)
    for k in (1, 5, 6, 20):
        same(index.colbert(num_results=k)(frame), judge_index.colbert(num_results=k)(frame))


def test_a_list_is_made_longer_until_the_ties_that_it_cuts_are_all_seen(server, remote, posts, judge_index):
    # the query is tie's own first row: 31 documents share the best score, and the list of 2 + 16 cuts them
    frame = pd.DataFrame({"qid": ["q"]}).assign(query_embs=[posts[3]["doc_embs"][:1]])
    found = remote().index(posts).colbert(num_results=2)(frame)
    assert found["docno"].tolist() == ["d3", "tie00"]
    limits = [search["limit"] for name, body in server.requests if name == "query" for search in body["searches"]]
    assert limits == [18, 36]
    assert found["score"].tolist() == judge_index.colbert(num_results=2)(frame)["score"].tolist()


def test_exact_and_approximate_search_are_asked_for_as_such_and_negative_weights_refused(server, remote, posts, topics):
    index, frame = remote().index(posts), topics([2, 2])
    index.colbert()(frame)
    index.colbert(exact=False, hnsw_ef=77)(frame)
    exact, graph = (body["searches"][0]["params"] for name, body in server.requests if name == "query")
    assert (exact["exact"], exact["quantization"]["ignore"]) == (True, True)
    assert (graph["exact"], graph["hnsw_ef"]) == (False, 77)
    with pytest.raises(MathAMRIndexError, match=r"query 'q1': .* negative weight"):
        index.colbert()(frame.assign(query_weights=[[1.0, 0.0], [1.0, -0.1]]))


def test_formulas_are_ranked_as_in_a_folder(remote, server, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 5, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    rows[20:30] = rows[3]
    stream = [{"docno": f"p{i}", "doc_embs": of, "formula_ids": [f"f{i}a", f"f{i}b"]} for i, of in enumerate(rows)]
    visual = {"f3a": "v3"}
    index, judge = QdrantFormulaIndex("https://qdrant.test", "formulas"), MathAMRFormulaIndex(tmp_path / "f")
    index.indexer(visual_ids=visual).index(stream)
    judge.indexer(visual_ids=visual).index(stream)
    frame = pd.DataFrame({"qid": ["q"], "query_formula_id": ["x"]})
    frame = frame.assign(query_embs=[rows[3]], query_formula_ids=[["x", "y"]])
    for k in (1, 5, 100):
        same(index.retriever(num_results=k)(frame), judge.retriever(num_results=k)(frame))
    same(index(frame), judge(frame))
    vectors = {name: body["vectors"] for name, body in server.requests if name == "create"}
    assert list(vectors["create"]) == ["formula"]
    kept = {row["docno"]: (row["post_id"], row["visual_id"]) for row in index.get_corpus_iter()}
    assert kept["f3a"] == ("p3", "v3")
    assert len(kept) == 80


def test_how_a_collection_is_created_is_sent(server, remote, posts):
    options = CollectionOptions(shard_number=3, replication_factor=2, on_disk=True, quantise=True)
    remote().indexer(options=options).index(posts)
    body = next(body for name, body in server.requests if name == "create")
    assert (body["shard_number"], body["replication_factor"], body["on_disk_payload"]) == (3, 2, True)
    assert body["quantization_config"]["scalar"]["type"] == "int8"
    assert list(body["vectors"]) == ["doc", "all"]
    assert all(vector["on_disk"] and vector["distance"] == "Dot" for vector in body["vectors"].values())
    assert body["vectors"]["all"]["multivector_config"] == {"comparator": "max_sim"}
