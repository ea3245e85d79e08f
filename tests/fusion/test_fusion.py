"""Fusion by standard scores: values by hand, several systems, and the columns of queries and rankings."""

from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.fusion import ZScoreFusion, ranked, standard_scores
from pyterrier_mathamr.sparse import BM25Index

LEFT = pd.DataFrame({"qid": ["1"] * 3, "docno": ["a", "b", "c"], "score": [30.0, 20.0, 10.0]})
RIGHT = pd.DataFrame({"qid": ["1"] * 2, "docno": ["b", "d"], "score": [0.9, 0.1]})
TOP = (3 / 2) ** 0.5  # the standardized score of the first of three equally spaced ones


def fuse_rankings(left: pd.DataFrame, right: pd.DataFrame, weight: float, most: int = 1000) -> pd.DataFrame:
    return ranked(standard_scores([left, right]), (1 - weight, weight), most)


def test_scores_are_standardized_and_an_absent_document_gets_the_lowest() -> None:
    fused = fuse_rankings(LEFT, RIGHT, 0.25).set_index("docno").score
    assert fused["a"] == pytest.approx(0.75 * TOP - 0.25)
    assert fused["b"] == pytest.approx(0.25)
    assert fused["c"] == pytest.approx(-0.75 * TOP - 0.25)
    assert fused["d"] == pytest.approx(-0.75 * TOP - 0.25)
    assert fuse_rankings(LEFT, RIGHT, 0.25).docno.tolist() == ["a", "b", "c", "d"]
    for weight, first in ((0.0, "a"), (1.0, "b")):  # it is the right side's
        assert fuse_rankings(LEFT, RIGHT, weight, 1)[["docno", "rank"]].to_numpy().tolist() == [[first, 0]]


def test_one_result_is_not_nan_and_a_query_found_by_one_side_keeps_that_sides_order() -> None:
    one = pd.DataFrame({"qid": ["1"], "docno": ["a"], "score": [5.0]})
    assert fuse_rankings(one, one, 0.5).score.tolist() == [0.0]
    nothing = RIGHT.iloc[:0]
    assert fuse_rankings(LEFT, nothing, 0.5).docno.tolist() == ["a", "b", "c"]
    assert fuse_rankings(nothing, LEFT, 0.5).docno.tolist() == ["a", "b", "c"]


def test_docnos_read_as_numbers_equal_the_other_ranking_s() -> None:
    left = LEFT.assign(docno=["1", "2", "10"], title=["one", "two", "ten"])
    right = RIGHT.assign(docno=["2", "3"], title=["two", "three"])
    numbers = [ranking.assign(docno=ranking["docno"].astype(int)) for ranking in (left, right)]
    topics = pd.DataFrame({"qid": ["1"]})
    expected = ZScoreFusion(left, right)(topics)  # type: ignore[arg-type]
    assert sorted(expected["docno"]) == ["1", "10", "2", "3"]
    for first, second in ((numbers[0], right), (left, numbers[1]), numbers):
        pd.testing.assert_frame_equal(ZScoreFusion(first, second)(topics), expected)  # type: ignore[arg-type]
        of_stages = ZScoreFusion(*map(pt.Transformer.from_df, (first, second)))
        pd.testing.assert_frame_equal(of_stages(topics), expected)
        pd.testing.assert_frame_equal(fuse_rankings(first, second, 0.5), fuse_rankings(left, right, 0.5))


def test_queries_keep_their_order_and_columns(tmp_path: Path) -> None:
    documents = [{"docno": "1", "text": "odd prime"}, {"docno": "2", "text": "prime"}, {"docno": "3", "text": "odd"}]
    index = BM25Index(tmp_path / "i").index(documents)
    queries = pd.DataFrame({"qid": ["9", "1"], "query": ["odd", "prime"], "tags": ["x", "y"]})
    results = ZScoreFusion(index.retriever(), index.retriever(k1=0.5), weight=0.3)(queries)
    assert results.columns.tolist() == ["qid", "query", "tags", "docno", "score", "rank"]
    assert results.qid.drop_duplicates().tolist() == ["9", "1"]
    assert results[results.qid == "1"].docno.tolist() == ["2", "1"]
    assert results[results.qid == "1"].tags.tolist() == ["y", "y"]


def test_refuses_what_it_cannot_do() -> None:
    one = BM25Index("unbuilt").retriever()
    with pytest.raises(ConfigError, match="weight"):
        ZScoreFusion(one, one, weight=1.2)
    with pytest.raises(ConfigError, match="systems"):
        ZScoreFusion()
    for weight in (0.5, [1.0], [1.0, -1.0, 0.0], "even"):
        with pytest.raises(ConfigError, match="weight"):
            ZScoreFusion(one, one, one, weight=weight)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="weight"):
        ZScoreFusion(one, one).set_parameter("weight", 2.0)
    with pytest.raises(pt.validate.InputValidationError):
        ZScoreFusion(one, one)(LEFT)


class Fixed(pt.Transformer):  # type: ignore[misc]
    """Returns the rows of a table whose qid is asked for; needs ``query``."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        pt.validate.query_frame(inp, ["query"])
        return inp.merge(self.table, on="qid")


def test_three_systems_are_fused_with_a_weight_each() -> None:
    third = pd.DataFrame({"qid": ["1"] * 2, "docno": ["c", "e"], "score": [7.0, 5.0]})
    systems = [Fixed(table) for table in (LEFT, RIGHT, third)]
    topics = pd.DataFrame({"qid": ["1"], "query": ["x"]})
    found = ZScoreFusion(*systems, weight=[1.0, 2.0, 4.0])(topics).set_index("docno").score
    assert found.to_dict() == pytest.approx(
        {"c": -TOP - 2 + 4, "e": -TOP - 2 + 4 * -1, "a": TOP - 2 - 4, "b": 0 + 2 - 4, "d": -TOP - 2 - 4}
    )
    assert list(found.index) == ["c", "b", "a", "d", "e"]
    even = ZScoreFusion(*systems)(topics).set_index("docno").score
    assert even["c"] == pytest.approx((-TOP - 1 + 1) / 3)


def test_columns_that_all_systems_add_are_kept_and_others_are_not() -> None:
    left = LEFT.assign(post_id=["pa", "pb", "pc"], visual_id=["va", "vb", "vc"], only="left")
    right = RIGHT.assign(visual_id=["vb", "vd"], post_id=["pb", "pd"], query_graph=["q", "q"])
    left = left.assign(query_graph="p")
    topics = pd.DataFrame({"qid": ["1"], "query": ["x"], "lang": ["en"]})
    fusion = ZScoreFusion(Fixed(left), Fixed(right))
    found = fusion(topics)
    assert list(found.columns) == [
        "qid", "query", "lang", "docno", "post_id", "visual_id", "query_graph", "score", "rank"
    ]  # fmt: skip
    assert dict(zip(found["docno"], found["post_id"], strict=True)) == {"a": "pa", "b": "pb", "c": "pc", "d": "pd"}
    assert set(found["query_graph"]) == {"p"}  # a query has one, from the first system
    assert pt.inspect.transformer_outputs(fusion, list(topics.columns)) == list(found.columns)


def test_a_query_in_several_rows_is_searched_once_and_one_that_finds_nothing_keeps_its_columns() -> None:
    topics = pd.DataFrame({"qid": ["1", "1"], "query": [None, "x"], "lang": ["en", None]})
    found = ZScoreFusion(Fixed(LEFT), Fixed(RIGHT))(topics)
    assert found["docno"].is_unique
    assert set(found["lang"]) == {"en"}
    nothing = ZScoreFusion(Fixed(LEFT), Fixed(RIGHT))(pd.DataFrame({"qid": ["2"], "query": ["x"]}))
    assert list(nothing.columns) == ["qid", "query", "docno", "score", "rank"]
    assert [str(nothing[name].dtype) for name in ("score", "rank")] == ["float64", "int64"]
    assert len(nothing) == 0
    assert ZScoreFusion(Fixed(LEFT), Fixed(RIGHT))([]) == []


class OfColumns(pt.Transformer):  # type: ignore[misc]
    """Finds one document for queries with some columns."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        pt.validate.query_frame(inp, list(self.columns), context=self)
        return inp.assign(docno="d", score=1.0, rank=0)


def test_systems_that_read_other_columns_of_a_topic_are_fused() -> None:
    topics = pd.DataFrame({"qid": ["1"], "latex": ["x"], "title": ["t"], "body": ["b"]})
    fusion = ZScoreFusion(OfColumns("latex"), OfColumns("title", "body"))
    assert set(fusion(topics)["docno"]) == {"d"}
    assert pt.inspect.transformer_outputs(fusion, list(topics.columns)) == list(fusion(topics).columns)
