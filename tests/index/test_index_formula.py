"""The index of formulas."""

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import MissingValueError
from pyterrier_mathamr.index import EmbeddingError, MathAMRFormulaIndex, MathAMRIndex, MathAMRIndexError
from pyterrier_mathamr.posts import TITLE_FORMULA
from pyterrier_mathamr.store import OtherArtifactError

ROWS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]], np.float32)
POSTS = [
    {"docno": "p1", "doc_embs": ROWS[[0, 1, 3]], "formula_ids": ["f1", "f2"]},
    {"docno": "p2", "doc_embs": ROWS[[2, 3]], "formula_ids": ["f3"]},
    {"docno": "p3", "doc_embs": ROWS[[3]], "formula_ids": []},
]


@pytest.fixture
def formulas(tmp_path):
    index = MathAMRFormulaIndex(tmp_path / "formulas")
    index.indexer(visual_ids={"f1": "v1", "f3": "v3"}).index(POSTS)
    return index


@pytest.fixture
def topic():
    frame = pd.DataFrame({"qid": ["B.1"], "query": ["$x$"], "query_formula_id": ["q_2"]})
    return frame.assign(query_embs=[ROWS[[3, 1, 2]]], query_formula_ids=[["q_1", "q_2"]])


def test_formulas_are_ranked_by_the_row_of_the_formula_that_is_asked_for(formulas, topic):
    found = formulas.retriever()(topic)
    # q_2 is row 1, (0.6, 0.8): f2 is itself, f3 0.8, f1 0.6; the sentence and document rows are not there
    assert found["docno"].tolist() == ["f2", "f3", "f1"]
    assert found["score"].tolist() == pytest.approx([1.0, 0.8, 0.6])
    assert found["post_id"].tolist() == ["p1", "p2", "p1"]
    assert found["visual_id"].tolist() == ["", "v3", "v1"]
    assert found["rank"].tolist() == [0, 1, 2]
    assert set(topic.columns) < set(found.columns)
    pd.testing.assert_frame_equal(formulas(topic), found)
    pd.testing.assert_frame_equal(formulas.retriever(exact=False)(topic), found)


@pytest.mark.parametrize(
    ("given", "indexed"),
    [
        (["", "f1", "f1", "f2"], {"p1#0": 0, "f1": 1, "f2": 3}),  # without an id, and twice
        (["f1", TITLE_FORMULA, TITLE_FORMULA], {"f1": 0}),  # in the title, which belongs to the question
    ],
)
def test_each_formula_of_a_post_is_indexed_once_with_an_id(tmp_path, given, indexed):
    post = {"docno": "p1", "doc_embs": ROWS, "formula_ids": given}
    found = list(MathAMRFormulaIndex(tmp_path / "x").index([post]).get_corpus_iter())
    assert [row["docno"] for row in found] == list(indexed)
    np.testing.assert_array_equal([row["formula_vec"] for row in found], ROWS[list(indexed.values())])


@pytest.mark.parametrize("shard_rows", [1, 1 << 19])
def test_of_a_formula_in_two_posts_the_first_place_counts_and_the_other_is_named(tmp_path, part_rows, shard_rows):
    part_rows(shard_rows, d=2)
    posts = [
        {"docno": "p1", "doc_embs": ROWS, "formula_ids": ["f1", "f2"]},
        {"docno": "p2", "doc_embs": ROWS[::-1], "formula_ids": ["f3", "f1"]},
    ]
    with pytest.warns(MathAMRWarning, match="1 formulas occurred again and were left out; .*: f1"):
        index = MathAMRFormulaIndex(tmp_path / "x").index(posts)
    found = {row["docno"]: row for row in index.get_corpus_iter()}
    assert {name: row["post_id"] for name, row in found.items()} == {"f1": "p1", "f2": "p1", "f3": "p2"}
    np.testing.assert_array_equal(found["f1"]["formula_vec"], ROWS[0])


def test_an_existing_formula_keeps_its_place_when_others_are_added(formulas):
    with pytest.warns(MathAMRWarning, match="f2"):
        formulas.indexer("append").index([{**POSTS[0], "docno": "p9", "formula_ids": ["f9", "f2"]}])
    found = {row["docno"]: row["post_id"] for row in formulas.get_corpus_iter()}
    assert len(found) == 4
    assert found["f9"] == "p9"
    assert found["f2"] != "p9"


def test_more_formulas_than_rows_or_none_said_is_refused_naming_the_post(tmp_path):
    index = MathAMRFormulaIndex(tmp_path / "x")
    for ids, reason in ((["a", "b", "c"], "3 formula_ids but only 2 rows"), (None, "no formula_ids")):
        with pytest.raises(EmbeddingError, match=reason) as caught:
            index.index([{"docno": "p1", "doc_embs": ROWS[:2], "formula_ids": ids}])
        assert caught.value.docno == "p1"
    assert not list(tmp_path.iterdir())


def test_a_formula_that_is_not_among_the_query_s_is_refused_naming_the_query(formulas, topic):
    with pytest.raises(MathAMRIndexError, match=r"query 'B\.1': formula 'q_7' is not among its formulas: q_1, q_2"):
        formulas.retriever()(topic.assign(query_formula_id="q_7"))
    with pytest.raises(MathAMRIndexError, match="number 1, but query_embs has 1 rows"):
        formulas.retriever()(topic.assign(query_embs=[ROWS[:1]]))
    with pytest.raises(MissingValueError, match=r"B\.1"):
        formulas.retriever()(topic.assign(query_formula_ids=np.nan))


def test_an_index_of_one_kind_is_not_opened_as_the_other(formulas):
    with pytest.raises(OtherArtifactError, match="formulas"):
        len(MathAMRIndex(formulas.path))
    with pytest.raises(OtherArtifactError):
        MathAMRIndex(formulas.path).indexer("overwrite").index([{"docno": "d", "doc_embs": ROWS}])
    assert len(formulas) == 3


def test_formula_indexes_are_merged(tmp_path, formulas):
    other = MathAMRFormulaIndex(tmp_path / "y").index([{**POSTS[0], "docno": "p9", "formula_ids": ["f8", "f9"]}])
    merged = MathAMRFormulaIndex.merge(tmp_path / "z", formulas, other)
    assert [row["docno"] for row in merged.get_corpus_iter()] == ["f1", "f2", "f3", "f8", "f9"]
    assert [row["visual_id"] for row in merged.get_corpus_iter()] == ["v1", "", "v3", "", ""]


def test_an_index_without_formulas_is_an_error(tmp_path, formulas):
    post = {"docno": "p", "doc_embs": ROWS, "formula_ids": []}
    with pytest.warns(MathAMRWarning, match="the index is empty: none of 1 posts has formula_ids"):
        index = MathAMRFormulaIndex(tmp_path / "b").index([post])
    assert len(index) == 0
    assert len(formulas.indexer("append").index([{**post, "docno": "q"}])) == 3  # and no warning
