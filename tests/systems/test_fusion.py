import pickle
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.systems import BM25Index, ZScoreFusion, fuse_rankings

LEFT = pd.DataFrame({"qid": ["1"] * 3, "docno": ["a", "b", "c"], "score": [30.0, 20.0, 10.0]})
RIGHT = pd.DataFrame({"qid": ["1"] * 2, "docno": ["b", "d"], "score": [0.9, 0.1]})
TOP = (3 / 2) ** 0.5  # the standardised score of the first of three equally spaced ones


def test_scores_are_standardised_and_an_absent_document_gets_the_lowest() -> None:
    fused = fuse_rankings(LEFT, RIGHT, 0.25).set_index("docno").score
    assert fused["a"] == pytest.approx(0.75 * TOP - 0.25)
    assert fused["b"] == pytest.approx(0.25)
    assert fused["c"] == pytest.approx(-0.75 * TOP - 0.25)
    assert fused["d"] == pytest.approx(-0.75 * TOP - 0.25)
    assert fuse_rankings(LEFT, RIGHT, 0.25).docno.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("weight", "first"), [(0.0, "a"), (1.0, "b")])
def test_the_weight_says_what_the_right_side_counts(weight: float, first: str) -> None:
    fused = fuse_rankings(LEFT, RIGHT, weight, num_results=1)
    assert fused[["docno", "rank"]].to_numpy().tolist() == [[first, 0]]


def test_one_result_and_equal_scores_give_no_nan() -> None:
    one = pd.DataFrame({"qid": ["1"], "docno": ["a"], "score": [5.0]})
    assert fuse_rankings(one, one, 0.5).score.tolist() == [0.0]


def test_a_query_found_by_one_side_only_keeps_that_sides_order() -> None:
    nothing = RIGHT.iloc[:0]
    assert fuse_rankings(LEFT, nothing, 0.5).docno.tolist() == ["a", "b", "c"]
    assert fuse_rankings(nothing, LEFT, 0.5).docno.tolist() == ["a", "b", "c"]


@pytest.fixture
def fusion(tmp_path: Path) -> ZScoreFusion:
    documents = [{"docno": "1", "text": "odd prime"}, {"docno": "2", "text": "prime"}, {"docno": "3", "text": "odd"}]
    index = BM25Index(tmp_path / "i").index(documents)
    return ZScoreFusion(index.retriever(), index.retriever(k1=0.5), weight=0.3)


def test_queries_keep_their_order_and_columns(fusion: ZScoreFusion) -> None:
    queries = pd.DataFrame({"qid": ["9", "1"], "query": ["odd", "prime"], "tags": ["x", "y"]})
    results = fusion(queries)
    assert results.columns.tolist() == ["qid", "query", "tags", "docno", "score", "rank"]
    assert results.qid.drop_duplicates().tolist() == ["9", "1"]
    assert results[results.qid == "1"].docno.tolist() == ["2", "1"]
    assert results[results.qid == "1"].tags.tolist() == ["y", "y"]


def test_cutoff_equality_and_pickling(fusion: ZScoreFusion) -> None:
    cut = (fusion % 1).compile()
    assert cut == ZScoreFusion(fusion.left, fusion.right, weight=0.3, num_results=1)
    assert pickle.loads(pickle.dumps(fusion)) == fusion
    assert hash(fusion) != hash(cut)
    queries = pd.DataFrame({"qid": ["1"], "query": ["prime"]})
    assert cut(queries).docno.tolist() == ["2"]


def test_refuses_what_it_cannot_do() -> None:
    one = BM25Index("unbuilt").retriever()
    with pytest.raises(ConfigError, match="weight"):
        ZScoreFusion(one, one, weight=1.2)
    with pytest.raises(ConfigError, match="num_results"):
        ZScoreFusion(one, one, num_results=0)
    with pytest.raises(pt.validate.InputValidationError):
        ZScoreFusion(one, one)(LEFT)


TestZScoreFusion = pt.testing.transformer_test_class(
    lambda: ZScoreFusion(BM25Index.example().retriever(), BM25Index.example().retriever(k1=1.0))
)
