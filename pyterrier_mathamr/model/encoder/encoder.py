"""The encoder of Figure 3.3, in the paper's order.

::

    InitialState  ──h⁰──▶  L × RelationalLayer  ──hᴸ──▶  ProjectionHead  ──z──▶  z / ‖z‖
    labels, 4.3.4          equation 3.1                   equation 3.3            one unit row for each retrieval node
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.graph import GraphBatch
from pyterrier_mathamr.model.config.config import MathAMRConfig

from .initial import InitialState
from .plan import RelationPlan
from .rgcn import RelationalGraphConv

Convolution = Callable[[int, int, int], nn.Module]
"""Makes a layer from (in_channels, out_channels, num_relations), called with ``(x, edge_index, edge_type)``."""


class RelationalLayer(nn.Module):
    """One layer with its residual: h + GELU(RGCN(LayerNorm(h))) (MathAMR+, eq. 3.1).

    Args:
        config: ``hidden`` and ``bases``.
        num_relations: R.
        convolution: another convolution in place of the R-GCN, such as a class of PyTorch Geometric.
    """

    def __init__(self, config: MathAMRConfig, num_relations: int, convolution: Convolution | None = None) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.conv: nn.Module = (
            RelationalGraphConv(config.hidden, config.hidden, num_relations, config.bases)
            if convolution is None
            else convolution(config.hidden, config.hidden, num_relations)
        )

    def forward(
        self,
        h: Tensor,
        batch: GraphBatch,
        plan: RelationPlan,
        attributes: Tensor | None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Pass messages once.

        Args:
            h: float32 ``[N, d]``.
            batch: the edges.
            plan: the edges, sorted.
            attributes: float32 ``[R, d]``, a learned vector for each relation, or ``None``.
            targets: int64 ``[t]``, distinct nodes: compute only their states, with a plan made for them.

        Returns:
            float32 ``[N, d]``, or ``[t, d]``.
        """
        x = self.norm(h)  # [N, d]
        if isinstance(self.conv, RelationalGraphConv):
            x = self.conv(x, batch.edge_index, batch.edge_type, attributes=attributes, plan=plan, targets=targets)
        else:
            x = self.conv(x, batch.edge_index, batch.edge_type)
            x = x if targets is None else x.index_select(0, targets)
        return (h if targets is None else h.index_select(0, targets)) + F.gelu(x)


class ProjectionHead(nn.Module):
    """z = LayerNorm(W₂ GELU(LayerNorm(W₁ h + b₁)) + b₂) (MathAMR+, eq. 3.3).

    Args:
        config: ``hidden`` d and ``projection`` d_p.
    """

    def __init__(self, config: MathAMRConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.hidden, config.hidden)
        self.inner_norm = nn.LayerNorm(config.hidden)
        self.outer = nn.Linear(config.hidden, config.projection)
        self.outer_norm = nn.LayerNorm(config.projection)

    def forward(self, h: Tensor) -> Tensor:
        """Project: float32 ``[r, d]`` to float32 ``[r, d_p]``."""
        z: Tensor = self.outer_norm(self.outer(F.gelu(self.inner_norm(self.inner(h)))))
        return z


class Encoder(nn.Module):
    """Graphs to unit vectors, one for each retrieval node (MathAMR+, Figure 3.3).

    Args:
        config: the model's options.
        num_labels: size of the vocabulary of node labels.
        num_relations: R, inverse relations included.
        convolution: another convolution in place of the R-GCN; it gets no edge attributes.
    """

    def __init__(
        self, config: MathAMRConfig, num_labels: int, num_relations: int, convolution: Convolution | None = None
    ) -> None:
        super().__init__()
        self.initial = InitialState(config, num_labels)
        self.attributes = nn.Parameter(torch.empty(num_relations, config.hidden)) if config.edge_attributes else None
        if self.attributes is not None:
            nn.init.xavier_uniform_(self.attributes)
        self.layers = nn.ModuleList(RelationalLayer(config, num_relations, convolution) for _ in range(config.layers))
        self.head = ProjectionHead(config)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Encode a batch of graphs: float32 ``[r, d_p]``, unit rows in the order of ``batch.virtual``."""
        return F.normalize(self.project(batch), dim=1)

    def project(self, batch: GraphBatch) -> Tensor:
        """Compute the rows before they are normalised, z of equation 3.3: float ``[r, d_p]``."""
        h = self.first_states(batch)  # [N, d]
        h = self.pass_messages(h, batch)  # [r, d]
        z: Tensor = self.head(h)  # [r, d_p]
        return z

    def first_states(self, batch: GraphBatch) -> Tensor:
        """Compute h⁰: float ``[N, d]``."""
        h: Tensor = self.initial(batch)
        return h

    def pass_messages(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Apply the layers, the last one only for retrieval nodes: h⁰ ``[N, d]`` to their hᴸ ``[r, d]``."""
        if len(self.layers) == 0:
            return h.index_select(0, batch.virtual)
        *earlier, last = self.layers
        if earlier:
            plan = RelationPlan.build(batch.edge_index, batch.edge_type, h.size(0))
        for layer in earlier:
            h = layer(h, batch, plan, self.attributes)  # [N, d]
        targets, place = torch.unique(batch.virtual, return_inverse=True)
        plan = RelationPlan.build(batch.edge_index, batch.edge_type, h.size(0), targets=targets)
        h = last(h, batch, plan, self.attributes, targets)  # [t, d]
        return h.index_select(0, place)
