"""The training objective: InfoNCE over the MaxSim matrix and over document vectors (MathAMR+, 3.6-3.8, 4.1, 4.2).

::

    rows of a batch  [ B questions | B answers | H hard negatives ]
                       └──────── β L_MaxSim + (1 - β) L_doc ─────┘
                              over B × (B + H) scores
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from .config import MathAMRConfig
from .encoder.maxsim import maxsim_matrix
from .errors import ModelError
from .pairs import TrainingBatch
from .score_fitting import LearnedWeights


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
    """The rows of B questions and of m documents; the first B documents answer the questions.

    Attributes:
        queries: float ``[q_total, d]``, the rows of the questions end to end.
        query_offsets: int64 ``[B + 1]``.
        rows: float ``[r, d]``, the rows of the documents end to end.
        offsets: int64 ``[m + 1]``.
        allowed: bool ``[B, m]``, see :func:`info_nce`.
        kinds: int64 ``[q_total]``, the kind of each question's row, for a score with weights.
    """

    queries: Tensor
    query_offsets: Tensor
    rows: Tensor
    offsets: Tensor
    allowed: Tensor | None = None
    kinds: Tensor | None = None

    @classmethod
    def of(cls, batch: TrainingBatch, rows: Tensor) -> Contrast:
        """Divide the rows of all graphs of a batch."""
        size, posts = len(batch.pairs), 2 * len(batch.pairs) + len(batch.others)
        offsets = batch.graphs.offsets.to(rows.device)
        middle, end = int(batch.graphs.offsets[size]), int(batch.graphs.offsets[posts])
        allowed, kinds = batch.allowed.to(rows.device), batch.graphs.kinds[:middle].to(rows.device)
        of_documents = offsets[size : posts + 1] - middle
        return cls(rows[:middle], offsets[: size + 1], rows[middle:end], of_documents, allowed, kinds)


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
