"""What training minimises, over the rows of a batch that lie end to end.

::

    rows of a batch   [ B questions ]   [ B right answers | H wrong answers ]

    triple     of each question  ln(1 + e^(S(q, p⁻) - S(q, p⁺)))          as published
    in-batch   of each question  all answers of the batch but those known to be right
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.model.encoder.maxsim import maxsim, maxsim_matrix
from pyterrier_mathamr.model.training.losses import info_nce


@dataclass(frozen=True, slots=True)
class Ragged:
    """The rows of several texts.

    Attributes:
        rows: float32 ``[r, d]``, end to end.
        offsets: int64 ``[m + 1]``.
    """

    rows: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, padded: Tensor, scoring: Tensor) -> Ragged:
        """Leave out the rows that do not score."""
        return cls(padded[scoring].float(), F.pad(scoring.sum(1).cumsum(0), (1, 0)))

    def text(self, i: int) -> Tensor:
        """Return the rows of one text."""
        return self.rows[int(self.offsets[i]) : int(self.offsets[i + 1])]

    def texts(self, places: list[int]) -> Ragged:
        """Return some of the texts, in another order."""
        parts = [self.text(i) for i in places]
        lengths = torch.tensor([0, *map(len, parts)], device=self.rows.device)
        return Ragged(torch.cat(parts), lengths.cumsum(0))


class PairwiseMaxSimLoss(nn.Module):
    """L = -ln( e^S(q, p⁺) / (e^S(q, p⁺) + e^S(q, p⁻)) ), the mean over triples (Zhong et al. 2022, section 3.2)."""

    def forward(self, queries: Ragged, documents: Ragged, wrong: list[int | None]) -> Tensor:
        """Compute the loss of a batch."""
        losses = []
        for i, place in enumerate(wrong):
            if place is not None:
                both = documents.texts([i, place])
                right, other = maxsim(queries.text(i), both.rows, both.offsets)
                losses.append(F.softplus(other - right))
        return torch.stack(losses).mean() if losses else queries.rows.sum() * 0.0


class InBatchMaxSimLoss(nn.Module):
    """L = -1/B Σᵢ ln( e^S_ii / Σⱼ e^S_ij ) over a batch and wrong answers, without others that are right."""

    def forward(self, queries: Ragged, documents: Ragged, allowed: Tensor) -> Tensor:
        """Compute the loss of a batch."""
        scores = maxsim_matrix(queries.rows, queries.offsets, documents.rows, documents.offsets)
        return info_nce(scores, 1.0, allowed)
