"""The time of a query has its encoding."""

import time

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr.experiments.measuring import TimedPipeline, time_queries

TOPICS = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["a", "b", "c"]})


class Counting(pt.Transformer):
    """Counts its calls, and takes a moment."""

    def __init__(self, column: str, milliseconds: float = 0) -> None:
        self.column, self.milliseconds, self.calls = column, milliseconds, 0

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        self.calls += 1
        time.sleep(self.milliseconds / 1000)
        return topics.assign(**{self.column: 1})


def test_a_query_takes_its_encoding_and_its_search() -> None:
    encode, search = Counting("query_embs", 20), Counting("score")
    table = time_queries({"plain": TimedPipeline(search), "dense": TimedPipeline(search, encode)}, TOPICS).set_index(
        "name"
    )
    assert table["queries"].tolist() == [3, 3]
    assert table.loc["plain", "encoding ms"] == 0
    assert table.loc["dense", "encoding ms"] >= 20
    sums = table["encoding ms"] + table["search ms"]
    assert table["ms per query"].tolist() == pytest.approx(sums.tolist())
    assert table.loc["dense", "p50 ms"] >= 20


def test_systems_that_share_an_encoder_encode_each_query_once() -> None:
    encode, searches = Counting("query_embs"), [Counting("score"), Counting("score")]
    ways = {str(number): TimedPipeline(search, encode) for number, search in enumerate(searches)}
    table = time_queries(ways, TOPICS, most=2)
    assert encode.calls == 3  # the first query once more, so that files are open
    assert [search.calls for search in searches] == [3, 3]
    assert table["encoding ms"].nunique() == 1


def test_no_topics_give_no_rows() -> None:
    assert time_queries({"plain": TimedPipeline(Counting("score"))}, TOPICS.head(0)).empty
