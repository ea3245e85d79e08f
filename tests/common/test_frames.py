"""The DataFrame helpers: queries with holes, objects as columns, empty frames."""

import pickle

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr._common.frames import (
    MissingValueError,
    distinct_queries,
    documents,
    empty_output,
    encoded_values,
    first_values,
    is_missing,
    join_values,
    ordered_by_score,
    with_objects,
)


def encode_distinct(frame, column, name, encode):
    """As a transformer does it: encode the value of each query once, and join the results back."""
    return join_values(frame, name, encoded_values(frame, column, encode)[1])


RANKING = pd.DataFrame(
    {
        "qid": ["2", "1", "1", "2"],
        "docno": ["a", "b", "c", "d"],
        "query": [np.nan, "sum", None, "limit"],
    }
)


@pytest.mark.parametrize("value", [None, np.nan, float("nan"), pd.NA, pd.NaT])
def test_nothing_is_missing_in_all_its_spellings(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", ["", 0, 0.0, [], np.array([np.nan, 1.0]), np.zeros((0, 2)), {"a": 1}])
def test_an_empty_or_odd_value_is_still_a_value(value):
    assert not is_missing(value)


def test_the_first_value_that_is_there_is_taken_in_order_of_appearance():
    assert list(first_values(RANKING, "query").items()) == [("2", "limit"), ("1", "sum")]


def test_a_key_without_any_value_is_absent():
    frame = pd.DataFrame({"qid": ["1", "2"], "query": ["x", None]})
    assert first_values(frame, "query") == {"1": "x"}


def test_an_array_counts_as_a_value_and_stays_the_same_object():
    array = np.zeros((2, 3), dtype=np.float32)
    frame = with_objects(pd.DataFrame({"qid": ["1", "1"]}), query_embs=[None, array])
    assert first_values(frame, "query_embs")["1"] is array


def test_arrays_of_one_shape_are_cells_and_not_stacked():
    arrays = [np.full((2, 2), i, dtype=np.float32) for i in range(3)]
    frame = with_objects(pd.DataFrame({"docno": ["a", "b", "c"]}, index=[7, 5, 9]), doc_embs=arrays)
    assert frame["doc_embs"].dtype == object
    assert [cell is array for cell, array in zip(frame["doc_embs"], arrays, strict=True)] == [True] * 3
    assert list(frame.index) == [7, 5, 9]


def test_lists_of_one_length_are_cells_and_the_input_is_not_changed():
    before = pd.DataFrame({"docno": ["a", "b"]})
    after = with_objects(before, formula_ids=[["1", "2"], ["3", "4"]])
    assert after["formula_ids"].tolist() == [["1", "2"], ["3", "4"]]
    assert list(before.columns) == ["docno"]


def test_a_column_is_replaced_in_its_place_and_rows_of_one_label_keep_their_own():
    before = pd.DataFrame({"graph": ["a", "b"], "docno": ["1", "2"]}, index=[7, 7])
    after = with_objects(before, graph=[{1}, {2}], text="x")
    assert list(after.columns) == ["graph", "docno", "text"]
    assert after["graph"].tolist() == [{1}, {2}]
    after = with_objects(before, doc_embs=[{3}, {4}], text="x")
    assert after["doc_embs"].tolist() == [{3}, {4}]
    assert list(after.index) == [7, 7]


def test_a_column_of_wrong_length_is_refused():
    with pytest.raises(ValueError, match="ength"):
        with_objects(pd.DataFrame({"docno": ["a", "b"]}), graph=[1])


def test_each_distinct_query_is_encoded_once_and_joined_to_all_its_rows():
    calls = []

    def encode(values):
        calls.append(values)
        return [value.upper() for value in values]

    result = encode_distinct(RANKING, "query", "loud", encode)
    assert calls == [["limit", "sum"]]
    assert result["loud"].tolist() == ["LIMIT", "SUM", "SUM", "LIMIT"]
    assert result["docno"].tolist() == ["a", "b", "c", "d"]


def test_an_old_column_of_the_same_name_is_replaced():
    result = join_values(RANKING, "query", {"1": "one", "2": "two"})
    assert result["query"].tolist() == ["two", "one", "one", "two"]


def test_a_query_without_value_is_named():
    frame = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["x", None, np.nan]})
    with pytest.raises(MissingValueError, match="'2', '3'") as caught:
        encode_distinct(frame, "query", "loud", lambda values: values)
    assert caught.value.ids == ["2", "3"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_joining_names_the_keys_without_an_object():
    with pytest.raises(MissingValueError, match="1"):
        join_values(RANKING, "graph", {"2": object()})


def test_nothing_is_encoded_where_there_are_no_rows():
    def encode(values):
        raise AssertionError("called")

    result = encode_distinct(RANKING.iloc[:0], "query", "loud", encode)
    assert list(result.columns) == ["qid", "docno", "query", "loud"]
    assert len(result) == 0


def test_the_empty_frame_has_all_columns_with_their_dtypes():
    result = empty_output(pd.DataFrame(columns=["qid", "query"]), ["docno", "score", "rank"])
    assert list(result.columns) == ["qid", "query", "docno", "score", "rank"]
    assert (str(result["score"].dtype), str(result["rank"].dtype)) == ("float64", "int64")
    assert len(result) == 0


def test_a_column_that_is_there_already_stays_in_its_place():
    result = empty_output(pd.DataFrame(columns=["qid", "score", "docno"]), ["score", "rank"])
    assert list(result.columns) == ["qid", "score", "docno", "rank"]


def test_documents_of_a_frame_are_its_rows_with_values_of_python() -> None:
    frame = pd.DataFrame({"docno": ["a", "b"], "number": [1, 2], "text": ["x", None]}, index=[7, 7])
    found = list(documents(frame))
    assert [(row["docno"], row["number"]) for row in found] == [("a", 1), ("b", 2)]
    assert type(found[0]["number"]) is int
    assert found[0]["text"] == "x"
    assert is_missing(found[1]["text"])
    assert list(documents(frame.iloc[:0])) == list(documents(pd.DataFrame())) == []


def test_documents_of_another_iterable_are_itself() -> None:
    given = iter([{"docno": "a"}])
    assert documents(given) is given


def test_each_query_has_one_row_of_its_first_values() -> None:
    frame = pd.DataFrame(
        {"qid": ["2", "1", "2"], "query": [None, "x", "y"], "lang": ["de", "en", "fr"], "score": [1.0, 2.0, 3.0]}
    )
    found = distinct_queries(frame, ["docno", "score", "rank"])
    assert found.to_dict("list") == {"qid": ["2", "1"], "query": ["y", "x"], "lang": ["de", "en"]}
    assert found["query"].dtype == object  # filled
    alone = distinct_queries(frame.iloc[1:], [])
    assert alone.to_dict("list") == frame.iloc[1:].to_dict("list")
    assert list(alone.index) == [0, 1]


def test_what_a_ranking_says_of_its_documents_is_no_query() -> None:
    texts = {"text": "", "graph": None, "doc_embs": None, "title": "of topic", "body": "or document"}
    topics = pd.DataFrame({"qid": ["1"], **texts})
    assert list(distinct_queries(topics)) == list(topics)
    ranking = topics.assign(docno="d")
    assert list(distinct_queries(ranking)) == ["qid", "title", "body", "docno"]
    asked = pd.concat([ranking, ranking]).assign(query="sum")
    assert list(distinct_queries(asked)) == ["qid", "title", "body", "docno", "query"]
    assert list(distinct_queries(asked.assign(title=["a", "b"]))) == ["qid", "docno", "query"]
    assert list(distinct_queries(asked.assign(body=["a", None]))) == ["qid", "title", "body", "docno", "query"]


def test_scored_rows_keep_all_columns_whatever_their_names_and_the_index() -> None:
    ranking = pd.DataFrame({"qid": ["2", "1", "2"], "docno": ["b", "a", "a"], "_query": ["x", "y", "z"]})
    ranking.index = pd.Index([7, 7, 7], name="qid")
    found = ordered_by_score(ranking, pd.Series([1.0, 2.0, 1.0]))
    expected = {"qid": ["2", "2", "1"], "docno": ["a", "b", "a"], "_query": ["z", "x", "y"]}
    assert found.to_dict("list") == {**expected, "score": [1.0, 1.0, 2.0], "rank": [0, 1, 0]}


def test_ids_of_an_empty_result_have_the_dtype_of_ids() -> None:
    result = empty_output(pd.DataFrame(columns=["qid"]), ["docno", "post_id", "visual_id"])
    assert {str(dtype) for dtype in result.dtypes[1:]} == {str(pd.Series(["a"]).dtype)}


def test_a_text_or_number_for_all_rows_is_added_with_the_objects_of_each():
    frame = pd.DataFrame({"qid": ["1", "2"]}, index=[7, 9])
    result = with_objects(frame, a=[np.ones(2), None], by="model", weight=0.5)
    assert list(result.columns) == ["qid", "a", "by", "weight"]
    assert (result["by"].tolist(), result["weight"].tolist()) == (["model"] * 2, [0.5, 0.5])
    assert list(result.index) == [7, 9]
