"""The DataFrame helpers: queries with holes, objects as columns, empty frames."""

import pickle

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import listed
from pyterrier_mathamr._common.frames import (
    MissingValueError,
    documents,
    empty_output,
    encoded_values,
    first_values,
    is_missing,
    join_values,
    ordered_by_score,
    with_objects,
)

RANKING = pd.DataFrame(
    {"qid": ["2", "1", "1", "2"], "docno": ["a", "b", "c", "d"], "query": [np.nan, "sum", None, "limit"]}
)


def test_nothing_is_missing_in_all_its_spellings_and_an_empty_or_odd_value_is_a_value():
    assert all(map(is_missing, [None, np.nan, float("nan"), pd.NA, pd.NaT]))
    assert not any(map(is_missing, ["", 0, 0.0, [], np.array([np.nan, 1.0]), np.zeros((0, 2)), {"a": 1}]))


def test_the_first_value_of_each_key_is_taken_in_order_of_appearance_also_an_array():
    assert list(first_values(RANKING, "query").items()) == [("2", "limit"), ("1", "sum")]
    assert first_values(RANKING.iloc[:3], "query") == {"1": "sum"}  # a key without any value is absent
    array = np.zeros((2, 3), dtype=np.float32)
    frame = with_objects(pd.DataFrame({"qid": ["1", "1"]}), query_embs=[None, array])
    assert first_values(frame, "query_embs")["1"] is array


@pytest.mark.parametrize("same", ["arrays", "lists"])
def test_arrays_of_one_shape_and_lists_of_one_length_are_cells_and_not_stacked(same):
    values = [np.full((2, 2), i) if same == "arrays" else [i, i] for i in range(3)]
    before = pd.DataFrame({"docno": ["a", "b", "c"]}, index=[7, 5, 9])
    after = with_objects(before, cells=values)
    assert after["cells"].dtype == object
    assert [cell is value for cell, value in zip(after["cells"], values, strict=True)] == [True] * 3
    assert (list(after.index), list(before.columns)) == ([7, 5, 9], ["docno"])


def test_columns_are_added_or_replaced_in_their_place_also_where_rows_have_one_label():
    before = pd.DataFrame({"graph": ["a", "b"], "docno": ["1", "2"]}, index=[7, 7])
    after = with_objects(before, graph=[{1}, {2}], text="x", weight=0.5)
    assert list(after.columns) == ["graph", "docno", "text", "weight"]
    assert after[["graph", "text", "weight"]].values.tolist() == [[{1}, "x", 0.5], [{2}, "x", 0.5]]
    added = with_objects(before, doc_embs=[{3}, {4}], text="x")
    assert (added["doc_embs"].tolist(), list(added.index)) == ([{3}, {4}], [7, 7])
    with pytest.raises(ValueError, match="ength"):
        with_objects(before, graph=[1])


def test_each_distinct_query_is_encoded_once_and_joined_to_all_its_rows():
    calls = []

    def encode(values):
        calls.append(values)
        return [value.upper() for value in values]

    values, results = encoded_values(RANKING, "query", encode)
    assert (calls, values) == ([["limit", "sum"]], {"2": "limit", "1": "sum"})
    joined = join_values(RANKING, "query", results)
    assert joined["query"].tolist() == ["LIMIT", "SUM", "SUM", "LIMIT"]
    assert list(joined.columns) == list(RANKING.columns)
    none = RANKING.iloc[:0]
    assert encoded_values(none, "query", encode) == ({}, {})
    assert list(join_values(none, "loud", {}).columns) == ["qid", "docno", "query", "loud"]
    assert len(calls) == 1


def test_queries_without_a_value_are_named():
    frame = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["x", None, np.nan]})
    with pytest.raises(MissingValueError, match="2 qid: '2', '3'") as caught:
        encoded_values(frame, "query", lambda values: values)
    assert caught.value.ids == ["2", "3"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(MissingValueError, match="'1'"):
        join_values(RANKING, "graph", {"2": object()})
    assert listed([1, *["a" * 90] * 5]) == "1, " + ", ".join([f"'{'a' * 77}…'"] * 4) + ", …"


def test_the_empty_frame_has_all_columns_with_their_dtypes():
    result = empty_output(pd.DataFrame(columns=["qid", "score", "query"]), ["docno", "score", "rank", "post_id"])
    assert list(result.columns) == ["qid", "score", "query", "docno", "rank", "post_id"]
    assert (str(result["score"].dtype), str(result["rank"].dtype)) == ("float64", "int64")
    assert result["docno"].dtype == result["post_id"].dtype == pd.Series(["a"]).dtype


def test_documents_of_a_frame_are_its_rows_with_values_of_python_and_others_are_themselves() -> None:
    frame = pd.DataFrame({"docno": ["a", "b"], "number": [1, 2], "text": ["x", None]}, index=[7, 7])
    found = list(documents(frame))
    assert [(row["docno"], row["number"]) for row in found] == [("a", 1), ("b", 2)]
    assert type(found[0]["number"]) is int
    assert (found[0]["text"], is_missing(found[1]["text"])) == ("x", True)
    assert list(documents(frame.iloc[:0])) == list(documents(pd.DataFrame())) == []
    given = iter([{"docno": "a"}])
    assert documents(given) is given


def test_scored_rows_keep_all_columns_whatever_their_names_and_the_index() -> None:
    ranking = pd.DataFrame({"qid": ["2", "1", "2"], "docno": ["b", "a", "a"], "_query": ["x", "y", "z"]})
    ranking.index = pd.Index([7, 7, 7], name="qid")
    found = ordered_by_score(ranking, pd.Series([1.0, 2.0, 1.0]))
    expected = {"qid": ["2", "2", "1"], "docno": ["a", "b", "a"], "_query": ["z", "x", "y"]}
    assert found.to_dict("list") == {**expected, "score": [1.0, 1.0, 2.0], "rank": [0, 1, 0]}
