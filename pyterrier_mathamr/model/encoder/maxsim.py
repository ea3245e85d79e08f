"""MaxSim of ragged sets of vectors, without padding in the result (MathAMR+, equations 3.4 and 3.5).

::

    exact.exact_maxsim   one query, many documents    numpy, float64      what every search and scorer returns
    maxsim_matrix        all queries, all documents   torch, gradient     what training maximizes
    maxsim               one row of that matrix

The rows of many posts are concatenated; post ``i`` starts at ``offsets[i]``. Nothing is masked with zeros: a missing
row is minus infinity, so a pair with only negative similarities has a negative score.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pyterrier_mathamr.model.exact import check_ragged

_CHUNK = 1 << 22
"""Similarities in memory at once: 16 MiB of float32."""


def maxsim(query: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
    """Score every document against one query, as a row of :func:`maxsim_matrix`, with gradient.

    Args:
        query: float32 ``[q, d]``, the rows of the query.
        rows: float32 ``[r, d]``, the rows of all documents end to end.
        offsets: int64 ``[m + 1]``; document ``i`` owns ``rows[offsets[i]:offsets[i + 1]]``.
    """
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


class _BestMatch(torch.autograd.Function):
    """Compute max_s q · d_s for each query row and document; the gradient flows only through the first maximal row."""

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
