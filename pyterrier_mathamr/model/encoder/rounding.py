"""Sums in float64, rounded to float32 so that the order of summation does not show.

Libraries sum in an order of their own, which differs between processors and with the size of a product, and so a sum
in float64 is only known within a bound. Almost always all numbers within the bound round to one float32 number. Where
they do not, about once in 10⁷ scores, the sum is computed again, exactly and in one order::

    ────┼──────────────●──────────┼────        sum ± bound rounds to one number: that of the true sum
    ────┼────────────────────────●┼●────       perhaps to two: exact_sum decides

Both ways lead to the same number wherever both are possible, since the bound is doubled: what decides is then the query
and the rows of the document alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

_UNIT = 2.0**-53

Floats = npt.NDArray[np.float64]


def sum_error(query: Floats, weights: Floats | None, blend: float | None, greatest: float) -> float:
    """Bound the error of Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc in float64, in any order of summation, and double it."""
    sums = np.abs(query).sum(axis=1)
    total = float(sums.sum() if weights is None else np.abs(weights) @ sums) + abs(blend or 0.0) * float(sums[-1])
    steps = query.shape[1] + len(query) + 4
    return float(2.02 * steps * _UNIT * total * greatest)  # twice, and rounded itself


def rounded(sums: Floats, error: float, exactly: Callable[[int], float]) -> Floats:
    """Round sums to float32 numbers."""
    found = sums.astype(np.float32)
    doubtful = np.flatnonzero((sums - error).astype(np.float32) != (sums + error).astype(np.float32))
    for document in doubtful.tolist():
        found[document] = exactly(document)
    return found.astype(np.float64)


def exact_sum(query: Floats, rows: npt.NDArray[np.float32], weights: Floats | None, blend: float | None) -> float:
    """Compute S(Q, D) of one document from products that are exact in float64, each sum rounded once."""
    wide = rows.astype(np.float64)
    products = [[math.fsum(of_row) for of_row in (wide * row).tolist()] for row in query]
    best = [max(of_query) for of_query in products]
    terms = best if weights is None else [weight * term for weight, term in zip(weights.tolist(), best, strict=True)]
    return math.fsum([*terms, (blend or 0.0) * products[-1][-1]])
