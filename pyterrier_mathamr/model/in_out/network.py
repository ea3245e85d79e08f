"""The encoder of one kind of graph: label embeddings, R-GCN layers, vectors of unit length (equation 1)."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.formula.packed_trees import Packed
from pyterrier_mathamr.model.encoder.plan import RelationPlan
from pyterrier_mathamr.model.encoder.rgcn import RelationalGraphConv

from .graphs import RELATIONS, Graphs
from .options import InOutOptions
from .pairings import kinds_of


class GraphEncoder(nn.Module):
    """h'ᵢ = σ( Σ_r mean_{j ∈ N_i^r} W_r h_j + W_0 h_i + b ), with ReLU between the layers (equation 1)."""

    def __init__(self, labels: int, relations: int, options: InOutOptions) -> None:
        super().__init__()
        width = options.width
        self.labels = nn.Embedding(labels, width)
        nn.init.normal_(self.labels.weight, std=width**-0.5)
        self.layers = nn.ModuleList(RelationalGraphConv(width, width, relations) for _ in range(options.layers))

    def forward(self, graphs: Graphs) -> Tensor:
        """Encode the nodes of graphs: float32 ``[n, d]``, rows of unit length."""
        device = self.labels.weight.device
        h = self.labels(torch.from_numpy(graphs.labels).to(device))  # [n, d]
        edge_index, edge_type = (tensor.to(device) for tensor in graphs.edges())
        plan = RelationPlan.build(edge_index, edge_type, h.size(0), h.dtype) if len(self.layers) else None
        for number, layer in enumerate(self.layers):
            h = layer(torch.relu(h) if number else h, edge_index, edge_type, plan=plan)
        return F.normalize(h, dim=1)


def encoders(options: InOutOptions, labels: dict[Packed, int]) -> nn.ModuleDict:
    """Build the encoders of a condition with random weights from ``options.seed``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        made: dict[str, nn.Module] = {
            kind: GraphEncoder(labels[kind], RELATIONS[kind], options) for kind in kinds_of(options.condition)
        }
    return nn.ModuleDict(made)
