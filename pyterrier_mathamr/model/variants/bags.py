"""Rows as bags of words: the sum of the label vectors of a row's nodes, projected.

::

    b = Σ label vectors of the row's content nodes;  of a document: Σ b of its formulas and sentences
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
from pyterrier_mathamr.model.config import MathAMRConfig
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
        """Compute unit(P b) from the vector of each node's label: float ``[N, d]`` to ``[r, d_p]``."""
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
        rows: Tensor = self.bags(self.initial.labels(batch.nodes), batch)
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
        rows: Tensor = self.bags(self.initial.labels(batch.nodes), batch)
        rows = rows + self.bags.share[batch.kinds].unsqueeze(1) * z
        return rows if self.formulas is None else rows + self.formulas(batch)


def _formula_vectors(config: MathAMRConfig) -> FormulaVectors | None:
    return FormulaVectors(config) if config.text.formula_vectors != "none" else None


def bags_of(labels: Tensor, batch: GraphBatch) -> Tensor:
    """Sum the label vectors of the content nodes of each row.

    Args:
        labels: float ``[N, d]``, the vector of each node's label; those of virtual nodes are not read.
        batch: graphs with the whole hierarchy of virtual nodes.

    Returns:
        float ``[r, d]``.
    """
    lower = batch.kinds != VirtualKind.DOCUMENT
    content = ~batch.is_virtual[batch.edge_index[0]]
    source, row = members(labels.size(0), batch.edge_index[:, content], batch.virtual[lower])
    sums = labels.new_zeros(int(lower.sum()), labels.size(1)).index_add(0, row, labels.index_select(0, source))
    bags = labels.new_zeros(lower.numel(), labels.size(1)).masked_scatter(lower.unsqueeze(1), sums)
    posts = torch.arange(len(batch), device=labels.device)
    post = torch.repeat_interleave(posts, batch.offsets.diff())  # [r]
    whole = labels.new_zeros(len(batch), labels.size(1)).index_add(0, post, bags)
    return torch.where(lower.unsqueeze(1), bags, whole.index_select(0, post))


def weighted_labels(vectors: Tensor, tensors: Sequence[GraphTensors], seed: int) -> Tensor:
    """Scale each label's vector to the length of its inverse document frequency, log((m + 1) / (df + ½)).

    Args:
        vectors: float32 ``[num_labels, d]``, of similar lengths; zero for labels without a word, which get random
            vectors.
        tensors: of the m training posts.
        seed: of the random vectors.

    Returns:
        float32 ``[num_labels, d]``, of mean length 1.
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
    """Yield the unit bags of some posts at a time, float32 ``[r, d]``, and their kinds, int64 ``[r]``."""
    for start in range(0, len(tensors), _AT_ONCE):
        batch = collate(tensors[start : start + _AT_ONCE])
        yield F.normalize(bags_of(labels[batch.nodes], batch), dim=1), batch.kinds
