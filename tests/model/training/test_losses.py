"""The training objective against its equations written as loops."""

import math

import pytest
import torch

from pyterrier_mathamr.model import MathAMRConfig, ModelError, maxsim
from pyterrier_mathamr.model.losses import Contrast, ContrastiveLoss, info_nce

SCORES = [[0.9, 0.2, -0.3], [0.1, 0.4, 0.6], [-0.8, 0.0, 0.3]]
ALLOWED = [[True, False, True], [True, True, True], [False, True, False]]  # the diagonal is in the sum all the same


def plain_info_nce(scores, tau, allowed=None) -> float:
    """Equation 3.6 as written."""
    total, size = 0.0, len(scores)
    for i in range(size):
        counted = [j for j in range(len(scores[i])) if allowed is None or allowed[i][j] or i == j]
        below = sum(math.exp(scores[i][j] / tau) for j in counted)
        total += math.log(math.exp(scores[i][i] / tau) / below)
    return -total / size


@pytest.mark.parametrize("allowed", [None, ALLOWED])
def test_info_nce_and_the_gradient_of_its_temperature_equal_the_equation(allowed) -> None:
    scores = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True)
    tau = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    loss = info_nce(scores, tau, None if allowed is None else torch.tensor(allowed))
    loss.backward()
    assert loss.item() == pytest.approx(plain_info_nce(SCORES, 0.5, allowed))
    step = 1e-6
    slope = plain_info_nce(SCORES, 0.5 + step, allowed) - plain_info_nce(SCORES, 0.5 - step, allowed)
    assert tau.grad.item() == pytest.approx(slope / (2 * step), rel=1e-5)
    if allowed:  # a masked document has no gradient
        assert scores.grad[0, 1] == scores.grad[2, 0] == 0
        assert scores.grad[2, 2] < 0


def test_the_temperature_learns_and_stays_positive() -> None:
    loss = ContrastiveLoss(MathAMRConfig(temperature=0.05))
    assert loss.temperature.item() == pytest.approx(0.05, rel=1e-5)
    with torch.no_grad():
        loss.log_temperature.fill_(-30.0)
    assert loss.temperature > 0


@pytest.mark.parametrize("beta", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("normalized", [True, False])
def test_the_objective_is_the_blend_of_equation_4_2(beta, normalized) -> None:
    chance = torch.Generator().manual_seed(1)
    queries, rows = (torch.nn.functional.normalize(torch.randn(n, 4, generator=chance), dim=1) for n in (6, 9))
    query_offsets, offsets = torch.tensor([0, 2, 3, 6]), torch.tensor([0, 4, 6, 9])
    config = MathAMRConfig(beta=beta, normalise_scores=normalized, temperature=0.2)
    loss = ContrastiveLoss(config)(Contrast(queries, query_offsets, rows, offsets))
    parts = [queries[:2], queries[2:3], queries[3:]]
    table = [(maxsim(q, rows, offsets) / (len(q) if normalized else 1)).tolist() for q in parts]
    documents = [[(q[-1] @ rows[last]).item() for last in (3, 5, 8)] for q in parts]
    wanted = beta * plain_info_nce(table, 0.2) + (1 - beta) * plain_info_nce(documents, 0.2)
    assert loss.item() == pytest.approx(wanted, abs=1e-5)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelError, match="scores"):
        info_nce(torch.ones(3, 2), 1.0)
    with pytest.raises(ModelError, match="allowed"):
        info_nce(torch.ones(2, 2), 1.0, torch.ones(2, 3, dtype=torch.bool))
    assert info_nce(torch.ones(2, 3), 1.0).item() == pytest.approx(math.log(3), rel=1e-5)
