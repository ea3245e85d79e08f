"""Vectors of texts with gradient, and the two losses that bi-encoders of the two-step search take in turn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyterrier_mathamr._common.errors import require

from .networks import mixed

_MARGIN, _SCALE = 0.5, 20.0
_LOSSES = "sentence_transformers.sentence_transformer.losses"

Pair = tuple[str, str]


class Batch(NamedTuple):
    """Similar pairs, and pairs that are not similar."""

    similar: list[Pair]
    others: list[Pair]


class InMixedPrecision(torch.nn.Module):
    """A ``SentenceTransformer`` in bfloat16 where its processor multiplies in it, whose vectors are float32."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Add ``sentence_embedding``, float32 ``[n, d]``."""
        with mixed(self.network):
            found: dict[str, Any] = self.network(features)
        return {**found, "sentence_embedding": found["sentence_embedding"].float()}

    def features(self, texts: Sequence[str]) -> dict[str, Any]:
        """Tokenise texts, on the device of the network."""
        device = self.network.device
        found = self.network.preprocess(list(texts))
        return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in found.items()}

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Encode texts: float32 ``[n, d]``, with gradient."""
        found: Tensor = self(self.features(texts))["sentence_embedding"]
        return found


class PairLosses:
    """``OnlineContrastiveLoss`` of all pairs of a batch, and ``MultipleNegativesRankingLoss`` of the similar ones."""

    def __init__(self, network: Any) -> None:
        library: Any = require(_LOSSES, "answers")
        self.model = InMixedPrecision(network)
        self._contrastive = library.OnlineContrastiveLoss(self.model, margin=_MARGIN)
        self._ranking = library.MultipleNegativesRankingLoss(self.model, scale=_SCALE)

    def of_batch(self, batch: Batch, step: int) -> Tensor:
        """Compute the contrastive loss in even steps, the ranking loss in odd ones."""
        return self.ranking(batch.similar) if step % 2 and batch.similar else self.contrastive(batch)

    def contrastive(self, batch: Batch) -> Tensor:
        """Compute the contrastive loss; pairs that are far on their side already add nothing."""
        if not any(batch):
            return torch.zeros(())
        labels = torch.tensor([1] * len(batch.similar) + [0] * len(batch.others), device=self.model.network.device)
        found: Tensor = self._contrastive(self._columns([*batch.similar, *batch.others]), labels)
        return found

    def ranking(self, pairs: Sequence[Pair]) -> Tensor:
        """Compute the ranking loss of similar pairs: the right texts of the others are the negatives of each."""
        found: Tensor = self._ranking(self._columns(pairs), None)
        return found

    def held_out(self, pairs: Sequence[Pair], batch_size: int) -> float:
        """Compute the mean ranking loss of batches of held-out pairs, without gradient."""
        starts = [*range(0, len(pairs), batch_size), len(pairs)]
        with torch.no_grad():
            return float(np.mean([float(self.ranking(pairs[start:end])) for start, end in pairwise(starts)]))

    def _columns(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        return [self.model.features([pair[side] for pair in pairs]) for side in (0, 1)]


def random_batches(
    pairs: Sequence[Pair], known: set[Pair], batch_size: int, random: np.random.Generator
) -> list[Batch]:
    """Cut pairs into batches in random order, with a random right text of the others as a negative of each."""
    right = [pair[1] for pair in pairs]
    order = random.permutation(len(pairs)).tolist()
    found = []
    for start in range(0, len(order), batch_size):
        similar = [pairs[i] for i in order[start : start + batch_size]]
        drawn = [right[i] for i in random.integers(len(right), size=len(similar))]
        others = [(left, other) for (left, _), other in zip(similar, drawn, strict=True)]
        others = [(a, b) for a, b in others if a != b and (a, b) not in known and (b, a) not in known]
        found.append(Batch(similar, others))
    return found
