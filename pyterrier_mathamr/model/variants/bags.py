"""Rows as bags of words: the sum of the label vectors of a row's nodes, projected.

::

    b = Σ n label vector, over the labels that occur n times in the row's content nodes;
        of a document: over the nodes of all its formulas and sentences
    row = unit(P b) + s_k unit(z)                    z: what the graph makes of it; s_k starts at 0

The length of a label's vector is its weight, and starts as its inverse document frequency. P starts as the principal
directions of the training posts' bags without the first few, which all posts have in common (Arora et al., ICLR 2017;
Mu and Viswanath, ICLR 2018). So at step 0 a row is a weighted average of word vectors, and what training adds to it is
small; the two layers of the projection head would leave nothing of the word vectors' geometry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.graph import MASK_ID, GraphBatch, GraphTensors, VirtualKind, collate
from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.encoder.encoder import Encoder
from pyterrier_mathamr.model.encoder.initial import InitialState, members

from .formula_rows import FormulaVectors

COMMON = 3
"""Principal directions that bags have in common and that P leaves out."""

_MASKED = 0.05  # length of the vector of a masked label: a row of masked nodes alone still has a direction
_AT_ONCE = 256


class WordBags(nn.Module):
    """P and s of the equations above.

    Args:
        config: ``hidden`` d, ``projection`` d_p and ``layers``.
    """

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.project = nn.Linear(config.hidden, config.projection, bias=False)
        if config.layers:
            self.share = nn.Parameter(torch.zeros(len(VirtualKind)))

    def forward(self, labels: Tensor, batch: GraphBatch) -> Tensor:
        """Compute unit(P b) from the vector of each label: float ``[num_labels, d]`` to ``[r, d_p]``."""
        return F.normalize(self.project(bags_of(labels, batch)), dim=1)


class BagsAlone(nn.Module):
    """The network of ``word_residual`` without layers: row = unit(P b), and what ``formula_vectors`` adds."""

    def __init__(self, config: MathAMRConfig, num_labels: int) -> None:
        super().__init__()
        self.bags = WordBags(config)
        self.initial = InitialState(config.replace(initialisation="mean", learned="none"), num_labels)
        self.formulas = _formula_vectors(config)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Encode a batch of graphs: float32 ``[r, d_p]``, unit rows."""
        rows: Tensor = self.bags(self.initial.labels.weight, batch)
        return rows if self.formulas is None else F.normalize(rows + self.formulas(batch), dim=1)


class BagEncoder(Encoder):
    """The paper's encoder, whose vectors are added to bags of words."""

    def __init__(self, config: MathAMRConfig, num_labels: int, num_relations: int) -> None:
        bags = WordBags(config)
        super().__init__(config, num_labels, num_relations)
        self.bags, self.formulas = bags, _formula_vectors(config)

    def project(self, batch: GraphBatch) -> Tensor:
        """Compute unit(P b) + s_k unit(z), and what ``formula_vectors`` adds: float ``[r, d_p]``."""
        z = F.normalize(super().project(batch), dim=1)  # [r, d_p]
        rows: Tensor = self.bags(self.initial.labels.weight, batch)
        rows = rows + self.bags.share[batch.kinds].unsqueeze(1) * z
        return rows if self.formulas is None else rows + self.formulas(batch)


def _formula_vectors(config: MathAMRConfig) -> FormulaVectors | None:
    return FormulaVectors(config) if config.text.formula_vectors != "none" else None


def bags_of(labels: Tensor, batch: GraphBatch) -> Tensor:
    """Sum the vectors of the labels of each row, the document's over the nodes of all formulas and sentences."""
    node, row = _members(batch)
    post = torch.repeat_interleave(torch.arange(len(batch), device=row.device), batch.offsets.diff())  # [r]
    document = batch.offsets[1:] - 1
    rows, counts = torch.unique(
        torch.cat([row, document[post[row]]]) * len(labels) + batch.nodes[node].repeat(2), return_counts=True
    )
    starts = torch.searchsorted(rows, torch.arange(len(post), device=row.device) * len(labels))
    return F.embedding_bag(rows % len(labels), labels, starts, mode="sum", per_sample_weights=counts.to(labels.dtype))


def _members(batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """List the content nodes of formulas and sentences, and the row of each."""
    lower = (batch.kinds != VirtualKind.DOCUMENT).nonzero().squeeze(1)
    content = ~batch.is_virtual[batch.edge_index[0]]
    node, row = members(batch.nodes.numel(), batch.edge_index[:, content], batch.virtual[lower])
    return node, lower[row]


def weighted_labels(vectors: Tensor, tensors: Sequence[GraphTensors], seed: int) -> Tensor:
    """Scale each label's vector to the length of its inverse document frequency, log((m + 1) / (df + ½))."""
    posts = np.zeros(len(vectors), dtype=np.int64)
    for post in tensors:
        posts[np.unique(post.nodes)] += 1
    drawn = F.normalize(torch.randn(vectors.shape, generator=torch.Generator().manual_seed(seed)), dim=1)
    rarity = torch.from_numpy(np.log((len(tensors) + 1) / (posts + 0.5))).float().clamp_min(0).unsqueeze(1)
    weighted = torch.where((vectors == 0).all(1, keepdim=True), drawn, vectors) * rarity
    weighted /= weighted.norm(dim=1).mean().clamp_min(torch.finfo(torch.float32).tiny)
    weighted[MASK_ID] = _MASKED * drawn[MASK_ID]
    return weighted


def bag_blocks(labels: Tensor, tensors: Sequence[GraphTensors]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the unit bags of some posts at a time, float32 ``[r, d]``, and their kinds, int64 ``[r]``."""
    for start in range(0, len(tensors), _AT_ONCE):
        batch = collate(tensors[start : start + _AT_ONCE])
        yield F.normalize(bags_of(labels, batch), dim=1), batch.kinds
