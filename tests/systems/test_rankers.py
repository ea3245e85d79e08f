"""Linear rankers: the least loss by an outside judge, PyTerrier's convention, judgments, files, explanations."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from mathamr_systems import ListwiseRanker, PairwiseRanker, RankingSVM, SystemsError
from mathamr_systems.formula_ltr import ranker as rankers
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.listwise import NothingToFitError, fit_listwise
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.fusion import WeightsError

SIZES = [12, 1, 30, 7]


def examples(seed: int = 0, features: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Candidates of four queries, graded 0 to 3 by a noisy sum; the second query's cannot be paired."""
    rng = np.random.default_rng(seed)
    found = rng.uniform(size=(sum(SIZES), features))
    sums = found @ np.arange(1.0, features + 1) + rng.normal(scale=1.5, size=len(found))
    return found, np.clip(np.digitize(sums, [4, 5, 6]), 0, 3).astype(float)


def groups() -> list[tuple[np.ndarray, np.ndarray]]:
    found, grades = examples()
    ends = np.cumsum(SIZES)[:-1]
    return list(zip(np.split(found, ends), np.split(grades, ends), strict=True))


@pytest.mark.parametrize("c", [0.01, 1.0, 30.0])
def test_the_weights_equal_a_linear_svm_s_on_the_differences_of_pairs(c: float) -> None:
    svm = pytest.importorskip("sklearn.svm")
    differences, shares = [], []
    for features, grades in groups():
        higher, lower = np.nonzero(grades[:, None] > grades)
        differences.append(features[higher] - features[lower])
        shares += [1 / max(len(higher), 1)] * len(higher)
    points = np.concatenate(differences)
    signs = np.where(np.arange(len(points)) % 2, 1, -1)  # the judge asks for two classes; a mirrored pair is the same
    judge = svm.LinearSVC(dual=False, fit_intercept=False, C=c, tol=1e-10, max_iter=10_000)
    judge.fit(points * signs[:, None], signs, sample_weight=shares)
    found = PairwiseRanker(c).fit(*examples(), group=SIZES).weights
    assert found == pytest.approx(judge.coef_[0].tolist(), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_no_step_from_the_weights_lowers_the_loss_as_written(loss: Any) -> None:
    def plain(weights: np.ndarray) -> float:
        total = weights @ weights / 2
        for features, grades in groups():
            pairs = [(i, j) for i in range(len(grades)) for j in range(len(grades)) if grades[i] > grades[j]]
            margins = [weights @ (features[i] - features[j]) for i, j in pairs]
            of = [max(0, 1 - m) ** 2 if loss == "squared-hinge" else np.log1p(np.exp(-m)) for m in margins]
            total += 3.0 * sum(of) / max(len(of), 1)
        return float(total)

    found = np.array(PairwiseRanker(3.0, loss).fit(*examples(), group=SIZES).weights)
    best = plain(found)
    for axis in range(4):
        for step in (-1e-3, 1e-3):
            assert plain(found + step * np.eye(4)[axis]) > best


def test_two_candidates_are_separated_by_their_difference_as_worked_by_hand() -> None:
    ranker = PairwiseRanker(1e9).fit([[1, 0], [0, 1]], [3, 0], group=[2])
    assert ranker.weights == pytest.approx([0.5, -0.5])  # the margin is 1
    mild = PairwiseRanker(0.5).fit([[1, 0], [0, 1]], [3, 0], group=[2])  # a² + .5 (1 - 2a)² is least there
    assert mild.weights == pytest.approx([1 / 3, -1 / 3])


def test_many_candidates_are_summed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PairwiseRanker(1.0).fit(*examples(), group=SIZES)
    monkeypatch.setattr(rankers, "_CELLS", 64)
    assert PairwiseRanker(1.0).fit(*examples(), group=SIZES).weights == pytest.approx(whole.weights)


def test_of_several_c_that_which_orders_held_out_queries_best_is_taken() -> None:
    rng = np.random.default_rng(3)
    features = rng.uniform(size=(400, 30))
    grades = (features[:, 0] + rng.normal(scale=0.6, size=400) > 0.5).astype(float)
    ends = np.arange(20, 400, 20)
    every = list(zip(np.split(features, ends), np.split(grades, ends), strict=True))
    shares = dict.fromkeys((1e-2, 1.0, 1e4), 0.0)
    for c, fold in product(shares, range(5)):
        weights = rankers.fit_pairwise([group for i, group in enumerate(every) if i % 5 != fold], c, "squared-hinge")
        for scored, graded in every[fold::5]:
            above, below = scored[graded == 1] @ weights, scored[graded == 0] @ weights
            shares[c] += np.mean(above[:, None] > below)
    best = max(shares, key=lambda c: shares[c])
    assert shares[best] > shares[1e4] > 0
    fitted = [PairwiseRanker(c).fit(features, grades, group=[20] * 20).weights for c in (tuple(shares), best)]
    assert fitted[0] == fitted[1]


def test_listwise_weights_match_the_softmax() -> None:
    ranker = ListwiseRanker(0.01).fit(*examples(), group=SIZES)
    wanted = fit_listwise([(features, grades > 0) for features, grades in groups()], ridge=0.01)
    assert ranker.weights == tuple(wanted.tolist())
    assert ranker.predict([[1, 0, 0, 0]]).tolist() == [wanted[0]]


def test_only_judged_rows_are_learned_from_by_id_or_visual_id() -> None:
    rows = [("1", "a#0", "10"), ("1", "b#0", "10"), ("1", "c#0", "20"), ("1", "d#0", "30"), ("2", "a#0", "10")]
    ranking = pd.DataFrame(rows, columns=["qid", "docno", "visual_id"])
    ranking["features"] = [np.array([x, 1.0]) for x in (1.0, 9.0, 2.0, 5.0, 7.0)]
    visual = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["10", "20", "40"], "label": [0, 2, 1]})
    wanted = PairwiseRanker(1.0).fit([[1, 1], [2, 1]], [0, 2], group=[2])
    assert PairwiseRanker(1.0).fit_judged(ranking, visual) == wanted
    by_id = visual.assign(docno=["a#0", "c#0", "x#0"])
    assert PairwiseRanker(1.0).fit_judged(ranking, by_id) == wanted
    with pytest.raises(SystemsError):
        PairwiseRanker().fit_judged(ranking, visual.assign(docno="none"))


def test_a_ranker_is_read_as_it_was_written(tmp_path: Path) -> None:
    ranker = PairwiseRanker((0.5, 2.0), "logistic", names=list("abcd")).fit(*examples(), group=SIZES)
    ranker.save(tmp_path / "r.json")
    again = PairwiseRanker.load(tmp_path / "r.json")
    assert again.weights == ranker.weights
    assert again.names == tuple("abcd")
    assert (tuple(again.c), again.loss) == ((0.5, 2.0), "logistic")
    with pytest.raises(WeightsError, match="no ListwiseRanker"):
        ListwiseRanker.load(tmp_path / "r.json")
    for content in ("[]", "{", json.dumps({"format": 9, "ranker": "PairwiseRanker"}), '{"format": 1}'):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(WeightsError, match=r"bad\.json"):
            PairwiseRanker.load(tmp_path / "bad.json")
    with pytest.raises(WeightsError, match="absent"):
        PairwiseRanker.load(tmp_path / "absent.json")
    with pytest.raises(WeightsError):
        PairwiseRanker().save(tmp_path / "none.json")


def test_an_explanation_has_each_weight_times_its_feature() -> None:
    row = {"qid": "1", "query": "$x$", "docno": "d", "features": np.array([0.5, 1.0])}
    ranker = PairwiseRanker(names=("tuples", "MSS"), weights=(2.0, -0.25))
    found = ranker.explain(row)
    assert found.score == ranker.predict([row["features"]])[0] == 0.75
    assert found.parts[["part", "similarity", "weight", "contribution"]].to_numpy().tolist() == [
        ["tuples", 0.5, 2.0, 1.0],
        ["MSS", 1.0, -0.25, -0.25],
    ]
    assert PairwiseRanker(weights=(1.0, 2.0)).explain(row).parts["part"].tolist() == ["feature 2", "feature 1"]
    with pytest.raises(AskedError, match="no features"):
        ranker.explain({"qid": "1", "query": "$x$", "docno": "d"})


def test_unusable_data_or_rankers_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 features"):
        PairwiseRanker(names=("a", "b"), weights=(1.0,))
    with pytest.raises(ConfigError, match="2 features"):
        PairwiseRanker(names=("a", "b")).fit(*examples(), group=SIZES)
    with pytest.raises(ConfigError, match="group"):
        PairwiseRanker().fit(*examples(), group=[3, 4])
    with pytest.raises(ConfigError, match="features=3"):
        PairwiseRanker(weights=(1.0,)).predict([[1, 2, 3]])
    with pytest.raises(WeightsError):
        PairwiseRanker().predict([[1, 2, 3]])
    with pytest.raises(NothingToFitError):
        PairwiseRanker().fit([[1.0], [2.0]], [1, 1], group=[2])


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


def test_weights_worked_by_hand() -> None:
    svm = RankingSVM(C=1.0, tolerance=1e-8, standardize=False)
    svm.fit([(3.0, 0.0), (2.0, 0.0), (1.0, 0.0), (0.0, 1.0)], [3, 2, 1, 0], group=[2, 2])  # pairs (1, 0) and (1, -1)
    assert svm.weights == pytest.approx((0.75, -0.25), abs=1e-4)

    svm = RankingSVM(C=1.0).fit([(*RELEVANT, 7.0), (*OTHER, 7.0)], [1, 0], group=[2])
    assert svm.weights == pytest.approx((0.5, -0.5, 0.0), abs=1e-3)


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


def test_of_several_costs_one_is_chosen_on_features_of_one_unit() -> None:
    features, grades, group = graded()
    single = [RankingSVM(C=c, tolerance=1e-6).fit(features, grades, group=group).weights for c in (1e-6, 20.0)]
    several = RankingSVM(C=(1e-6, 20.0), tolerance=1e-6).fit(features, grades, group=group)
    assert sum(several.weights == pytest.approx(weights) for weights in single) == 1
    scaled = RankingSVM(C=(1e-6, 20.0), tolerance=1e-6).fit(1000 * features, grades, group=group)
    assert 1000 * np.array(scaled.weights) == pytest.approx(np.array(several.weights), rel=1e-4)


def test_bad_features_and_grades_are_refused() -> None:
    with pytest.raises(ConfigError, match="features"):
        RankingSVM().fit([(np.nan, 0.0), OTHER], [1, 0], group=[2])
    with pytest.raises(NothingToFitError):
        RankingSVM().fit([RELEVANT, OTHER], [1, 1], group=[2])
