"""Fusions of ranks and of scores brought to 0 … 1: the worked values of their papers."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.fusion import ConvexFusion, ModifiedRRF, ZScoreFusion, reciprocal_ranks
from pyterrier_mathamr.sparse import BM25Index

TOPICS = pd.DataFrame({"qid": ["1"], "query": ["x"]})
UNSEEN = pd.DataFrame({"qid": ["2"], "query": ["y"]})


class Named(pt.Transformer):  # type: ignore[misc]
    """Ranks the documents of a dictionary for the query 1."""

    def __init__(self, label: str, scores: dict[str, float]) -> None:
        self.label, self.scores = label, scores

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        pt.validate.query_frame(inp, ["query"])
        ranking = pd.DataFrame({"docno": list(self.scores), "score": list(self.scores.values()), "qid": "1"})
        return inp.merge(ranking.astype({"docno": str, "score": float}), on="qid")


A, B = Named("A", {"d1": 0.9, "d2": 0.5}), Named("B", {"d2": 0.8, "d3": 0.4})


def scores(system: pt.Transformer, topics: pd.DataFrame = TOPICS) -> list[tuple[str, float]]:
    found = system(topics)
    assert found["rank"].tolist() == list(range(len(found)))
    return list(zip(found["docno"], found["score"], strict=True))


def approximately(*expected: tuple[str, float]) -> list[tuple[str, object]]:
    return [(docno, pytest.approx(score, abs=5e-8)) for docno, score in expected]


def test_the_score_of_a_system_over_the_rank_there_is_added_up() -> None:
    assert scores(ModifiedRRF([A, B])) == approximately(("d2", 0.0211793), ("d1", 0.0147541), ("d3", 0.0064516))
    one, other = Named("one", {"f": 0.9}), Named("other", {"h": 1.0, "g": 0.95, "f": 0.8})
    assert dict(scores(ModifiedRRF([one, other]))) == pytest.approx(
        {"f": 0.027452, "g": 0.015323, "h": 1 / 61}, abs=1e-6
    )


def test_the_classic_form_has_one_for_the_score() -> None:
    found = scores(ModifiedRRF([A, B], classic=True))
    assert found == approximately(("d2", 0.0325225), ("d1", 0.0163934), ("d3", 0.0161290))
    assert scores(ModifiedRRF([system(TOPICS) for system in (A, B)], classic=True)) == found  # of rankings that exist
    low = Named("A", {"d2": 0.5, "d1": 0.1})
    assert [docno for docno, _ in scores(ModifiedRRF([low, B]))] == ["d2", "d3", "d1"]


def test_ranks_begin_at_one_and_equal_scores_rank_by_docno() -> None:
    assert reciprocal_ranks(np.array([0.5, 0.9, 0.5]), ["b", "c", "a"], 0).tolist() == [1 / 3, 1.0, 1 / 2]
    assert scores(ModifiedRRF([Named("A", {"z": 1.0, "y": 1.0})], k=0)) == [("y", 1.0), ("z", 0.5)]
    ranks_from_0 = A(TOPICS).assign(rank=[0, 1])
    for classic, expected in ((True, [1 / 61, 1 / 62]), (False, [0.9 / 61, 0.5 / 62])):
        assert [score for _, score in scores(ModifiedRRF([ranks_from_0], classic=classic))] == expected
    shuffled = A(TOPICS).assign(rank=[7, 3])  # scores decide, not a rank that other stages left
    assert scores(ModifiedRRF([shuffled])) == scores(ModifiedRRF([A]))
    for fusion in (ConvexFusion(ranks_from_0, B), ZScoreFusion(A, B)):  # which use no ranks
        assert fusion(TOPICS)["rank"].tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("error")
def test_negative_scores_give_one_warning_and_none_where_the_sign_does_not_matter() -> None:
    odd = Named("odd one", {"d1": 1.0, "d2": -1.0, "d3": -2.0})
    fusion = ModifiedRRF([A, odd, B])
    with pytest.warns(MathAMRWarning) as caught:
        found = scores(fusion)
    assert [str(warning.message).partition(" take")[0] for warning in caught] == ["negative scores of odd one"]
    assert dict(found)["d3"] == pytest.approx(-2 / 63 + 0.4 / 62)
    fusion(TOPICS)
    system = Named("A", {"d1": -1.0, "d2": -3.0, "d3": -5.0})
    rescaled = scores(ModifiedRRF([system], normalise="min-max"))
    assert rescaled == approximately(("d1", 1 / 61), ("d2", 0.5 / 62), ("d3", 0.0))
    for other in (ModifiedRRF([odd], normalise="min-max"), ModifiedRRF([odd], classic=True)):
        scores(other)


DENSE, OTHER = Named("dense", {"y": 8, "w": 6, "z": 4}), Named("other", {"x": 30, "y": 20, "z": 10})


FLAT = Named("flat", {"a": 3.0, "b": 3.0})  # scores that are equal count nothing, or the constant
THIRD = Named("third", {"z": 1.0, "x": 0.5, "v": 0.0})


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [
        (ConvexFusion(DENSE, OTHER), {"y": 0.75, "x": 0.5, "w": 0.25, "z": 0.0}),
        (ConvexFusion(DENSE, OTHER, 0.2), {"x": 0.8, "y": 0.6, "w": 0.1, "z": 0.0}),
        (ConvexFusion(FLAT, OTHER), {"x": 0.5, "y": 0.25, "a": 0.0, "b": 0.0, "z": 0.0}),
        (ConvexFusion(FLAT, OTHER, 0.2, constant=1.0), {"x": 0.8, "y": 0.4, "a": 0.2, "b": 0.2, "z": 0.0}),
        # z: .2 · 1, only from the third; y: .5 · 1 + .3 · .5
        (ConvexFusion(DENSE, [OTHER, THIRD], [0.5, 0.3, 0.2]), {"y": 0.65, "x": 0.4, "w": 0.25, "z": 0.2, "v": 0.0}),
        (ModifiedRRF([A, B, Named("C", {"d3": 1.0})]),
         {"d3": 0.4 / 62 + 1 / 61, "d2": 0.5 / 62 + 0.8 / 61, "d1": 0.9 / 61}),
    ],
)  # fmt: skip
def test_scores_between_0_and_1_of_any_number_of_systems_are_added_by_weight(fusion, expected) -> None:
    assert scores(fusion) == approximately(*expected.items())


def test_the_whole_weight_reproduces_the_order_of_one_system_and_one_weight_leaves_the_rest_to_all_others() -> None:
    for alpha, system in ((1.0, DENSE), (0.0, OTHER)):
        single = system(TOPICS)["docno"].tolist()
        assert [docno for docno, _ in scores(ConvexFusion(DENSE, OTHER, alpha)) if docno in single] == single
    halves = ConvexFusion(DENSE, [OTHER, THIRD], [0.5, 0.25, 0.25])
    assert scores(ConvexFusion(DENSE, [OTHER, THIRD], 0.5)) == scores(halves)


@pytest.mark.parametrize(
    "fusion",
    [
        ModifiedRRF([A, B]),
        ConvexFusion(Named("flat", {"x": 1.0, "q": 1.0}), [DENSE, OTHER], [0.2, 0.3, 0.5], constant=1.0),
        ModifiedRRF([A, B], classic=True),
        ModifiedRRF([DENSE, OTHER], k=1, normalise="min-max"),
        ConvexFusion(DENSE, OTHER, 0.3),
    ],
)
def test_the_parts_of_a_score_sum_to_it_and_copies_are_equal(fusion: ModifiedRRF | ConvexFusion) -> None:
    for docno, score in scores(fusion):
        assert fusion.explain(TOPICS.iloc[0], docno).score == pytest.approx(score)
    assert scores(fusion % 1) == scores(fusion)[:1]
    assert scores(pickle.loads(pickle.dumps(fusion))) == scores(fusion)
    assert scores(fusion, UNSEEN) == []


def test_options_out_of_range_are_refused() -> None:
    for options in ({"k": -1}, {"normalise": "z-score"}, {"num_results": 0}, {"classic": "yes"}):
        with pytest.raises(ConfigError, match=next(iter(options))):
            ModifiedRRF([A], **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="systems"):
        ModifiedRRF([])
    for alpha in (1.5, [0.5, 0.6], [0.5, 0.25, 0.25], [-0.5, 1.5], "half"):
        with pytest.raises(ConfigError, match="alpha"):
            ConvexFusion(A, B, alpha)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="constant"):
        ConvexFusion(A, B, constant=2.0)


TestModifiedRRF = pt.testing.transformer_test_class(
    lambda: ModifiedRRF([BM25Index.example().retriever(), BM25Index.example().retriever(k1=1.0)])
)
TestConvexFusion = pt.testing.transformer_test_class(
    lambda: ConvexFusion(BM25Index.example().retriever(), BM25Index.example().retriever(k1=1.0))
)
