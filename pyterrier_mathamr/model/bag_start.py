"""The weights that a model of bags starts from: how much each label weighs, and which directions tell posts apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor

from pyterrier_mathamr.graph import MASK_ID, GraphTensors, collate

from .bags import bags_of

COMMON = 3
"""Principal directions that bags have in common and that P leaves out."""

_MASKED = 0.05  # length of the vector of a masked label: a row of masked nodes alone still has a direction
_AT_ONCE = 256


def weighted_labels(vectors: Tensor, tensors: Sequence[GraphTensors], seed: int) -> Tensor:
    """Give each label's vector the length of its inverse document frequency, log((m + 1) / (df + ½)).

    Args:
        vectors: float32 ``[num_labels, d]``, about as long as each other; zero for labels without a word, which get
            random ones.
        tensors: of the m training posts.
        seed: of the random vectors.

    Returns:
        float32 ``[num_labels, d]``, of length 1 in the mean.
    """
    posts = np.zeros(len(vectors), dtype=np.int64)
    for post in tensors:
        posts[np.unique(post.nodes)] += 1
    generator = torch.Generator().manual_seed(seed)
    drawn = F.normalize(torch.randn(vectors.shape, generator=generator), dim=1)
    lengths = torch.from_numpy(np.log((len(tensors) + 1) / (posts + 0.5))).float().clamp_min(0)
    weighted = torch.where((vectors == 0).all(1, keepdim=True), drawn, vectors) * lengths.unsqueeze(1)
    weighted /= weighted.norm(dim=1).mean().clamp_min(torch.finfo(torch.float32).tiny)
    weighted[MASK_ID] = _MASKED * drawn[MASK_ID]
    return weighted


def bag_blocks(labels: Tensor, tensors: Sequence[GraphTensors]) -> Iterator[tuple[Tensor, Tensor]]:
    """Make the bags of some posts at a time: float32 ``[r, d]``, rows of unit length, and their kinds, int64 ``[r]``.

    Args:
        labels: float32 ``[num_labels, d]``.
        tensors: of the posts.
    """
    for start in range(0, len(tensors), _AT_ONCE):
        batch = collate(tensors[start : start + _AT_ONCE])
        yield F.normalize(bags_of(labels[batch.nodes], batch), dim=1), batch.kinds
