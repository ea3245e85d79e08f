"""The training objective: InfoNCE over MaxSim and over document vectors (MathAMR+, 3.5-3.8, 4.1, 4.2).

::

    rows of a batch  [ B questions | B answers | H hard negatives ]
                       └──────── β L_MaxSim + (1 - β) L_doc ─────┘
                              over B × (B + H) scores

The rows of many posts are concatenated; post ``i`` starts at ``offsets[i]``. Nothing is masked with zeros: a missing
row is minus infinity, so a pair with only negative similarities has a negative score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from .config import MathAMRConfig
from .errors import ModelError
from .exact import ScoreWeights, check_ragged, legible

_CHUNK = 1 << 22  # similarities in memory at once: 16 MiB of float32


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
        best = queries.new_full((queries.size(0), offsets.numel() - 1), -math.inf)  # [q_total, m]
        where = torch.zeros(best.shape, dtype=torch.int32, device=best.device)
        for documents, index in _by_length(offsets):  # [g], [g, L] rows, -1 where a document is shorter
            missing = (index < 0).flatten()
            columns = rows.index_select(0, index.clamp_min(0).flatten()).t()  # [d, g·L]
            for part in _chunks(queries, index.numel()):
                similarity = (queries[part] @ columns).masked_fill_(missing, -math.inf)
                value, position = similarity.view(-1, *index.shape).max(dim=2)  # [chunk, g]
                best[part.unsqueeze(1), documents] = value
                row = index.expand(part.numel(), -1, -1).gather(2, position.unsqueeze(2)).squeeze(2)
                where[part.unsqueeze(1), documents] = row.to(torch.int32)
        ctx.save_for_backward(queries, rows, where, offsets)
        return best

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
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


def info_nce(scores: Tensor, temperature: Tensor | float, allowed: Tensor | None = None) -> Tensor:
    """Compute L = -1/B Σᵢ log( exp(S_ii/τ) / Σⱼ exp(S_ij/τ) ) (MathAMR+, eq. 3.6).

    Args:
        scores: float ``[B, m]`` with m >= B; document i is the answer of query i.
        temperature: τ, above 0.
        allowed: bool ``[B, m]``; where false, document j is left out of the sum for query i. The diagonal is always
            in it.

    Returns:
        A scalar.

    Raises:
        ModelError: fewer documents than queries, or ``allowed`` has another shape.
    """
    if scores.dim() != 2 or scores.size(0) > scores.size(1):
        raise ModelError(f"scores has shape {tuple(scores.shape)}; expected [B, m] with m >= B.")
    blocked = torch.isneginf(scores)
    if allowed is not None:
        if allowed.shape != scores.shape:
            raise ModelError(f"allowed has shape {tuple(allowed.shape)}; expected {tuple(scores.shape)}.")
        diagonal = torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
        blocked = blocked | ~(allowed | diagonal)
    # Divide before masking: the temperature's gradient multiplies scores, and infinity times zero is not a number.
    logits = (scores.masked_fill(blocked, 0.0) / temperature).masked_fill(blocked, -math.inf)
    return F.cross_entropy(logits, torch.arange(scores.size(0), device=scores.device))


def normalise(scores: Tensor, query_offsets: Tensor) -> Tensor:
    """Divide each query's scores, ``[b, m]``, by the number of its virtual nodes (MathAMR+, eq. 3.7)."""
    return scores / query_offsets.diff().clamp_min(1).unsqueeze(1)


class Contrast(NamedTuple):
    """The rows of B questions and of m documents; the first B documents answer the questions."""

    queries: Tensor  # float [q_total, d], the rows of the questions end to end
    query_offsets: Tensor  # int64 [B + 1]
    rows: Tensor  # float [r, d], the rows of the documents end to end
    offsets: Tensor  # int64 [m + 1]
    allowed: Tensor | None = None  # bool [B, m], see `info_nce`
    kinds: Tensor | None = None  # int64 [q_total], the kind of each question's row, for a score with weights


class LearnedWeights(nn.Module):
    """The weights in training: learned ones start at 1 and remain positive, numbers are fixed."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.means = config.score.kind_means
        start = ScoreWeights.of(config) or ScoreWeights()
        for name, option, value in (
            ("kinds", config.score.kind_weights, [start.formula, start.sentence, start.document]),
            ("blend", config.score.document_blend, start.blend),
        ):
            learned = nn.Parameter(torch.tensor(value).log()) if option == "learned" else None
            self.register_parameter(f"log_{name}", learned)
            fixed = None if isinstance(option, str) else torch.tensor(value)
            self.register_buffer(f"fixed_{name}", fixed, persistent=False)

    def of_rows(self, kinds: Tensor | None, offsets: Tensor) -> Tensor | None:
        """Return the weight of each query row, with gradient if it is learned; ``None`` where each is 1."""
        weights = self._value("kinds")
        if weights is None and not self.means:
            return None
        if kinds is None:
            raise ModelError("kinds is required because this model weights the rows of queries: pass int64 [q_total].")
        of_kinds = torch.ones(3, device=kinds.device) if weights is None else weights
        if not self.means:
            return of_kinds[kinds]
        sizes = offsets.diff()
        group = 3 * torch.repeat_interleave(torch.arange(len(sizes), device=kinds.device), sizes) + kinds
        return of_kinds[kinds] / torch.bincount(group, minlength=3 * len(sizes))[group]

    @property
    def blend(self) -> Tensor | None:
        """The weight of the product of document vectors, a scalar; ``None`` if the score is only MaxSim."""
        return self._value("blend")

    def _value(self, name: str) -> Tensor | None:
        logarithm: Tensor | None = getattr(self, f"log_{name}")
        fixed: Tensor | None = getattr(self, f"fixed_{name}")
        return fixed if logarithm is None else logarithm.exp()


def trained_config(config: MathAMRConfig, state: Mapping[str, Tensor]) -> MathAMRConfig:
    """Replace ``learned`` by the numbers that training found."""
    changes: dict[str, object] = {}
    for name, tensor in state.items():
        if name.endswith("weights.log_kinds"):
            changes["kind_weights"] = tuple(map(legible, tensor.exp().tolist()))
        elif name.endswith("weights.log_blend"):
            changes["document_blend"] = legible(tensor.exp().item())
    return config.replace(**changes) if changes else config


class ContrastiveLoss(nn.Module):
    """L = β L_MaxSim + (1 - β) L_doc with a learnable temperature τ = exp(t) (MathAMR+, 3.8, 4.1, 4.2)."""

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.beta, self.normalise_scores = config.training.beta, config.training.normalise_scores
        self.log_temperature = nn.Parameter(torch.tensor(math.log(config.training.temperature)))
        self.weights = LearnedWeights(config)

    @property
    def temperature(self) -> Tensor:
        """τ, a scalar above 0."""
        return self.log_temperature.exp()

    def forward(self, batch: Contrast) -> Tensor:
        """Compute L; a part of weight 0 is left out."""
        loss = batch.rows.new_zeros(())
        if self.beta > 0:
            loss = loss + self.beta * self.maxsim(batch)
        if self.beta < 1:
            loss = loss + (1 - self.beta) * self.document(batch)
        return loss

    def maxsim(self, batch: Contrast) -> Tensor:
        """Compute L_MaxSim, with the weights in the score that the configuration asks for."""
        queries, query_offsets, rows, offsets, allowed, kinds = batch
        weights = self.weights.of_rows(kinds, query_offsets)
        scores = maxsim_matrix(queries, query_offsets, rows, offsets, weights)  # [B, m]
        if self.weights.blend is not None:
            scores = scores + self.weights.blend * _document_scores(batch)
        if self.normalise_scores:
            scores = normalise(scores, query_offsets)
        return info_nce(scores, self.temperature, allowed)

    def document(self, batch: Contrast) -> Tensor:
        """Compute L_doc, of the last row where a post has no document vector."""
        return info_nce(_document_scores(batch), self.temperature, batch.allowed)


def _document_scores(batch: Contrast) -> Tensor:
    """Multiply the last row of each question by that of each document: float32 ``[B, m]``."""
    return batch.queries[batch.query_offsets[1:] - 1] @ batch.rows[batch.offsets[1:] - 1].T
