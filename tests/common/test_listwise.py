"""The softmax fit against plain judges: finite differences, a grid, and cases worked by hand."""

import math

import numpy as np
import pytest

from pyterrier_mathamr._common.listwise import NothingToFitError, fit_listwise


def groups_of(weights, questions=60, candidates=20, seed=0):
    """Questions whose right answer is drawn by the softmax of known weights."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(questions):
        features = rng.standard_normal((candidates, len(weights))) * [1.0, 10.0, 0.1][: len(weights)]
        scores = features @ weights
        chances = np.exp(scores - scores.max())
        right = np.zeros(candidates, dtype=bool)
        right[rng.choice(candidates, p=chances / chances.sum())] = True
        made.append((features, right))
    return made


def plain_loss(groups, weights) -> float:
    """The definition, one candidate at a time."""
    losses = []
    for features, right in groups:
        scores = [sum(w * x for w, x in zip(weights, row, strict=True)) for row in features]
        wrong = sum(math.exp(s) for s, r in zip(scores, right, strict=True) if not r)
        of_right = [-math.log(math.exp(s) / (math.exp(s) + wrong)) for s, r in zip(scores, right, strict=True) if r]
        losses.append(sum(of_right) / len(of_right))
    return sum(losses) / len(losses)


def test_no_step_from_the_fitted_weights_lowers_the_loss_also_with_several_right_answers() -> None:
    groups = groups_of([1.0, 0.2, 5.0])
    groups[0][1][:3] = True
    found = fit_listwise(groups, ridge=0.0)
    best = plain_loss(groups, found)
    for axis, size in enumerate((1.0, 0.1, 10.0)):
        for step in (-1e-2, 1e-2):
            moved = found.copy()
            moved[axis] += step * size
            assert plain_loss(groups, moved) > best


def test_known_weights_are_found_again_whatever_the_scale_of_the_features() -> None:
    found = fit_listwise(groups_of([1.0, 0.2, 5.0], questions=1500))
    assert found == pytest.approx([1.0, 0.2, 5.0], rel=0.15)


def test_a_feature_that_would_count_against_is_left_out_and_the_others_fitted_without_it() -> None:
    groups = groups_of([1.0, -0.2], questions=500)
    found = fit_listwise(groups)
    assert found[1] == 0
    assert found[0] == pytest.approx(
        fit_listwise([(features[:, :1], right) for features, right in groups])[0], rel=1e-4
    )


def test_a_constant_feature_counts_nothing_and_a_perfect_one_stays_finite() -> None:
    right = np.array([True, False, False])
    groups = [(np.array([[1.0, 7.0], [0.0, 7.0], [0.0, 7.0]]), right)] * 5
    found = fit_listwise(groups)
    assert found[1] == 0
    assert 5 < found[0] < 100


def test_questions_without_right_or_without_wrong_candidates_are_skipped() -> None:
    groups = groups_of([1.0])
    useless = [(np.ones((3, 1)), np.zeros(3, dtype=bool)), (np.ones((3, 1)), np.ones(3, dtype=bool))]
    assert fit_listwise([*groups, *useless]) == pytest.approx(fit_listwise(groups), rel=1e-4)
    with pytest.raises(NothingToFitError, match="2 question"):
        fit_listwise(useless)
