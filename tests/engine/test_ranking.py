"""The engine's score by hand: a weighted sum of two parts, each divided by the most that the query can reach."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr.engine.ranking import BlendedRetriever, Weights


def scorer(scores: dict[str, float], most: float = 0.0) -> Any:
    """An index that scores documents by a table."""

    def score(candidates: pd.DataFrame) -> pd.DataFrame:
        return candidates[["qid", "docno"]].assign(score=candidates["docno"].map(scores))

    class Scorer:
        __call__ = staticmethod(score)
        greatest_score = staticmethod(lambda query: most)

    return SimpleNamespace(scorer=Scorer)


def candidates(*docnos: str) -> pd.DataFrame:
    query: dict[str, Any] = {"qid": "q", "query": "a prime", "query_embs": np.eye(2, dtype=np.float32)}
    query |= {"query_weights": np.array([0.5, 1.0], dtype=np.float32), "query_document_weight": 0.5}
    return pd.DataFrame([{**query, "docno": docno} for docno in docnos])


def test_the_score_is_the_weighted_sum_of_the_shares_of_both_bounds() -> None:
    words, vectors = scorer({"a": 5.0, "b": 0.0, "c": 10.0}, most=10.0), scorer({"a": 1.0, "b": 2.0, "c": -0.5})
    engine = BlendedRetriever(words, vectors, cast("Any", None), Weights(0.25, 0.75))
    found = engine.score(candidates("a", "b", "c")).set_index("docno")["score"]
    # B = 10; V = .5 + 1 + .5 = 2
    assert found.to_dict() == pytest.approx({"b": 75.0, "a": 12.5 + 37.5, "c": 25.0 - 18.75})
    assert found.index.tolist() == ["b", "a", "c"]


def test_a_score_does_not_depend_on_the_other_candidates() -> None:
    words, vectors = scorer({"a": 5.0, "b": 9.0}, most=10.0), scorer({"a": 1.0, "b": 2.0})
    engine = BlendedRetriever(words, vectors, cast("Any", None), Weights(0.25, 0.75))
    alone, among = (engine.score(candidates(*docnos)) for docnos in (("a",), ("a", "b")))
    assert alone["score"].tolist() == among.loc[among["docno"] == "a", "score"].tolist() == [50.0]


def test_a_query_without_a_known_word_is_scored_by_vectors() -> None:
    engine = BlendedRetriever(scorer({"a": 0.0}), scorer({"a": 1.0}), cast("Any", None), Weights(0.25, 0.75))
    assert engine.score(candidates("a"))["score"].tolist() == [37.5]
