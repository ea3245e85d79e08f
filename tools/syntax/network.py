"""The network of `pyterrier_mathamr.amr.dependency.syntax` with gradients.

As in inference, the forward pass rounds activations and weights to 8 bits; the gradient passes through the rounding.
"""

from __future__ import annotations

import torch
from torch import nn

WIDTH, ARC, LABEL, DILATIONS, REACH = 128, 96, 96, (1, 2, 4, 1), 24


def rounded(x: torch.Tensor, low: float) -> torch.Tensor:
    """Clip to [low, 1] and round to steps of 1/127."""
    x = x.clamp(low, 1.0)
    return x + (torch.round(x * 127) / 127 - x).detach()


class Rounded(nn.Linear):
    """A linear layer whose weight is rounded to 8 bits with one scale."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer."""
        scale = self.weight.abs().max().detach() / 127
        weight = self.weight + (torch.round(self.weight / scale) * scale - self.weight).detach()
        return nn.functional.linear(x, weight, self.bias)


class Net(nn.Module):
    """Tagger and parser.

    Args:
        entries: size of the vocabulary of features; 0 is the unknown feature.
        tags: number of tags.
        relations: number of relations.
    """

    def __init__(self, entries: int, tags: int, relations: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(entries, WIDTH)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.wide = nn.ModuleList(Rounded(3 * WIDTH, WIDTH) for _ in DILATIONS)
        self.back = nn.ModuleList(Rounded(WIDTH, WIDTH) for _ in DILATIONS)
        self.tag = Rounded(WIDTH, tags)
        self.dependent, self.head = Rounded(WIDTH, ARC), Rounded(WIDTH, ARC)
        self.root = nn.Parameter(torch.zeros(ARC))
        self.distance = nn.Parameter(torch.zeros(2 * REACH + 1))
        self.label_dependent, self.label_head = Rounded(WIDTH, LABEL), Rounded(WIDTH, LABEL)
        self.root_label = nn.Parameter(torch.zeros(LABEL))
        self.label = Rounded(LABEL, relations)
        self.drop = nn.Dropout(0.25)

    def tokens(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute the hidden states.

        Args:
            ids: int64 ``[sentences, tokens, features]``.
            mask: float32 ``[sentences, tokens, 1]``, 1 for a token and 0 after the end of a sentence.

        Returns:
            float32 ``[sentences, tokens, width]``.
        """
        rows = self.embedding(ids)
        h = rounded((rows + (torch.round(rows.clamp(-1, 1) * 127) / 127 - rows).detach()).sum(2), -1.0)
        h = self.drop(h) * mask
        for wide, back, dilation in zip(self.wide, self.back, DILATIONS, strict=True):
            left = nn.functional.pad(h, (0, 0, dilation, 0))[:, : h.shape[1]]
            right = nn.functional.pad(h, (0, 0, 0, dilation))[:, dilation:]
            u = rounded(wide(torch.cat([left, h, right], 2)), 0.0)
            h = rounded(h + back(self.drop(u)), -1.0) * mask
        return self.drop(h)

    def arcs(self, h: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Score heads: float32 ``[sentences, dependents, 1 + heads]``; the first head is the root."""
        dependent = rounded(self.dependent(h), -1.0)
        heads = torch.cat([rounded(self.root, -1.0).expand(h.shape[0], 1, -1), rounded(self.head(h), -1.0)], 1)
        places = torch.arange(h.shape[1])
        gap = (places[None, :] - places[:, None]).clamp(-REACH, REACH) + REACH  # [dependent, head]
        scores = dependent @ heads.transpose(1, 2) + nn.functional.pad(self.distance[gap], (1, 0))
        no_head = nn.functional.pad(mask[:, None, :, 0] == 0, (1, 0))
        return scores.masked_fill(no_head, -1e9)

    def labels(self, h: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
        """Score relations to given heads: float32 ``[sentences, dependents, relations]``."""
        from_head = torch.cat([self.root_label.expand(h.shape[0], 1, -1), self.label_head(h)], 1)
        chosen = from_head.gather(1, (heads + 1)[..., None].expand(-1, -1, LABEL))
        return self.label(self.drop(rounded(self.label_dependent(h) + chosen, 0.0)))

    def loss(self, ids: torch.Tensor, tags: torch.Tensor, heads: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """Sum the cross-entropies of heads, relations of the right heads, and (half) tags.

        Args:
            ids: int64 ``[sentences, tokens, features]``.
            tags: int64 ``[sentences, tokens]``, -100 after the end of a sentence, as in the other two.
            heads: places of the heads, -1 for the root.
            relations: the relations.
        """
        mask = (tags >= 0)[..., None].float()
        h = self.tokens(ids, mask)
        entropy = nn.functional.cross_entropy
        columns = torch.where(heads == -100, -100, heads + 1)
        return (
            entropy(self.arcs(h, mask).flatten(0, 1), columns.flatten())
            + entropy(self.labels(h, heads.clamp(min=-1)).flatten(0, 1), relations.flatten())
            + 0.5 * entropy(self.tag(h).flatten(0, 1), tags.flatten())
        )
