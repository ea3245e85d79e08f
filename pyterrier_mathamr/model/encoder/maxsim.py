"""MaxSim of ragged sets of vectors, without padding in the result (MathAMR+, equations 3.4 and 3.5).

::

    exact_maxsim    one query, many documents    numpy, float64      what every search and scorer returns
    maxsim_matrix   all queries, all documents   torch, gradient     what training maximises
    maxsim          one row of that matrix

The rows of many posts lie end to end; ``offsets`` says where each post begins. Nothing is masked with zeros: a missing
row is minus infinity, so a pair with only negative similarities has a negative score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyterrier_mathamr._common.running.resources import one_blas_thread
from pyterrier_mathamr.model.errors import ModelError

_PRODUCTS = 1 << 16
"""Products in float64 from which their greatest are found: half a megabyte, which stays in a cache."""

_CHUNK = 1 << 22
"""Similarities in memory at once: 16 MiB of float32."""


def exact_maxsim(
    query: npt.NDArray[np.float32],
    rows: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64] | None = None,
    blend: float | None = None,
) -> npt.NDArray[np.float64]:
    """Score each document against one query: S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc (MathAMR+, eq. 3.4).

    Computed in float64 on one thread and rounded once to float32 precision. A score depends on the query and the rows
    of its document alone: not on the other documents in the call, nor on the processor (:mod:`.rounding`).

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

    def alone(document: int) -> float:
        return exact_sum(asked, rows[ends[document] : ends[document + 1]], weights, blend)

    scores = np.full(len(filled), -np.inf)
    scores[filled] = rounded(sums, sum_error(asked, weights, blend, greatest), alone)
    return scores


def maxsim(query: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
    """Compute the row of :func:`maxsim_matrix` for one query: float ``[q, d]`` to float ``[m]``, with gradient."""
    return maxsim_matrix(query, offsets.new_tensor([0, query.size(0)]), rows, offsets)[0]


def maxsim_matrix(
    queries: Tensor, query_offsets: Tensor, rows: Tensor, offsets: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Score every document against every query: S_ij = Σ_t max_s q_it · d_js (MathAMR+, eq. 3.5), with gradient.

    Only the position of each maximum is kept for the gradient and similarities are computed in chunks, so memory is
    O(q_total · m), not O(q_total · r).

    Args:
        queries: float32 ``[q_total, d]``, the rows of all queries end to end.
        query_offsets: int64 ``[b + 1]``.
        rows: float32 ``[r, d]``, the rows of all documents end to end.
        offsets: int64 ``[m + 1]``.
        weights: float ``[q_total]``, the weight of each query row, with gradient; ``None`` where each is 1.

    Returns:
        float32 ``[b, m]``; minus infinity for a document without rows, 0 for a query without rows.

    Raises:
        ModelError: the widths differ, or offsets do not span their rows.
    """
    check_ragged(rows, queries, query_offsets)
    best = best_matches(queries, rows, offsets)  # [q_total, m]
    if weights is not None:
        best = best * weights.unsqueeze(1)
    return torch.segment_reduce(best, "sum", offsets=query_offsets, initial=0.0)  # [b, m]


def best_matches(queries: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
    """Compute max_s q · d_s for each query row and document, with gradient."""
    check_ragged(queries, rows, offsets)
    best: Tensor = _BestMatch.apply(queries, rows, offsets)  # type: ignore[no-untyped-call]
    return best


_Array = Tensor | npt.NDArray[Any]


def check_ragged(other: _Array, rows: _Array, offsets: _Array) -> None:
    """Refuse ragged rows that do not fit together."""
    for name, matrix in (("query", other), ("rows", rows)):
        if matrix.ndim != 2:
            raise ModelError(f"{name} has shape {tuple(matrix.shape)}; expected [rows, d].")
    if other.shape[1] != rows.shape[1]:
        raise ModelError(f"rows has shape {tuple(rows.shape)}; expected [r, {other.shape[1]}], as wide as the query.")
    spans = offsets.ndim == 1 and len(offsets) > 0 and int(offsets[0]) == 0 and int(offsets[-1]) == len(rows)
    if not spans or bool((offsets[1:] < offsets[:-1]).any()):
        raise ModelError(f"offsets has shape {tuple(offsets.shape)}; expected [m + 1], from 0 up to {len(rows)}.")


class _BestMatch(torch.autograd.Function):
    """Compute max_s q · d_s for each query row and document; the gradient flows through the first maximal row alone."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
        """Find the greatest similarities and their rows: ``[q_total, d]`` and ``[r, d]`` to ``[q_total, m]``."""
        best = queries.new_full((queries.size(0), offsets.numel() - 1), -math.inf)  # [q_total, m]
        where = torch.zeros(best.shape, dtype=torch.int32, device=best.device)
        for documents, index in _by_length(offsets):  # [g], [g, L] rows, -1 where a document is shorter
            missing = (index < 0).flatten()
            columns = rows.index_select(0, index.clamp_min(0).flatten()).t()  # [d, g·L]
            for part in _chunks(queries, index.numel()):
                similarity = (queries[part] @ columns).masked_fill_(missing, -math.inf)
                value, position = similarity.view(-1, *index.shape).max(dim=2)  # [chunk, g]
                best[part.unsqueeze(1), documents] = value
                found = index.expand(part.numel(), -1, -1).gather(2, position.unsqueeze(2)).squeeze(2)
                where[part.unsqueeze(1), documents] = found.to(torch.int32)
        ctx.save_for_backward(queries, rows, where, offsets)
        return best

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Send each gradient to the pair of rows that was the maximum."""
        queries, rows, where, offsets = ctx.saved_tensors
        grad = grad.masked_fill(offsets.diff() == 0, 0.0)  # a document without rows has no maximum
        grad_queries, grad_rows = torch.zeros_like(queries), torch.zeros_like(rows)
        for part in _chunks(queries, rows.size(0)):
            # Each row belongs to one document, so the columns of one query row never collide, empty ones aside.
            chosen = grad.new_zeros(part.numel(), rows.size(0)).scatter_add_(1, where[part].long(), grad[part])
            grad_queries[part] = chosen @ rows
            grad_rows.addmm_(chosen.t(), queries[part])
        return grad_queries, grad_rows, None


def _chunks(queries: Tensor, width: int) -> tuple[Tensor, ...]:
    """Split the query rows so that a chunk against ``width`` rows stays within the bound: int64 ``[chunk]`` each."""
    return torch.split(torch.arange(queries.size(0), device=queries.device), max(1, _CHUNK // max(1, width)))


def _by_length(offsets: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Group documents of similar lengths, so that padding at most doubles a group; empty documents are left out."""
    lengths = offsets.diff()
    bits = torch.ceil(torch.log2(lengths.clamp_min(1).double())).long()  # 1 | 2 | 3-4 | 5-8 | …
    groups = []
    for bit in torch.unique(bits[lengths > 0]).tolist():
        documents = torch.nonzero((bits == bit) & (lengths > 0)).squeeze(1)
        step = torch.arange(int(lengths[documents].max()), device=offsets.device)
        index = offsets[documents].unsqueeze(1) + step
        groups.append((documents, index.masked_fill(step >= lengths[documents].unsqueeze(1), -1)))
    return groups


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
