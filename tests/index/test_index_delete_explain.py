import numpy as np
import pandas as pd
import pytest
from index_folders import contents
from index_scans import search_exact

from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex, QueryError
from pyterrier_mathamr.index.search import exact as exact_search
from pyterrier_mathamr.index.search.queries import QueryBatch
from pyterrier_mathamr.store import UnknownIdError


def docnos(index: MathAMRIndex) -> set[str]:
    return {doc["docno"] for doc in index.get_corpus_iter()}


GONE = ["d2", "d4", "d11", "d2"]


@pytest.fixture(params=[2, 7, 1000])
def pruned(request, part_rows, tmp_path, documents) -> tuple[MathAMRIndex, MathAMRIndex]:
    """An index of which some documents were deleted, and one that was built without them."""
    part_rows(request.param)
    docs = documents([2, 1, 5, 3, 1, 1, 4, 2, 2, 3, 1, 6])
    for i, doc in enumerate(docs):
        doc["formula_ids"] = [f"f{i}"]
    index = MathAMRIndex(tmp_path / "x").index(docs)
    index.delete(GONE)
    return index, MathAMRIndex(tmp_path / "y").index(doc for doc in docs if doc["docno"] not in GONE)


@pytest.mark.parametrize("bytes_pay", [True, False])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("strategy", ["single_vector", "doc_vn", "colbert"])
def test_every_search_finds_what_an_index_without_the_deleted_finds(
    monkeypatch, pruned, topics, strategy, exact, bytes_pay
):
    monkeypatch.setattr(exact_search, "_codes_pay", lambda *of: bytes_pay)
    frame = topics([3, 2, 5]).assign(query_document_weight=[0.5, -1.0, 0.0])
    for k in (1, 4, 9, 1000):
        found, plain = (getattr(index, strategy)(num_results=k, exact=exact)(frame) for index in pruned)
        pd.testing.assert_frame_equal(found, plain, check_exact=True)


def test_a_device_that_keeps_the_codes_leaves_the_deleted_out(pruned, topics):
    batch = QueryBatch(topics([3])["query_embs"][0], np.array([0, 3]))
    found = [search_exact(of.snapshot(), batch, 4, "all", "cpu")[0] for of in pruned]
    names = [of.snapshot().texts("docno", hits.numbers) for of, hits in zip(pruned, found, strict=True)]
    assert names[0] == names[1]
    assert found[0].scores.tobytes() == found[1].scores.tobytes()


def test_what_is_deleted_is_not_there_for_anything_that_takes_docnos(pruned, topics):
    index, plain = pruned
    assert len(index) == len(plain) == 9
    assert [doc["docno"] for doc in index.get_corpus_iter()] == [doc["docno"] for doc in plain.get_corpus_iter()]
    assert "d2" not in index
    assert "d3" in index
    gone = topics([2]).assign(docno="d2")
    for refused in (
        lambda: index.scorer()(gone),
        lambda: index.vec_loader()(gone[["docno"]]),
        lambda: index.explain(gone["query_embs"][0], "d2"),
        lambda: index.delete(["d3", "d2"]),
    ):
        with pytest.raises(UnknownIdError, match="'d2'"):
            refused()
    assert "d3" in index
    ranking = plain.colbert()(topics([2]))
    pd.testing.assert_frame_equal(index.scorer()(ranking), plain.scorer()(ranking), check_exact=True)
    query = topics([2])["query_embs"][0]
    pd.testing.assert_frame_equal(index.explain(query, "d9"), plain.explain(query, "d9"))


def test_compacting_frees_what_was_deleted_and_it_can_be_added_again(pruned, documents, topics):
    index, plain = pruned
    before = sum(map(len, contents(index.path).values()))
    index.compact()
    assert sum(map(len, contents(index.path).values())) < before
    rows = [sum(len(part["rows"]) for part in of.snapshot().parts) for of in pruned]
    assert rows[0] == rows[1]
    index.verify()
    back = [*documents([1, 5], seed=3, name="new"), {**documents([2], seed=4)[0], "docno": "d2"}]
    for of in pruned:
        of.indexer("append").index(back)
    frame = topics([3, 2])
    pd.testing.assert_frame_equal(index.colbert()(frame), plain.colbert()(frame), check_exact=True)


def test_a_document_that_was_deleted_can_be_added_again_before_its_bytes_are_freed(pruned, documents):
    index, _ = pruned
    new = {**documents([3], seed=9)[0], "docno": "d2"}
    index.indexer("append").index([new])
    (found,) = (doc for doc in index.get_corpus_iter() if doc["docno"] == "d2")
    np.testing.assert_array_equal(found["doc_embs"], new["doc_embs"])
    index.compact()
    assert len(index) == 10
    assert "d4" not in index


def test_an_index_that_was_compacted_is_that_which_is_built_without_the_deleted(tmp_path, documents):
    docs = documents([2, 1, 5, 3, 1, 1, 4])
    index = MathAMRIndex(tmp_path / "x")
    for start in range(0, 7, 2):
        index.indexer("append").index(docs[start : start + 2])
    index.delete(["d2", "d4"])
    index.compact()
    plain = MathAMRIndex(tmp_path / "y").index(doc for doc in docs if doc["docno"] not in GONE)
    arrays = [next(data for name, data in contents(of.path).items() if "arrays" in name) for of in (index, plain)]
    assert arrays[0] == arrays[1]


def test_formulas_that_were_deleted_are_not_found(tmp_path, documents, topics):
    docs = [{**doc, "formula_ids": [f"{doc['docno']}-f", ""]} for doc in documents([2, 3, 2, 4, 2])]
    index = MathAMRFormulaIndex(tmp_path / "x").index(docs)
    index.delete(["d1-f", "d3-f"])
    plain = MathAMRFormulaIndex(tmp_path / "y").index([docs[0], docs[2], docs[4]])
    frame = topics([2]).assign(query_formula_ids=[["a"]], query_formula_id="a")
    for exact in (True, False):
        found = index.retriever(exact=exact)(frame)
        pd.testing.assert_frame_equal(found, plain.retriever(exact=exact)(frame), check_exact=True)
    index.indexer("append").index([docs[1]])
    assert [row["docno"] for row in index.get_corpus_iter()] == ["d0-f", "d2-f", "d4-f", "d1-f"]


def test_an_unknown_docno_deletes_nothing(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    with pytest.raises(UnknownIdError, match="'d9'"):
        index.delete(["d0", "d9"])
    assert docnos(index) == {"d0", "d1"}


def test_parts_that_lose_nothing_stay_as_they_are(part_rows, tmp_path, documents):
    part_rows(2)
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 2, 2]))
    before = contents(index.path)
    index.delete(["d1"])
    after = contents(index.path)
    assert sorted({name.partition("/")[0] for name in after}) == ["part-000000", "part-000002", "pt_meta.json"]
    assert all(before[name] == data for name, data in after.items() if "/" in name)


def test_an_index_of_which_all_was_deleted_finds_nothing_and_takes_new_documents(tmp_path, documents, topics):
    index = MathAMRIndex(tmp_path / "x").index(documents([2, 1]))
    index.delete(["d0", "d1"])
    assert len(index) == 0
    assert index.built()
    for strategy in (index.single_vector(), index.doc_vn(), index.colbert(), index.colbert(exact=False)):
        found = strategy(topics([2]))
        assert list(found.columns) == ["qid", "query", "query_embs", "docno", "score", "rank"]
        assert found.empty
    index.indexer("append").index(documents([1], name="e"))
    assert docnos(index) == {"e0"}


def test_many_small_appends_are_compacted_into_one_part(tmp_path, documents, topics):
    docs, frame = documents([2, 1, 5, 3]), topics([3])
    index = MathAMRIndex(tmp_path / "x")
    for doc in docs:
        index.indexer("append").index([doc])
    before = index.colbert()(frame)
    assert len(index.snapshot().parts) == 4
    index.compact()
    assert len(index.snapshot().parts) == 1
    assert index.colbert()(frame).equals(before)


def test_an_explanation_names_the_nodes_that_met_and_sums_to_the_score(tmp_path):
    index = MathAMRIndex(tmp_path / "x")
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])  # a formula, a sentence, the document
    index.index([{"docno": "p1", "doc_embs": rows, "formula_ids": ["f1"]}, {"docno": "p2", "doc_embs": rows[:2]}])
    query = np.array([[0.0, 1.0], [0.8, 0.6], [1.0, 0.0]])
    found = index.explain(
        query, "p1", query_formula_ids=["q_1"], document_texts=["$x$", "A sentence.", "All."], query_texts=list("abc")
    )
    assert found["query_row"].tolist() == [0, 2, 1]
    assert found["similarity"].tolist() == pytest.approx([1.0, 1.0, 0.96])
    assert found["query_kind"].tolist() == ["formula", "document", "sentence"]
    assert found["document_kind"].tolist() == ["sentence", "formula", "document"]
    assert found["query_formula_id"].tolist() == ["q_1", "", ""]
    assert found["document_formula_id"].tolist() == ["", "f1", ""]
    assert found["document_text"].tolist() == ["A sentence.", "$x$", "All."]
    assert found["query_text"].tolist() == ["a", "c", "b"]
    frame = pd.DataFrame({"qid": ["1"]}).assign(query_embs=[query], query_weights=[[1.0, 0.5, 2.0]])
    weighted = index.explain(query, "p2", query_weights=[1.0, 0.5, 2.0])
    score = index.colbert()(frame).set_index("docno")["score"]["p2"]
    assert weighted["contribution"].sum() == pytest.approx(score)
    assert set(weighted["document_kind"]) == {"formula or sentence", "document"}


def test_an_explanation_of_what_does_not_fit_is_refused(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2]))
    with pytest.raises(UnknownIdError, match="'no'"):
        index.explain(np.ones((1, 8)), "no")
    with pytest.raises(QueryError, match="3 dimensions"):
        index.explain(np.ones((1, 3)), "d0")
    with pytest.raises(QueryError, match="query_weights"):
        index.explain(np.ones((1, 8)), "d0", query_weights=[1.0, 2.0])


def test_an_explanation_takes_the_names_of_nodes_from_their_graphs(tmp_path):
    """``x^2 = 2`` and two sentences: the graph says that the first row is the formula, and what each row reads."""
    graph = GraphBuilder()(pd.DataFrame({"qid": ["1"], "query": ["Solve $x^2 = 2$. I am lost."]}))
    graph = graph["query_graph"][0]
    rows = np.eye(4)
    index = MathAMRIndex(tmp_path / "x").index([{"docno": "p", "doc_embs": rows}])
    found = index.explain(rows, "p", query_graph=graph, document_graph=graph)
    texts = ["x^2 = 2", "Solve $x^2 = 2$.", "I am lost.", "Solve $x^2 = 2$. I am lost."]
    for side in ("query", "document"):
        assert found[f"{side}_kind"].tolist() == ["formula", "sentence", "sentence", "document"]
        assert found[f"{side}_text"].tolist() == texts
    without = index.explain(rows, "p")
    assert set(without["query_text"]) == set(without["document_text"]) == {""}
    assert list(without.columns) == list(found.columns)
    with pytest.raises(QueryError, match=r"document_graph has 1 formulas, 2 sentences .* has 1 rows"):
        index.indexer("append").index([{"docno": "one", "doc_embs": rows[:1]}]).explain(
            rows, "one", document_graph=graph
        )
