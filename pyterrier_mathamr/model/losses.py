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
from .errors import ShapeError
from .pairs import TrainingBatch
from .score_weights import LearnedWeights


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
        ShapeError: fewer documents than queries, or ``allowed`` has another shape.
    """
    if scores.dim() != 2 or scores.size(0) > scores.size(1):
        raise ShapeError("scores", tuple(scores.shape), "[B, m] with m >= B")
    blocked = torch.isneginf(scores)
    if allowed is not None:
        if allowed.shape != scores.shape:
            raise ShapeError("allowed", tuple(allowed.shape), str(tuple(scores.shape)))
        diagonal = torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
        blocked = blocked | ~(allowed | diagonal)
    # Divide before masking: the temperature's gradient multiplies scores, and infinity times zero is not a number.
    logits = (scores.masked_fill(blocked, 0.0) / temperature).masked_fill(blocked, -math.inf)
    return F.cross_entropy(logits, torch.arange(scores.size(0), device=scores.device))


def normalise(scores: Tensor, query_offsets: Tensor) -> Tensor:
    """Divide each query's scores by the number of its virtual nodes (MathAMR+, eq. 3.7).

    Args:
        scores: float ``[b, m]``.
        query_offsets: int64 ``[b + 1]``.
    """
    return scores / query_offsets.diff().clamp_min(1).unsqueeze(1)


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

    def forward(
        self,
        queries: Tensor,
        query_offsets: Tensor,
        rows: Tensor,
        offsets: Tensor,
        allowed: Tensor | None = None,
        kinds: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch of B pairs."""
        loss = rows.new_zeros(())
        if self.beta > 0:
            loss = loss + self.beta * self.maxsim_loss(queries, query_offsets, rows, offsets, allowed, kinds)
        if self.beta < 1:
            loss = loss + (1 - self.beta) * self.document_loss(queries, query_offsets, rows, offsets, allowed)
        return loss

    def maxsim_loss(
        self,
        queries: Tensor,
        query_offsets: Tensor,
        rows: Tensor,
        offsets: Tensor,
        allowed: Tensor | None = None,
        kinds: Tensor | None = None,
    ) -> Tensor:
        """Compute L_MaxSim alone, with the ``document_blend`` of the configuration; see :meth:`forward`."""
        scores = maxsim_matrix(
            queries, query_offsets, rows, offsets, self.weights.of_rows(kinds, query_offsets)
        )  # [B, B]
        if self.weights.blend is not None:
            scores = scores + self.weights.blend * _document_scores(queries, query_offsets, rows, offsets)
        if self.normalise_scores:
            scores = normalise(scores, query_offsets)
        return info_nce(scores, self.temperature, allowed)

    def document_loss(
        self, queries: Tensor, query_offsets: Tensor, rows: Tensor, offsets: Tensor, allowed: Tensor | None = None
    ) -> Tensor:
        """Compute L_doc alone; see :meth:`forward`."""
        return info_nce(_document_scores(queries, query_offsets, rows, offsets), self.temperature, allowed)


def _document_scores(queries: Tensor, query_offsets: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
    """Multiply the last row of each question by that of each document: float32 ``[B, m]``."""
    return queries[query_offsets[1:] - 1] @ rows[offsets[1:] - 1].T


def batch_loss(loss: ContrastiveLoss, batch: TrainingBatch, rows: Tensor) -> Tensor:
    """Compute the training loss of a batch."""
    total: Tensor = loss(*_posts(batch, rows))
    return total


class ValidationLoss(NamedTuple):
    """The mean loss of validation pairs.

    Attributes:
        loss: β L_MaxSim + (1 - β) L_doc.
        maxsim: L_MaxSim, whatever its weight.
        document: L_doc, likewise; that of the last row where a post has no document vector.
    """

    loss: float
    maxsim: float
    document: float


def validation_loss(loss: ContrastiveLoss, batch: TrainingBatch, rows: Tensor) -> ValidationLoss:
    """Compute the validation loss of a batch, of its posts alone; see :func:`batch_loss`."""
    posts = _posts(batch, rows)
    maxsim, document = loss.maxsim_loss(*posts).item(), loss.document_loss(*posts[:5]).item()
    return ValidationLoss(loss.beta * maxsim + (1 - loss.beta) * document, maxsim, document)


def _posts(batch: TrainingBatch, rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Take the arguments of :meth:`ContrastiveLoss.forward` from the rows of a batch."""
    size, posts = len(batch.pairs), 2 * len(batch.pairs) + len(batch.others)
    offsets = batch.graphs.offsets.to(rows.device)
    middle, end = int(batch.graphs.offsets[size]), int(batch.graphs.offsets[posts])
    allowed, kinds = batch.allowed.to(rows.device), batch.graphs.kinds[:middle].to(rows.device)
    return rows[:middle], offsets[: size + 1], rows[middle:end], offsets[size : posts + 1] - middle, allowed, kinds
