"""A score depends only on the query and the document's rows, in whatever order they are summed."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr.model import exact_maxsim
from pyterrier_mathamr.model.encoder import exact as of_scores
from pyterrier_mathamr.model.encoder.exact import exact_sum, sum_error

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


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 20), st.booleans())
def test_the_bound_holds_and_the_exact_sum_is_close(seed: int, terms: int, width: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    query = rng.standard_normal((terms, width)).astype(np.float32).astype(np.float64)
    rows = (rng.standard_normal((4, width)) * 10.0 ** rng.integers(-3, 4)).astype(np.float32)
    weights, blend = (rng.standard_normal(terms), 0.3) if weighted else (None, None)
    exact = [[Fraction(a) * Fraction(b) for a, b in zip(*pair, strict=True)] for pair in pairs(query, rows)]
    best = [max(sum(exact[i * 4 + j]) for j in range(4)) for i in range(terms)]
    true = sum(Fraction(1 if weights is None else weights[i]) * term for i, term in enumerate(best))
    true += Fraction(blend or 0) * sum(exact[-1])
    bound = sum_error(query, weights, blend, float(np.abs(rows).max())) / 2
    scores = (query @ rows.T.astype(np.float64)).max(axis=1)
    plain = float(scores.sum() if weights is None else weights @ scores) + (blend or 0) * float(query[-1] @ rows[-1])
    assert abs(Fraction(plain) - true) <= bound
    assert abs(Fraction(exact_sum(query, rows, weights, blend)) - true) <= bound


def pairs(query: np.ndarray, rows: np.ndarray) -> list[tuple[list[float], list[float]]]:
    return [(of.tolist(), row.astype(np.float64).tolist()) for of in query for row in rows]


def test_almost_no_score_of_drawn_vectors_is_summed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again = []
    monkeypatch.setattr(of_scores, "exact_sum", lambda *given: again.append(given) or exact_sum(*given))
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40_000, 16)).astype(np.float32)
    query = rng.standard_normal((5, 16)).astype(np.float32)
    exact_maxsim(query, rows, np.arange(0, 40_001, 4))
    assert len(again) < 10
