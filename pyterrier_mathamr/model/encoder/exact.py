"""MaxSim of one query with many documents, summed in float64: the score of every search and scorer.

A sum that lies between two float32 numbers is computed again from exact products, in one order, so that a score depends
on the query and the rows of its document, and not on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.running.resources import one_blas_thread
from pyterrier_mathamr.model.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

_PRODUCTS = 1 << 16
"""Products in float64 computed at a time before taking their maxima: half a megabyte, which stays in a cache."""


def exact_maxsim(
    query: npt.NDArray[np.float32],
    rows: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64] | None = None,
    blend: float | None = None,
) -> npt.NDArray[np.float64]:
    """Score each document against one query: S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc (MathAMR+, eq. 3.4).

    Computed in float64 on one thread and rounded once to float32 precision. A score depends on the query and the rows
    of its document: not on the other documents in the call, nor on the processor.

    Args:
        query: float32 ``[q, d]``, the document's row last.
        rows: float32 ``[r, d]``, the rows of all documents end to end, each document's own row last.
        offsets: int64 ``[m + 1]``; document ``i`` owns ``rows[offsets[i]:offsets[i + 1]]``.
        weights: w, float64 ``[q]``, or ``None`` for plain MaxSim, where each is 1.
        blend: a, the weight of the product of the two documents' rows; ``None`` for 0.

    Returns:
        float64 ``[m]``, each a float32 number; minus infinity for a document without rows, 0 for a query without rows.

    Raises:
        ModelError: the widths differ, or the offsets do not span ``rows``.
    """
    check_ragged(query, rows, offsets)
    filled = offsets[1:] > offsets[:-1]
    if not len(query) or not filled.any():
        return np.where(filled | (len(query) == 0), 0.0, -np.inf)
    ends, asked = np.concatenate([[0], offsets[1:][filled]]), query.astype(np.float64)
    sums, greatest, first = np.empty(len(ends) - 1), 0.0, 0
    with one_blas_thread():
        while first < len(sums):  # as many documents as have few enough products for a cache, or one
            last = int(np.searchsorted(ends, ends[first] + _PRODUCTS // len(query), side="right")) - 1
            last = max(last, first + 1)
            of = ends[first : last + 1]
            some = rows[of[0] : of[-1]]
            greatest = max(greatest, float(some.max()), -float(some.min()))
            products = asked @ some.T.astype(np.float64)  # [q, r]
            best = np.maximum.reduceat(products, of[:-1] - of[0], axis=1)  # [q, documents]
            sums[first:last] = best.sum(axis=0) if weights is None else weights @ best
            if blend is not None:
                sums[first:last] += blend * products[-1, of[1:] - of[0] - 1]
            first = last

    def one(document: int) -> float:
        return exact_sum(asked, rows[ends[document] : ends[document + 1]], weights, blend)

    scores = np.full(len(filled), -np.inf)
    scores[filled] = rounded(sums, sum_error(asked, weights, blend, greatest), one)
    return scores


def check_ragged(
    other: Tensor | npt.NDArray[Any], rows: Tensor | npt.NDArray[Any], offsets: Tensor | npt.NDArray[Any]
) -> None:
    """Raise an error for ragged rows that do not fit together."""
    for name, matrix in (("query", other), ("rows", rows)):
        if matrix.ndim != 2:
            raise ModelError(f"{name} has shape {tuple(matrix.shape)}; expected [rows, d].")
    if other.shape[1] != rows.shape[1]:
        raise ModelError(f"rows has shape {tuple(rows.shape)}; expected [r, {other.shape[1]}], as wide as the query.")
    spans = offsets.ndim == 1 and len(offsets) > 0 and int(offsets[0]) == 0 and int(offsets[-1]) == len(rows)
    if not spans or bool((offsets[1:] < offsets[:-1]).any()):
        raise ModelError(f"offsets has shape {tuple(offsets.shape)}; expected [m + 1], from 0 up to {len(rows)}.")


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
