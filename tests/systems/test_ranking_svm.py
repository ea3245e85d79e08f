"""The ranking SVM: worked values, a brute-force minimizer, PyTerrier's convention, judgments, files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from scipy.optimize import minimize

from mathamr_systems import RankingSVM, SystemsError
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.fusion import WeightsError

RELEVANT, OTHER = (1.0, 0.0), (0.0, 1.0)
PRINTED = (0.52, 2.42, 0.0, 0.0, 0.0, 0.05)


@pytest.mark.parametrize(("c", "weight"), [(1.0, 0.5), (0.01, 0.01), (0.3, 0.3), (30.0, 0.5)])
def test_one_pair_gives_the_weights_worked_by_hand(c: float, weight: float) -> None:
    svm = RankingSVM(C=c, tolerance=1e-8, standardize=False).fit([RELEVANT, OTHER], [2, 0], group=[2])
    assert svm.weights == pytest.approx((weight, -weight), abs=1e-6)


def test_the_printed_weights_order_the_printed_candidates() -> None:
    svm = RankingSVM(weights=PRINTED)
    scores = svm.predict([(0.04, 0.9, 0, 0, 0, 0.5), (0.045, 0.4, 0, 0, 0, 1)])
    assert scores.tolist() == pytest.approx([2.2238, 1.0414], abs=1e-6)


def graded(pairs: int = 30) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Queries of two candidates each, in random order, whose grades a noisy sum gives."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(2 * pairs, 3))
    grades = (features @ [1.0, 2.0, -1.0] + rng.normal(size=2 * pairs) > 0).astype(float)
    grades[1::2] = 1 - grades[::2]
    return features, grades, [2] * pairs


@pytest.mark.parametrize("c", [0.01, 1.0, 20.0])
def test_the_loss_is_that_of_a_brute_force_minimizer(c: float) -> None:
    features, grades, group = graded()
    signs = np.sign(grades[::2] - grades[1::2])
    differences = signs[:, None] * (features[::2] - features[1::2])

    def loss(weights: np.ndarray) -> float:
        return float(weights @ weights / 2 + c / len(group) * np.maximum(0, 1 - differences @ weights).sum())

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000}
    starts = np.random.default_rng(0).normal(size=(5, 3))
    least = min(float(minimize(loss, start, method="Nelder-Mead", options=options).fun) for start in starts)
    svm = RankingSVM(C=c, tolerance=1e-6, standardize=False).fit(features, grades, group=group)
    assert loss(np.array(svm.weights)) == pytest.approx(least, rel=1e-4)
    coarse = RankingSVM(C=c, standardize=False).fit(features, grades, group=group)
    assert loss(np.array(coarse.weights)) == pytest.approx(least, rel=1e-2)


def test_grades_are_compared_only_within_each_query() -> None:
    svm = RankingSVM(C=1.0, tolerance=1e-8, standardize=False)
    svm.fit([(3.0, 0.0), (2.0, 0.0), (1.0, 0.0), (0.0, 1.0)], [3, 2, 1, 0], group=[2, 2])  # pairs (1, 0) and (1, -1)
    assert svm.weights == pytest.approx((0.75, -0.25), abs=1e-4)


def test_the_order_does_not_depend_on_the_units_of_features() -> None:
    features, grades, group = graded()
    units = np.array([1000.0, 1.0, 0.001])
    one = RankingSVM(C=0.01, tolerance=1e-6).fit(features, grades, group=group)
    other = RankingSVM(C=0.01, tolerance=1e-6).fit(features * units, grades, group=group)
    assert other.predict(features * units) == pytest.approx(one.predict(features), rel=1e-4, abs=1e-6)
    assert one.predict(features) == pytest.approx(features @ one.weights)  # the weights are of features as given
    deviation = features.std(axis=0)
    scaled = RankingSVM(C=0.01, tolerance=1e-6, standardize=False).fit(features / deviation, grades, group=group)
    assert one.weights == pytest.approx(scaled.weights / deviation, rel=1e-6)


def test_a_feature_that_is_the_same_everywhere_has_no_weight() -> None:
    svm = RankingSVM(C=1.0).fit([(*RELEVANT, 7.0), (*OTHER, 7.0)], [1, 0], group=[2])
    assert svm.weights == pytest.approx((0.5, -0.5, 0.0), abs=1e-3)


def test_of_several_costs_the_one_that_orders_held_out_queries_best_is_used() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 12))
    features[:, 1] = features[:, 0] + 0.3 * rng.normal(size=60)  # the difference of two features that are much alike
    grades, group = np.zeros(60), [2] * 30
    grades[::2] = features[::2, 0] - features[::2, 1] > features[1::2, 0] - features[1::2, 1]
    grades[1::2] = 1 - grades[::2]
    deviation = features.std(axis=0)
    queries = list(zip(np.split(features / deviation, len(group)), np.split(grades, len(group)), strict=True))
    shares = {}
    for c in (1e-6, 1.0, 300.0):
        right = 0
        for fold in range(5):
            others = [query for at, query in enumerate(queries) if at % 5 != fold]
            svm = RankingSVM(C=c, tolerance=1e-6, standardize=False)
            svm.fit(np.concatenate([f for f, _ in others]), np.concatenate([g for _, g in others]), group=group[:24])
            right += sum((svm.predict(f).argmax() == g.argmax()) for f, g in queries[fold::5])
        shares[c] = right
    best = max(shares, key=shares.get)
    assert best == 300.0
    assert shares[best] > shares[1.0]
    several = RankingSVM(C=tuple(shares), tolerance=1e-6).fit(features, grades, group=group)
    one = RankingSVM(C=best, tolerance=1e-6).fit(features, grades, group=group)
    assert several.weights == pytest.approx(one.weights)


def frame() -> tuple[pd.DataFrame, pd.DataFrame]:
    features = [np.array(row) for row in [RELEVANT, OTHER, (5.0, 0.0), RELEVANT, OTHER]]
    ranking = pd.DataFrame({"qid": ["1", "1", "1", "2", "2"], "docno": list("abcab"), "features": features})
    ranking = ranking.assign(query="q", score=1.0, rank=0)
    qrels = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": list("abab"), "label": [2, 0, 3, 0]})
    return ranking, qrels


def test_unjudged_rows_are_left_out() -> None:
    ranking, qrels = frame()
    judged = RankingSVM(C=1.0).fit_judged(ranking, qrels)
    assert judged.weights == pytest.approx((0.5, -0.5), abs=1e-3)
    whole = RankingSVM(C=1.0).fit([*ranking["features"]], [2, 0, 0, 3, 0], group=[3, 2])
    assert whole.weights != judged.weights
    with pytest.raises(SystemsError):
        RankingSVM().fit_judged(ranking, qrels.assign(docno="z"))
    with pytest.raises(NothingToFitError):
        RankingSVM().fit_judged(ranking, qrels.assign(label=1))


def test_pyterrier_fits_and_applies_it() -> None:
    ranking, qrels = frame()
    learned = pt.ltr.apply_learned_model(RankingSVM(C=1.0), form="ltr")
    learned.fit(ranking, qrels, ranking, qrels)
    as_zero = RankingSVM(C=1.0).fit([*ranking["features"]], [2, 0, 0, 3, 0], group=[3, 2])
    assert learned.learner.weights == as_zero.weights
    assert learned(ranking)["score"].tolist() == pytest.approx(as_zero.predict(np.stack(ranking["features"])).tolist())


def test_a_ranker_is_saved_and_loaded(tmp_path: Path) -> None:
    svm = RankingSVM(C=0.5, names=["a", "b"]).fit([RELEVANT, OTHER], [1, 0], group=[2])
    svm.save(tmp_path / "svm.json")
    assert RankingSVM.load(tmp_path / "svm.json") == svm
    with pytest.raises(WeightsError):
        RankingSVM.load(tmp_path / "none.json")
    with pytest.raises(WeightsError):
        RankingSVM().save(tmp_path / "none.json")


def test_bad_options_and_features_are_refused() -> None:
    with pytest.raises(ConfigError, match="C="):
        RankingSVM(C=0)
    with pytest.raises(ConfigError, match="tolerance"):
        RankingSVM(tolerance=-1)
    with pytest.raises(ConfigError, match="features"):
        RankingSVM().fit([(np.nan, 0.0), OTHER], [1, 0], group=[2])


def test_contributions_of_features_sum_to_the_score() -> None:
    names = ["QQSim", "QASim", "comments", "votes", "accepted", "tags"]
    explained = RankingSVM(weights=PRINTED, names=names).explain(
        {"qid": "1", "features": (0.04, 0.9, 0, 0, 0, 0.5)}, "d"
    )
    assert explained.score == pytest.approx(2.2238)
    assert explained.parts["contribution"].sum() == pytest.approx(2.2238)
