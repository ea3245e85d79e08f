"""A score depends only on the query and the document's rows, in whatever order they are summed."""

import math
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr.model import exact as of_scores
from pyterrier_mathamr.model import exact_maxsim
from pyterrier_mathamr.model.exact import product_errors, rounded_sums, sum_error

UP = 1 + 2.0**-23  # the float32 number after 1


@pytest.mark.parametrize("order", list(permutations(range(5)))[::7])
def test_a_sum_that_rounds_by_its_order_is_the_same_in_each(order: tuple[int, ...]) -> None:
    """Summed from the left, 1 + 2⁻²⁴ swallows three times 2⁻⁵³; summed from the right, it does not."""
    row = np.array([1, 2.0**-24, 2.0**-53, 2.0**-53, 2.0**-53], dtype=np.float32)[list(order)]
    ones = np.ones((1, 5), dtype=np.float32)
    assert exact_maxsim(ones, row[None], np.array([0, 1])).tolist() == [UP]
    many = np.tile(row, (37, 1))
    assert exact_maxsim(ones, many, np.arange(38)).tolist() == [UP] * 37
    assert exact_maxsim(ones, -many, np.arange(38)).tolist() == [-UP] * 37


def by_fsum(query, rows, offsets, weights=None, blend=None) -> list[float]:
    """Score each document in plain Python: products are exact, each sum is rounded once, the last to float32."""
    scores = []
    for start, end in pairwise(offsets.tolist()):
        products = [
            [math.fsum(a * b for a, b in zip(one.tolist(), row.tolist(), strict=True)) for row in rows[start:end]]
            for one in query
        ]
        terms = [max(of_row) for of_row in products]
        if weights is not None:
            terms = [weight * term for weight, term in zip(weights.tolist(), terms, strict=True)]
        scores.append(float(np.float32(math.fsum([*terms, (blend or 0.0) * products[-1][-1]]))))
    return scores


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


@given(close_to_a_middle(), st.booleans())
def test_scores_close_to_the_middle_of_two_numbers_are_those_of_fsum(drawn, weighted: bool) -> None:
    query, rows, offsets = drawn
    given = (np.linspace(-1, 1.5, len(query)), 0.75) if weighted else (None, None)
    assert exact_maxsim(query, rows, offsets, *given).tolist() == by_fsum(query, rows, offsets, *given)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e30]))
def test_scores_of_drawn_rows_are_those_of_fsum_however_many_are_doubtful(seed: int, error: float) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *rng.integers(1, 8, 20)])
    query, rows = (rng.standard_normal((n, 24)).astype(np.float32) for n in (4, int(offsets[-1])))
    weights = rng.standard_normal(4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_scores, "sum_error", lambda *given: sum_error(*given) + error)
        found = exact_maxsim(query, rows, offsets, weights, 0.3)
    assert found.tolist() == by_fsum(query, rows, offsets, weights, 0.3)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e30]))
def test_codes_with_scales_score_as_the_rows_that_they_are(seed: int, error: float) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *rng.integers(1, 8, 20)])
    query, codes = rng.standard_normal((4, 24)).astype(np.float32), rng.integers(-127, 128, (int(offsets[-1]), 24))
    scales = (rng.integers(2**16, 2**17, len(codes)) * 2.0**-25).astype(np.float32)
    rows = codes.astype(np.float32) * scales[:, None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_scores, "sum_error", lambda *given: sum_error(*given) + error)
        found = exact_maxsim(query, codes.astype(np.int8), offsets, None, 0.3, scales)
    assert found.tolist() == by_fsum(query, rows, offsets, None, 0.3)


TERMS = st.one_of(
    st.floats(-1e30, 1e30),
    st.builds(lambda sign, power: sign * 2.0**power, st.sampled_from([-1.0, 1.0]), st.integers(-110, 60)),
    st.sampled_from([1.0, 2.0**-53, -(2.0**-53), 2.0**-54, 2.0**-106, -(2.0**-106), 3 * 2.0**-54, 0.0]),
)


@given(st.integers(1, 40).flatmap(lambda k: st.lists(st.lists(TERMS, min_size=k, max_size=k), min_size=1, max_size=6)))
def test_sums_in_arrays_are_those_of_fsum(terms: list[list[float]]) -> None:
    assert rounded_sums(np.array(terms)).tolist() == [math.fsum(row) for row in terms]


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 20), st.booleans())
def test_the_bounds_of_sums_and_of_products_hold(seed: int, terms: int, width: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    query = rng.standard_normal((terms, width)).astype(np.float32).astype(np.float64)
    rows = (rng.standard_normal((4, width)) * 10.0 ** rng.integers(-3, 4)).astype(np.float32)
    weights, blend = (rng.standard_normal(terms), 0.3) if weighted else (np.ones(terms), 0.0)
    exact = [[Fraction(a) * Fraction(b) for a, b in zip(*pair, strict=True)] for pair in pairs(query, rows)]
    best = [max(sum(exact[i * 4 + j]) for j in range(4)) for i in range(terms)]
    true = sum(Fraction(weights[i]) * term for i, term in enumerate(best)) + Fraction(blend) * sum(exact[-1])
    greatest = float(np.abs(rows).max())
    products = query @ rows.T.astype(np.float64)
    plain = float(weights @ products.max(axis=1)) + blend * float(query[-1] @ rows[-1])
    assert abs(Fraction(plain) - true) <= sum_error(query, weights, blend, greatest) / 2
    for i, bound in enumerate(product_errors(query, greatest).tolist()):
        assert all(abs(Fraction(products[i, j]) - sum(exact[i * 4 + j])) <= bound for j in range(4))


def pairs(query: np.ndarray, rows: np.ndarray) -> list[tuple[list[float], list[float]]]:
    return [(of.tolist(), row.astype(np.float64).tolist()) for of in query for row in rows]


def test_almost_no_score_of_drawn_vectors_is_summed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again = []
    monkeypatch.setattr(of_scores, "rounded_sums", lambda terms: again.append(terms) or rounded_sums(terms))
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40_000, 16)).astype(np.float32)
    query = rng.standard_normal((5, 16)).astype(np.float32)
    exact_maxsim(query, rows, np.arange(0, 40_001, 4))
    assert sum(map(len, again)) < 100
