"""The two contrastive losses over a matrix of scores (MaRF, equation 3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pyterrier_mathamr.model.training.losses import info_nce

from .config import Loss

_LEAST = 1e-6


def ratio_loss(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Compute L = mean of −ln( S⁺ / (S⁺ + Σ S⁻) ) as printed, scores below 1e-6 raised to it (MaRF, equation 3)."""
    kept = scores.clamp_min(_LEAST)
    if allowed is not None:
        diagonal = torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
        kept = kept.masked_fill(~(allowed | diagonal), 0.0)
    return -(kept.diagonal().log() - kept.sum(dim=1).log()).mean()


class ScoreLoss(nn.Module):
    """The loss of a batch: softmax with a learned temperature, or the ratio."""

    def __init__(self, loss: Loss, temperature: float) -> None:
        super().__init__()
        self.loss = loss
        self.log_temperature = nn.Parameter(torch.tensor(math.log(temperature)))

    @property
    def temperature(self) -> Tensor:
        """τ, a scalar above 0."""
        return self.log_temperature.exp()

    def forward(self, scores: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Compute a scalar of scores ``[B, m]``; see :func:`ratio_loss`."""
        if self.loss == "ratio":
            return ratio_loss(scores, allowed)
        return info_nce(scores, self.temperature, allowed)
