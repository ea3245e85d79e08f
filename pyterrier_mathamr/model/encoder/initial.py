"""The state of each node before the first layer: an embedding, or a virtual node's initial value (MathAMR+, 4.3.4).

=========  ===========  =============================================================
value      learned      state of virtual node v of kind k, members M(v)
=========  ===========  =============================================================
zero       none         0
zero       embedding    e_k, learned, 0 at first
random     none         e_k, drawn once, kept
random     embedding    e_k, learned, Xavier-uniform at first
mean       none         mean of M(v)
mean       embedding    mean of M(v) + e_k, learned, 0 at first
any        projection   W (value) + b
any        typed proj.  W_k (value) + b_k
=========  ===========  =============================================================

The members of a formula's or sentence's node are the content nodes joined to it. Those of the document's node are all
nodes joined to it, among them the virtual nodes of formulas and sentences with their first states.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyterrier_mathamr.graph import GraphBatch, VirtualKind
from pyterrier_mathamr.model.config.config import MathAMRConfig


class InitialState(nn.Module):
    """Compute the first state of every node of a batch.

    Args:
        config: ``hidden``, ``initialisation`` and ``learned``.
        num_labels: size of the vocabulary of node labels.
    """

    def __init__(self, config: MathAMRConfig, num_labels: int) -> None:
        super().__init__()
        self.value, self.learned = config.initialisation, config.learned
        self.labels = nn.Embedding(num_labels, config.hidden)
        nn.init.xavier_uniform_(self.labels.weight)
        start = torch.zeros(len(VirtualKind), config.hidden)
        if self.value == "random":
            nn.init.xavier_uniform_(start)
        if self.learned == "embedding":
            self.kinds = nn.Parameter(start)
        elif self.value == "random":
            self.register_buffer("kinds", start)
        maps = {"projection": 1, "typed_projection": len(VirtualKind)}.get(self.learned, 0)
        self.maps = nn.ModuleList(nn.Linear(config.hidden, config.hidden) for _ in range(maps))

    def forward(self, batch: GraphBatch) -> Tensor:
        """Look up labels and compute the first states of virtual nodes.

        Args:
            batch: graphs; retrieval nodes that are content nodes have the state of their label.

        Returns:
            float ``[N, d]``.
        """
        state = self.labels(batch.nodes)  # [N, d]
        own = batch.is_virtual[batch.virtual]
        rows, kind = batch.virtual[own], batch.kinds[own]
        if self.value != "mean":
            return self._put(state, rows, kind, state.new_zeros(rows.numel(), state.size(1)))
        state = state.masked_fill(batch.is_virtual.unsqueeze(1), 0.0)
        content = batch.edge_index[:, ~batch.is_virtual[batch.edge_index[0]]]
        lower = kind != VirtualKind.DOCUMENT
        state = self._put(state, rows[lower], kind[lower], _means(state, content, rows[lower]))
        return self._put(state, rows[~lower], kind[~lower], _means(state, batch.edge_index, rows[~lower]))

    def _put(self, state: Tensor, rows: Tensor, kind: Tensor, value: Tensor) -> Tensor:
        """Write the states of some virtual nodes: their value and what is learned about it."""
        if self.learned == "embedding" or self.value == "random":
            value = value + self.kinds[kind]
        if self.learned == "projection":
            value = self.maps[0](value)
        elif self.learned == "typed_projection":
            mapped = torch.stack([linear(value) for linear in self.maps])  # [3, rows, d]
            value = mapped[kind, torch.arange(rows.numel(), device=rows.device)]
        return state.index_copy(0, rows, value.to(state.dtype))  # autocast makes products narrower


def _means(state: Tensor, edge_index: Tensor, targets: Tensor) -> Tensor:
    """Average the sources of each target's edges: float ``[targets, d]``, zero for a target without edges."""
    source, row = members(state.size(0), edge_index, targets)
    total = state.new_zeros(targets.numel(), state.size(1)).index_add(0, row, state.index_select(0, source))
    return total / torch.bincount(row, minlength=targets.numel()).clamp_min(1).unsqueeze(1)


def members(nodes: int, edge_index: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """List the sources of the edges into some nodes."""
    place = torch.full((nodes,), -1, dtype=torch.long, device=edge_index.device)
    place[targets] = torch.arange(targets.numel(), device=edge_index.device)
    row = place[edge_index[1]]
    return edge_index[0][row >= 0], row[row >= 0]
