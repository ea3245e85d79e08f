"""MaxSim against a loop over all pairs of rows."""

import math
import sys

import numpy as np
import pytest
import torch

from pyterrier_mathamr.model import ModelError, exact_maxsim, maxsim, maxsim_matrix


def ragged(sizes: list[int], width: int = 6, seed: int = 0):
    """Random unit rows of posts of the given sizes, float64, with their offsets."""
    rows = torch.randn(sum(sizes), width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(rows, dim=1), torch.tensor([0, *sizes]).cumsum(0)


def plain(queries, query_offsets, rows, offsets):
    """Equation 3.5 as written, one similarity at a time."""
    table = []
    for a, b in zip(query_offsets[:-1].tolist(), query_offsets[1:].tolist(), strict=True):
        line = []
        for c, d in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            best = [
                max((queries[t] @ rows[s] for s in range(c, d)), default=torch.tensor(-math.inf)) for t in range(a, b)
            ]
            line.append(sum(best, torch.zeros((), dtype=torch.float64)))
        table.append(torch.stack(line))
    return torch.stack(table)


def test_negative_scores_stay_negative_and_an_empty_document_scores_minus_infinity() -> None:
    query = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    rows = torch.tensor([[-0.6, -0.8], [0.0, -1.0], [0.6, 0.8]])
    offsets = torch.tensor([0, 1, 1, 3])  # one row, no row, two rows
    assert maxsim(query, rows, offsets).tolist() == pytest.approx([-1.4, -math.inf, 1.4], rel=1e-5)
    exact = exact_maxsim(query.numpy(), rows.numpy(), offsets.numpy())
    assert exact.tolist() == pytest.approx([-1.4, -math.inf, 1.4], rel=1e-7)
    weighted = exact_maxsim(query.numpy(), rows.numpy(), offsets.numpy(), np.array([0.0, 2.0]), 0.5)
    assert weighted.tolist() == pytest.approx([-1.6 - 0.4, -math.inf, 1.6 + 0.4], rel=1e-7)


def test_the_score_is_not_symmetric() -> None:
    one, two = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert maxsim(one, two, torch.tensor([0, 2])).tolist() == [1.0]
    assert maxsim(two, one, torch.tensor([0, 1])).tolist() == [1.0]
    assert maxsim(two, two, torch.tensor([0, 2])).tolist() == [2.0]


@pytest.mark.parametrize("chunk", [1 << 22, 7])
def test_the_matrix_and_its_gradient_equal_the_loop(monkeypatch, chunk) -> None:
    monkeypatch.setattr(sys.modules[maxsim.__module__], "_CHUNK", chunk)
    queries, query_offsets = ragged([1, 3, 2], seed=1)
    rows, offsets = ragged([4, 1, 9, 2, 5], seed=2)
    weight = torch.linspace(-1, 2, 15, dtype=torch.float64).view(3, 5)
    results = []
    for function in (maxsim_matrix, plain):
        left, right = queries.clone().requires_grad_(), rows.clone().requires_grad_()
        scores = function(left, query_offsets, right, offsets)
        (scores * weight).sum().backward()
        results.append((scores, left.grad, right.grad))
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-12, rtol=0)


def test_each_row_of_the_matrix_is_maxsim_of_its_query() -> None:
    queries, query_offsets = ragged([2, 5, 1], seed=6)
    rows, offsets = ragged([3, 0, 300, 7], seed=7)
    table = maxsim_matrix(queries, query_offsets, rows, offsets)
    for i in range(3):
        query = queries[query_offsets[i] : query_offsets[i + 1]]
        torch.testing.assert_close(table[i], maxsim(query, rows, offsets))
    assert table[:, 1].tolist() == [-math.inf] * 3


@pytest.mark.parametrize("weights", [None, [0.5, -1.0, 2.0, 3.0, 0.0]])
@pytest.mark.parametrize("blend", [None, 1.5])
@pytest.mark.parametrize("numbers", [1 << 16, 50, 1])
def test_the_exact_score_is_the_loop_s_to_the_last_place_of_a_float32(monkeypatch, weights, blend, numbers) -> None:
    monkeypatch.setattr(sys.modules[exact_maxsim.__module__], "_BLOCK", numbers)
    query = ragged([5], seed=1)[0].float()
    rows, offsets = ragged([4, 1, 0, 9, 2, 5], seed=2)
    rows = rows.float()
    found = exact_maxsim(query.numpy(), rows.numpy(), offsets.numpy(), weights and np.array(weights), blend)
    for score, start, end in zip(found.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        products = [
            [math.fsum(a * b for a, b in zip(one.tolist(), other.tolist(), strict=True)) for other in rows[start:end]]
            for one in query
        ]
        best = [
            weight * max(line, default=-math.inf) for weight, line in zip(weights or [1] * 5, products, strict=True)
        ]
        whole = math.fsum([*best, (blend or 0) * products[-1][-1]]) if end > start else -math.inf
        assert score == np.float32(whole)


def test_the_exact_score_equals_training_s_and_each_single_document_s() -> None:
    queries, query_offsets = ragged([5, 2], seed=3)
    rows, offsets = ragged([4, 1, 9, 0, 5], seed=4)
    trained = maxsim_matrix(queries.float(), query_offsets, rows.float(), offsets)
    for i, query in enumerate((queries[:5], queries[5:])):
        exact = exact_maxsim(query.float().numpy(), rows.float().numpy(), offsets.numpy())
        np.testing.assert_allclose(exact, trained[i], rtol=1e-5, atol=1e-6)
        separate = [
            exact_maxsim(query.float().numpy(), rows[a:b].float().numpy(), np.array([0, b - a]))[0]
            for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ]
        assert exact.tolist() == separate


def test_an_empty_document_sends_no_gradient_anywhere() -> None:
    queries, query_offsets = ragged([2], seed=8)
    rows, offsets = ragged([0, 2], seed=9)
    left = queries.clone().requires_grad_()
    table = maxsim_matrix(left, query_offsets, rows, offsets)
    table.masked_fill(table == -math.inf, 0.0).sum().backward()
    assert torch.isfinite(left.grad).all()


def test_a_query_without_rows_scores_nothing() -> None:
    queries, query_offsets = ragged([0, 1], seed=8)
    rows, offsets = ragged([2, 2], seed=9)
    assert maxsim_matrix(queries, query_offsets, rows, offsets)[0].tolist() == [0.0, 0.0]
    none, no_weights = np.empty((0, 6), np.float32), np.empty(0)
    assert exact_maxsim(none, rows.float().numpy(), offsets.numpy(), no_weights, 1.0).tolist() == [0.0, 0.0]
    assert exact_maxsim(none, rows[:0].float().numpy(), np.array([0])).shape == (0,)


@pytest.mark.parametrize("offsets", [[0, 3], [1, 4], [0, 3, 2, 4], [], [[0, 4]]])
def test_offsets_that_do_not_span_the_rows_are_refused(offsets) -> None:
    rows, _ = ragged([4])
    with pytest.raises(ModelError, match="offsets"):
        maxsim(rows, rows, torch.tensor(offsets, dtype=torch.long))
    with pytest.raises(ModelError, match="offsets"):
        exact_maxsim(rows.float().numpy(), rows.float().numpy(), np.array(offsets, dtype=np.int64))
    assert maxsim(rows, rows, torch.tensor([0, 4])).shape == (1,)


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ModelError, match="as wide as"):
        maxsim(torch.ones(2, 3), torch.ones(2, 4), torch.tensor([0, 2]))
