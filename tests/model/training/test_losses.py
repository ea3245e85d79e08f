"""The training objective against its equations written as loops."""

import math

import pytest
import torch

from pyterrier_mathamr.model import MathAMRConfig, ModelError, maxsim
from pyterrier_mathamr.model.losses import Contrast, ContrastiveLoss, info_nce


def plain_info_nce(scores, tau, allowed=None) -> float:
    """Equation 3.6 as written."""
    total, size = 0.0, len(scores)
    for i in range(size):
        counted = [j for j in range(len(scores[i])) if allowed is None or allowed[i][j] or i == j]
        below = sum(math.exp(scores[i][j] / tau) for j in counted)
        total += math.log(math.exp(scores[i][i] / tau) / below)
    return -total / size


SCORES = [[0.9, 0.2, -0.3], [0.1, 0.4, 0.6], [-0.8, 0.0, 0.3]]


def test_info_nce_equals_its_equation() -> None:
    assert info_nce(torch.tensor(SCORES), 0.5).item() == pytest.approx(plain_info_nce(SCORES, 0.5), rel=1e-5)
    assert info_nce(torch.zeros(4, 4), 0.05).item() == pytest.approx(math.log(4), rel=1e-5)


def test_a_masked_document_counts_neither_in_the_loss_nor_in_the_gradient() -> None:
    allowed = [[True, False, True], [True, True, True], [False, True, False]]  # the diagonal is in the sum all the same
    scores = torch.tensor(SCORES, requires_grad=True)
    loss = info_nce(scores, 0.5, torch.tensor(allowed))
    assert loss.item() == pytest.approx(plain_info_nce(SCORES, 0.5, allowed), rel=1e-5)
    loss.backward()
    assert scores.grad[0, 1] == 0
    assert scores.grad[2, 0] == 0
    assert scores.grad[2, 2] < 0


def test_the_temperature_s_gradient_is_the_slope_with_and_without_masked_documents() -> None:
    for allowed in (None, torch.tensor([[True, False, True], [True, True, False], [False, True, True]])):
        scores = torch.tensor(SCORES, dtype=torch.float64)
        tau = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        info_nce(scores, tau, allowed).backward()
        step = 1e-6
        slope = (info_nce(scores, 0.5 + step, allowed) - info_nce(scores, 0.5 - step, allowed)).item() / (2 * step)
        assert tau.grad.item() == pytest.approx(slope, rel=1e-5)


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
    found = ContrastiveLoss(config)(Contrast(queries, query_offsets, rows, offsets))
    parts = [queries[:2], queries[2:3], queries[3:]]
    table = [(maxsim(q, rows, offsets) / (len(q) if normalized else 1)).tolist() for q in parts]
    documents = [[(q[-1] @ rows[last]).item() for last in (3, 5, 8)] for q in parts]
    wanted = beta * plain_info_nce(table, 0.2) + (1 - beta) * plain_info_nce(documents, 0.2)
    assert found.item() == pytest.approx(wanted, abs=1e-5)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelError, match="scores"):
        info_nce(torch.ones(3, 2), 1.0)
    with pytest.raises(ModelError, match="allowed"):
        info_nce(torch.ones(2, 2), 1.0, torch.ones(2, 3, dtype=torch.bool))
    assert info_nce(torch.ones(2, 3), 1.0).item() == pytest.approx(math.log(3), rel=1e-5)
