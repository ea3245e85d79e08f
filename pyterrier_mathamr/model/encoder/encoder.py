"""The encoder of Figure 3.3: first states, L relational layers, the projection head, unit rows."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch import Tensor, nn

from pyterrier_mathamr.graph import GraphBatch
from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.variants.bags import WordBags
from pyterrier_mathamr.model.variants.text_vectors import TextVectors

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
            targets: int64 ``[t]``, distinct nodes, where only their states are wanted; the plan is theirs.

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
        self.text = TextVectors(config) if config.features == "text" else None
        if config.text_alone:
            return  # what the graph would need has no part in the vectors
        self.bags = WordBags(config) if config.word_residual else None
        if config.bags_alone:
            self.initial = InitialState(
                config.replace(initialisation="mean", learned="none", aggregation="mean"), num_labels
            )
            return
        self.initial = InitialState(config, num_labels)
        self.attributes = nn.Parameter(torch.empty(num_relations, config.hidden)) if config.edge_attributes else None
        if self.attributes is not None:
            nn.init.xavier_uniform_(self.attributes)
        self.layers = nn.ModuleList(RelationalLayer(config, num_relations, convolution) for _ in range(config.layers))
        self.head = ProjectionHead(config)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Encode a batch.

        Args:
            batch: graphs end to end.

        Returns:
            float32 ``[r, d_p]``, rows of unit length in the order of ``batch.virtual``.
        """
        if self.text is not None and self.text.alone:
            return F.normalize(self.text.finish(None, batch), dim=1)  # [r, d_p]
        if self.bags is not None and self.bags.alone:
            return F.normalize(self.bags(None, self.initial.labels(batch.nodes), batch), dim=1)  # [r, d_p]
        h = self.initial(batch.nodes, batch.edge_index, batch.virtual, batch.kinds, batch.is_virtual)  # [N, d]
        h = h if self.text is None else self.text.begin(h, batch)
        h = self._pass_messages(h, batch)  # [r, d]
        z = self.head(h)  # [r, d_p]
        z = z if self.bags is None else self.bags(z, self.initial.labels(batch.nodes), batch)
        return F.normalize(z if self.text is None else self.text.finish(z, batch), dim=1)

    def _pass_messages(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Apply the layers, the last one only where it is looked at: states ``[N, d]`` to ``[r, d]``, those of rows."""
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
