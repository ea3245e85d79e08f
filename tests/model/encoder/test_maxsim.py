"""MaxSim against loops: scores depend only on the query and the document's rows, in whatever order they are summed."""

import math
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.model import ModelError, exact, exact_maxsim, losses, maxsim, maxsim_matrix
from pyterrier_mathamr.model.exact import product_errors, rounded_sums, sum_error

UP = 1 + 2.0**-23  # the float32 number after 1


def ragged(sizes: list[int], width: int = 6, seed: int = 0):
    """Random unit rows of posts of the given sizes, float64, with their offsets."""
    rows = torch.randn(sum(sizes), width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(rows, dim=1), torch.tensor([0, *sizes]).cumsum(0)


def plain(queries, query_offsets, rows, offsets):
    """Equation 3.5 as written, one similarity at a time."""
    table = []
    for a, b in pairwise(query_offsets.tolist()):
        line = []
        for c, d in pairwise(offsets.tolist()):
            best = [
                max((queries[t] @ rows[s] for s in range(c, d)), default=torch.tensor(-math.inf)) for t in range(a, b)
            ]
            line.append(sum(best, torch.zeros((), dtype=torch.float64)))
        table.append(torch.stack(line))
    return torch.stack(table)


def by_fsum(query, rows, offsets, weights=None, blend=None) -> list[float]:
    """Score each document in plain Python: products are exact, each sum is rounded once, the last to float32."""
    scores = []
    for start, end in pairwise(offsets.tolist()):
        products = [
            [math.fsum(a * b for a, b in zip(one.tolist(), row.tolist(), strict=True)) for row in rows[start:end]]
            for one in query
        ]
        terms = [max(line, default=-math.inf) for line in products]
        if weights is not None and end > start:
            terms = [weight * term for weight, term in zip(weights.tolist(), terms, strict=True)]
        last = (blend or 0.0) * products[-1][-1] if end > start else 0.0
        scores.append(float(np.float32(math.fsum([*terms, last]))))
    return scores


def test_negative_scores_stay_negative_and_an_empty_document_scores_minus_infinity() -> None:
    query = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    rows = torch.tensor([[-0.6, -0.8], [0.0, -1.0], [0.6, 0.8]])
    offsets = torch.tensor([0, 1, 1, 3])  # one row, no row, two rows
    assert maxsim(query, rows, offsets).tolist() == pytest.approx([-1.4, -math.inf, 1.4], rel=1e-5)
    given = query.numpy(), rows.numpy(), offsets.numpy()
    assert exact_maxsim(*given).tolist() == pytest.approx([-1.4, -math.inf, 1.4], rel=1e-7)
    weighted = exact_maxsim(*given, np.array([0.0, 2.0]), 0.5)
    assert weighted.tolist() == pytest.approx([-1.6 - 0.4, -math.inf, 1.6 + 0.4], rel=1e-7)
    one = torch.tensor([[1.0, 0.0]])  # the score is not symmetric
    assert maxsim(one, query, torch.tensor([0, 2])).tolist() == [1.0]
    assert maxsim(query, one, torch.tensor([0, 1])).tolist() == [1.0]
    assert maxsim(query, query, torch.tensor([0, 2])).tolist() == [2.0]


@pytest.mark.parametrize("chunk", [1 << 22, 7])
def test_the_matrix_and_its_gradient_equal_the_loop(monkeypatch, chunk) -> None:
    monkeypatch.setattr(losses, "_CHUNK", chunk)
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


def test_training_s_scores_equal_exact_ones_and_those_of_each_query_and_document() -> None:
    queries, query_offsets = ragged([5, 0, 2], seed=6)
    rows, offsets = ragged([3, 0, 300, 7], seed=7)
    left = queries.float().requires_grad_()
    table = maxsim_matrix(left, query_offsets, rows.float(), offsets)
    assert table[:, 1].tolist() == [-math.inf, 0.0, -math.inf]  # a query without rows scores 0
    for i, (a, b) in enumerate(pairwise(query_offsets.tolist())):
        torch.testing.assert_close(table[i], maxsim(left[a:b], rows.float(), offsets))
        query, all_rows = queries[a:b].float().numpy(), rows.float().numpy()
        scores = exact_maxsim(query, all_rows, offsets.numpy())
        np.testing.assert_allclose(scores, table[i].detach(), rtol=1e-5, atol=1e-6)
        separate = [exact_maxsim(query, all_rows[c:d], np.array([0, d - c]))[0] for c, d in pairwise(offsets.tolist())]
        assert scores.tolist() == separate
    table.masked_fill(table == -math.inf, 0.0).sum().backward()
    assert torch.isfinite(left.grad).all()  # an empty document sends none
    none = np.empty((0, 6), np.float32)
    assert exact_maxsim(none, rows[:3].float().numpy(), np.array([0, 3]), np.empty(0), 1.0).tolist() == [0.0]
    assert exact_maxsim(none, none, np.array([0])).shape == (0,)


@pytest.mark.parametrize("offsets", [[0, 3], [1, 4], [0, 3, 2, 4], [], [[0, 4]]])
def test_offsets_that_do_not_span_the_rows_and_rows_of_another_width_are_refused(offsets) -> None:
    rows, _ = ragged([4])
    with pytest.raises(ModelError, match="offsets"):
        maxsim(rows, rows, torch.tensor(offsets, dtype=torch.long))
    with pytest.raises(ModelError, match="offsets"):
        exact_maxsim(rows.float().numpy(), rows.float().numpy(), np.array(offsets, dtype=np.int64))
    with pytest.raises(ModelError, match="as wide as"):
        maxsim(torch.ones(2, 3), torch.ones(2, 4), torch.tensor([0, 2]))
    assert maxsim(rows, rows, torch.tensor([0, 4])).shape == (1,)


@pytest.mark.parametrize("weights", [None, [0.5, -1.0, 2.0, 3.0, 0.0]])
@pytest.mark.parametrize("blend", [None, 1.5])
@pytest.mark.parametrize("numbers", [1 << 16, 50, 1])
def test_the_exact_score_is_the_loop_s_to_the_last_place_of_a_float32(monkeypatch, weights, blend, numbers) -> None:
    monkeypatch.setattr(exact, "_BLOCK", numbers)
    query, (rows, offsets) = ragged([5], seed=1)[0].float().numpy(), ragged([4, 1, 0, 9, 2, 5], seed=2)
    given = query, rows.float().numpy(), offsets.numpy(), weights and np.array(weights), blend
    assert exact_maxsim(*given).tolist() == by_fsum(*given)


@pytest.mark.parametrize("order", list(permutations(range(5)))[::7])
def test_a_sum_that_rounds_by_its_order_is_the_same_in_each(order: tuple[int, ...]) -> None:
    """Summed from the left, 1 + 2⁻²⁴ swallows three times 2⁻⁵³; summed from the right, it does not."""
    row = np.array([1, 2.0**-24, 2.0**-53, 2.0**-53, 2.0**-53], dtype=np.float32)[list(order)]
    ones = np.ones((1, 5), dtype=np.float32)
    many = np.tile(row, (37, 1))
    assert exact_maxsim(ones, many, np.arange(38)).tolist() == [UP] * 37
    assert exact_maxsim(ones, -many, np.arange(38)).tolist() == [-UP] * 37


@st.composite
def close_to_a_middle(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw documents whose scores lie on or beside the middle of two float32 numbers, with terms that cancel."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    width, terms, documents = draw(st.integers(1, 12)), draw(st.integers(1, 5)), draw(st.integers(1, 9))
    offsets = np.cumsum([0, *rng.integers(1, 5, documents)])
    exponents = rng.choice([0, -23, -24, -25, -48, -49, -53], (int(offsets[-1]), width))
    rows = (rng.choice([-1.0, 0.0, 1.0, 1.5], exponents.shape) * 2.0**exponents).astype(np.float32)
    rows[rng.random(len(rows)) < 0.3] = rows[0]  # ties
    return rng.choice([-1.0, 1.0, 2.0, 0.5], (terms, width)).astype(np.float32), rows, offsets


@settings(max_examples=50)
@given(close_to_a_middle(), st.booleans())
def test_scores_close_to_the_middle_of_two_numbers_are_those_of_fsum(drawn, weighted: bool) -> None:
    query, rows, offsets = drawn
    weights = (np.linspace(-1, 1.5, len(query)), 0.75) if weighted else (None, None)
    assert exact_maxsim(query, rows, offsets, *weights).tolist() == by_fsum(query, rows, offsets, *weights)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e30]))
def test_scores_of_drawn_rows_and_codes_are_those_of_fsum_however_many_are_doubtful(seed: int, error: float) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *rng.integers(1, 8, 10)])
    query, rows = (rng.standard_normal((n, 24)).astype(np.float32) for n in (4, int(offsets[-1])))
    weights = rng.standard_normal(4)
    codes = rng.integers(-127, 128, rows.shape).astype(np.int8)
    scales = (rng.integers(2**16, 2**17, len(codes)) * 2.0**-25).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "sum_error", lambda *given: sum_error(*given) + error)
        scores = exact_maxsim(query, rows, offsets, weights, 0.3)
        of_codes = exact_maxsim(query, codes, offsets, None, 0.3, scales)
    assert scores.tolist() == by_fsum(query, rows, offsets, weights, 0.3)
    assert of_codes.tolist() == by_fsum(query, codes.astype(np.float32) * scales[:, None], offsets, None, 0.3)


TERMS = st.one_of(
    st.floats(-1e30, 1e30),
    st.builds(lambda sign, power: sign * 2.0**power, st.sampled_from([-1.0, 1.0]), st.integers(-110, 60)),
    st.sampled_from([1.0, 2.0**-53, -(2.0**-53), 2.0**-54, 2.0**-106, -(2.0**-106), 3 * 2.0**-54, 0.0]),
)


@settings(max_examples=60)
@given(st.integers(1, 40).flatmap(lambda k: st.lists(st.lists(TERMS, min_size=k, max_size=k), min_size=1, max_size=6)))
def test_sums_in_arrays_are_those_of_fsum(terms: list[list[float]]) -> None:
    assert rounded_sums(np.array(terms)).tolist() == [math.fsum(row) for row in terms]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 20), st.booleans())
def test_the_bounds_of_sums_and_of_products_hold(seed: int, terms: int, width: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    query = rng.standard_normal((terms, width)).astype(np.float32).astype(np.float64)
    rows = (rng.standard_normal((4, width)) * 10.0 ** rng.integers(-3, 4)).astype(np.float32).astype(np.float64)
    weights, blend = (rng.standard_normal(terms), 0.3) if weighted else (np.ones(terms), 0.0)
    exact_products = [
        [sum(Fraction(a) * Fraction(b) for a, b in zip(one, row, strict=True)) for row in rows.tolist()]
        for one in query.tolist()
    ]
    true = sum(Fraction(weight) * max(line) for weight, line in zip(weights, exact_products, strict=True))
    true += Fraction(blend) * exact_products[-1][-1]
    greatest, products = float(np.abs(rows).max()), query @ rows.T
    score = float(weights @ products.max(axis=1)) + blend * float(query[-1] @ rows[-1])
    assert abs(Fraction(score) - true) <= sum_error(query, weights, blend, greatest) / 2
    for line, wanted, bound in zip(products, exact_products, product_errors(query, greatest).tolist(), strict=True):
        assert all(abs(Fraction(a) - b) <= bound for a, b in zip(line, wanted, strict=True))


def test_almost_no_score_of_drawn_vectors_is_summed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again = []
    monkeypatch.setattr(exact, "rounded_sums", lambda terms: again.append(terms) or rounded_sums(terms))
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40_000, 16)).astype(np.float32)
    query = rng.standard_normal((5, 16)).astype(np.float32)
    exact_maxsim(query, rows, np.arange(0, 40_001, 4))
    assert sum(map(len, again)) < 100
