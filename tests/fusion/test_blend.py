"""The learned sum of a first stage's score and scorers' scores, and the fitted weight of a fusion."""

import json
import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.fusion import (
    LinearBlend,
    WeightsError,
    fit_fusion_weight,
    fit_fusion_weights,
    standard_scores,
)

RANKING = pd.DataFrame(
    {
        "qid": ["2", "2", "2", "1", "1", "1"],
        "docno": ["a", "b", "c", "a", "b", "d"],
        "score": [30.0, 20.0, 10.0, 3.0, 1.0, 2.0],
        "rank": [0, 1, 2, 0, 2, 1],
        "text": list("uvwxyz"),
    }
)
TOP = (3 / 2) ** 0.5  # the standardized score of the first of three equally spaced ones


class Table(pt.Transformer):  # type: ignore[misc]
    """Gives documents the score of a table, in a different order; documents not in it are left out."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        return inp.assign(score=inp["docno"].map(self.scores)).dropna(subset=["score"]).sort_values("docno")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.scores == other.scores

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"Table({self.scores})"


def questions(count: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, Table]:
    """Rankings of ten whose right document mostly has a high score in the table, and a little in the ranking."""
    rng = np.random.default_rng(seed)
    scores = {f"d{i}-{j}": float(rng.standard_normal()) for i in range(count) for j in range(10)}
    rows, qrels = [], []
    for i in range(count):
        first = rng.standard_normal(10)
        total = first + 3 * np.array([scores[f"d{i}-{j}"] for j in range(10)])
        right = rng.choice(10, p=np.exp(total) / np.exp(total).sum())
        rows += [(f"q{i}", f"d{i}-{j}", first[j], 0) for j in range(10)]
        qrels.append((f"q{i}", f"d{i}-{right}", 1))
    columns = ["qid", "docno", "score", "rank"]
    return pd.DataFrame(rows, columns=columns), pd.DataFrame(qrels, columns=["qid", "docno", "label"]), Table(scores)


def test_the_score_is_the_weighted_sum_of_standard_scores() -> None:
    blend = LinearBlend((Table({"a": 1.0, "b": 2.0, "c": 3.0}),), weights=(1.0, 3.0))
    found = blend(RANKING)
    first = found[found["qid"] == "2"]
    assert first["docno"].tolist() == ["c", "b", "a"]
    assert first["score"].tolist() == pytest.approx([2 * TOP, 0.0, -2 * TOP])
    assert found["qid"].tolist() == ["2"] * 3 + ["1"] * 3
    assert found["rank"].tolist() == [0, 1, 2] * 2
    assert first["text"].tolist() == ["w", "v", "u"]
    assert list(found.columns) == list(RANKING.columns)


def test_a_document_that_a_scorer_leaves_out_has_its_lowest_score_and_equal_scores_are_ordered_by_docno() -> None:
    blend = LinearBlend((Table({"a": 1.0, "b": 2.0}),), weights=(0.0, 1.0))
    features = blend.features(RANKING)
    assert features[3:, 1].tolist() == pytest.approx([-(0.5**0.5), 2**0.5, -(0.5**0.5)])
    nothing = LinearBlend((Table({}),), weights=(1.0, 1.0))
    assert nothing(RANKING)["docno"].tolist() == ["a", "b", "c", "a", "d", "b"]
    found = LinearBlend((), weights=(0.0,))(RANKING.iloc[::-1])
    assert found["docno"].tolist() == ["a", "b", "d", "a", "b", "c"]


def test_a_pipeline_is_fitted_as_pyterrier_fits_and_finds_what_made_the_answers() -> None:
    ranking, qrels, table = questions(100)
    blend = LinearBlend((table,))
    (pt.Transformer.from_df(ranking) >> blend).fit(ranking[["qid"]].drop_duplicates(), qrels)
    first, second = blend.weights
    assert second / first == pytest.approx(3, rel=0.4)
    before = ranking.loc[ranking.groupby("qid")["score"].idxmax()].merge(qrels, on=["qid", "docno"])
    after = blend(ranking).query("rank == 0").merge(qrels, on=["qid", "docno"])
    assert len(after) > 60 > 1.5 * len(before)


def test_without_weights_nothing_is_scored_and_without_answers_nothing_fitted() -> None:
    blend = LinearBlend(())
    with pytest.raises(WeightsError, match="fit"):
        blend(RANKING)
    with pytest.raises(WeightsError):
        blend.save("nowhere.json")
    with pytest.raises(NothingToFitError):
        blend.fit(RANKING, pd.DataFrame({"qid": ["1"], "docno": ["z"], "label": [1]}))
    assert blend.weights is None
    empty = LinearBlend((Embedded({}),), weights=(1.0, 1.0))
    assert empty([]) == []
    assert list(empty(RANKING.iloc[:0].assign(query_embs=None)).columns) == [*RANKING.columns, "query_embs"]


@pytest.mark.parametrize("weights", [(1.0,), (1.0, -1.0), (1.0, float("nan")), 1.0, ("1", "2")])
def test_weights_that_do_not_fit_are_refused(weights) -> None:
    with pytest.raises(ConfigError, match="weights="):
        LinearBlend((Table({}),), weights=weights)
    blend = LinearBlend((Table({}),), weights=(1.0, 1.0))
    with pytest.raises(ConfigError, match="weights="):
        blend.set_parameter("weights", weights) or blend(RANKING)  # the number of weights is checked when they are used


class Embedded(Table):
    """Needs a column of the query."""

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        pt.validate.result_frame(inp, extra_columns=["query_embs"])
        return super().transform(inp)


def test_what_the_scorers_need_is_seen_before_a_run() -> None:
    blend = LinearBlend((Embedded({"a": 1.0}), Table({})), weights=(1.0, 1.0, 1.0))
    assert pt.inspect.transformer_inputs(blend) == [["qid", "docno", "score", "query_embs"]]
    with pytest.raises(pt.validate.InputValidationError, match="query_embs"):
        blend(RANKING)


def test_the_numbers_are_stored_and_read_again_and_copies_are_equal(tmp_path) -> None:
    blend = LinearBlend((Table({"a": 1.0}),), weights=(0.25, 3.0))
    blend.save(tmp_path / "b.json")
    assert LinearBlend.load(tmp_path / "b.json", (Table({"a": 1.0}),)) == blend
    assert json.loads((tmp_path / "b.json").read_text())["scorers"] == ["Table({'a': 1.0})"]
    with pytest.raises(WeightsError, match="2 scorer"):
        LinearBlend.load(tmp_path / "b.json", (Table({}), Table({})))
    assert pickle.loads(pickle.dumps(blend)) == eval(repr(blend)) == blend != LinearBlend((Table({"a": 1.0}),))


def test_the_fitted_weight_of_a_fusion_is_the_ratio_of_both_sides_evidence_and_0_for_a_misleading_side() -> None:
    ranking, qrels, table = questions(150)
    weight = fit_fusion_weight(ranking, table(ranking), qrels)
    assert weight == pytest.approx(0.75, abs=0.07)
    assert fit_fusion_weight(table(ranking), ranking, qrels) == pytest.approx(1 - weight, abs=1e-4)
    against = table(ranking).assign(score=lambda frame: -frame["score"])
    assert fit_fusion_weight(ranking, against, qrels) == 0.0


def graded(best: int, second: int) -> pd.DataFrame:
    """Rank documents 0 to 2, of grades 3, 1 and 0, and further ones: which is first, and which second."""
    order = [best, second, *(number for number in range(20) if number not in (best, second))]
    scores = {str(number): float(-place) for place, number in enumerate(order)}
    rows = [(qid, docno, score) for qid in ("1", "2") for docno, score in scores.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


GRADES = pd.DataFrame([(qid, docno, label) for qid in "12" for docno, label in (("0", 3), ("1", 1), ("2", 0))])
GRADES.columns = pd.Index(["qid", "docno", "label"])


def test_the_weights_of_several_systems_follow_the_grades_and_a_penalty_makes_similar_ones_alike() -> None:
    rankings = [graded(0, 1), graded(1, 0), graded(2, 5)]  # right, right in the other order, wrong
    first, second, wrong = fit_fusion_weights(rankings, GRADES)
    assert first > second > wrong
    without = GRADES.assign(label=GRADES["label"].clip(upper=1))
    alike = fit_fusion_weights(rankings, without)
    assert alike[0] == pytest.approx(alike[1], abs=0.01)  # both find what is right, whatever its grade
    shares = []
    for ridge in (1e-3, 1.0, 100.0):
        weights = fit_fusion_weights([graded(0, 1), graded(1, 0), graded(0, 2)], GRADES, ridge=ridge)
        assert min(weights) >= 0
        shares.append(max(weights) / sum(weights))
    assert shares[0] > shares[1] > shares[2]


def slow_standard_scores(rankings: list[pd.DataFrame]) -> pd.DataFrame:
    """One query and one document at a time."""
    found: dict[tuple[str, str], list[float]] = {}
    keys = sorted({key for ranking in rankings for key in zip(ranking["qid"], ranking["docno"], strict=True)})
    for qid, docno in keys:
        for ranking in rankings:
            own = ranking[ranking["qid"] == qid].dropna(subset="score").set_index("docno")["score"]
            z = (own - own.mean()) / own.std(ddof=0) if own.nunique() > 1 else own * 0
            lowest = z.min() if len(z) else 0.0
            found.setdefault((qid, docno), []).append(float(z.get(docno, lowest)))
    rows = [(*key, *values) for key, values in found.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", *map(str, range(len(rankings)))])


@pytest.mark.parametrize("seed", range(2))
def test_standard_scores_equal_scores_of_one_document_at_a_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rankings = []
    for _ in range(3):
        pairs = [
            (f"q{q}", f"d{d}") for q in range(4) for d in range(6) if rng.random() < 0.6 and rng.random() < 0.9 * q
        ]
        rng.shuffle(pairs)
        scores = rng.choice([0.1, 1.7, 2.0, -3.5, np.nan], len(pairs), p=[0.4, 0.1, 0.2, 0.2, 0.1])
        rankings.append(pd.DataFrame(pairs, columns=["qid", "docno"], dtype=str).assign(score=scores))
    pd.testing.assert_frame_equal(standard_scores(rankings), slow_standard_scores(rankings))
    same = pd.DataFrame({"qid": "1", "docno": list("abcdefg"), "score": 0.1 + 0.2})
    assert (standard_scores([same])["0"] == 0).all()  # whatever their mean rounds to
