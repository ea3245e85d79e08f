"""The contrast of nodes (Amador and Zanibbi, ICTIR 2025, equations 2 and 3).

For a node i of formula f's first graph, z⁺ is the node of f's second graph most similar to it, and zₖ⁻ that of the
second graph of each other formula k of the batch::

    ℓᵢ = -log( exp(zᵢ·z⁺/τ) / Σₖ exp(zᵢ·zₖ⁻/τ) )            the positive is not in the sum, as printed: ℓᵢ can be < 0
    L  = ½ ( mean ℓᵢ over the nodes of SLGs + mean ℓᵢ over the nodes of OPGs )
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pyterrier_mathamr.model.encoder.maxsim import best_matches

from .pairings import GraphName, Pairing


class Block(NamedTuple):
    """The nodes of one graph of each of the N formulas of a batch.

    Attributes:
        rows: float32 ``[r, d]``, of unit length.
        offsets: int64 ``[N + 1]``.
    """

    rows: Tensor
    offsets: Tensor


def contrast(
    blocks: Mapping[GraphName, Block],
    pairings: Sequence[Pairing],
    temperature: float = 0.1,
    positive_in_sum: bool = False,
) -> Tensor:
    """Compute L of equation 3."""
    by_first: dict[GraphName, list[GraphName]] = {}
    for first, second in pairings:
        by_first.setdefault(first, []).append(second)
    halves = []
    for first, seconds in by_first.items():
        rows, offsets = blocks[first]
        count = offsets.numel() - 1
        formula = torch.repeat_interleave(torch.arange(count, device=rows.device), offsets.diff())  # [M]
        best = best_matches(rows, *_joined([blocks[name] for name in seconds]))  # [M, seconds · N]
        logits = best.view(-1, len(seconds), count) / temperature
        mine = formula.view(-1, 1, 1).expand(-1, len(seconds), 1)
        positive = logits.gather(2, mine).squeeze(2)  # [M, seconds]
        summed = logits if positive_in_sum else logits.scatter(2, mine, -torch.inf)
        halves.append((summed.logsumexp(2) - positive).mean())
    return torch.stack(halves).mean()


def _joined(blocks: Sequence[Block]) -> Block:
    """Lay blocks end to end."""
    offsets, base = [blocks[0].offsets[:1]], 0
    for block in blocks:
        offsets.append(block.offsets[1:] + base)
        base += block.rows.size(0)
    return Block(torch.cat([block.rows for block in blocks]), torch.cat(offsets))
