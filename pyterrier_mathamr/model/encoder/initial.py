"""The state of each node before the first layer: an embedding, and the virtual nodes' own beginning (MathAMR+, 4.3.4).

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

With ``aggregation='attention'`` a learned :class:`MemberAttention` takes the place of the mean.

Members of a formula's or sentence's node are the content nodes joined to it; those of the document's node are all
nodes joined to it, the other virtual nodes with the value they have by then.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyterrier_mathamr.model.config import MathAMRConfig
from pyterrier_mathamr.model.variants.attention import MemberAttention, members

_KINDS = 3  # formula, sentence, document
_DOCUMENT = 2


class InitialState(nn.Module):
    """Give every node of a batch its first state.

    Args:
        config: ``hidden``, ``initialisation``, ``learned`` and ``aggregation``.
        num_labels: size of the vocabulary of node labels.
    """

    def __init__(self, config: MathAMRConfig, num_labels: int) -> None:
        super().__init__()
        self.value, self.learned = config.initialisation, config.learned
        self.labels = nn.Embedding(num_labels, config.hidden)
        nn.init.xavier_uniform_(self.labels.weight)
        start = torch.zeros(_KINDS, config.hidden)
        if self.value == "random":
            nn.init.xavier_uniform_(start)
        if self.learned == "embedding":
            self.kinds = nn.Parameter(start)
        elif self.value == "random":
            self.register_buffer("kinds", start)
        maps = {"projection": 1, "typed_projection": _KINDS}.get(self.learned, 0)
        self.maps = nn.ModuleList(nn.Linear(config.hidden, config.hidden) for _ in range(maps))
        self.attention = MemberAttention(config.hidden) if config.aggregation == "attention" else None

    def forward(self, nodes: Tensor, edge_index: Tensor, virtual: Tensor, kinds: Tensor, is_virtual: Tensor) -> Tensor:
        """Look labels up and begin the virtual nodes.

        Args:
            nodes: int64 ``[N]``, vocabulary ids.
            edge_index: int64 ``[2, e]``, sources and targets, inverse edges included.
            virtual: int64 ``[r]``, nodes that become retrieval vectors; some may be content nodes.
            kinds: int64 ``[r]``, their kinds.
            is_virtual: bool ``[N]``.

        Returns:
            float ``[N, d]``.
        """
        state = self.labels(nodes)  # [N, d]
        own = is_virtual[virtual]
        rows, kind = virtual[own], kinds[own]
        if self.value != "mean":
            return self._put(state, rows, kind, state.new_zeros(rows.numel(), state.size(1)))
        state = state.masked_fill(is_virtual.unsqueeze(1), 0.0)
        lower = kind != _DOCUMENT
        content = ~is_virtual[edge_index[0]]
        state = self._put(
            state, rows[lower], kind[lower], self._gather(state, edge_index[:, content], rows[lower], kind[lower])
        )
        upper = ~lower
        return self._put(state, rows[upper], kind[upper], self._gather(state, edge_index, rows[upper], kind[upper]))

    def _gather(self, state: Tensor, edge_index: Tensor, rows: Tensor, kind: Tensor) -> Tensor:
        """Bring the members of some virtual nodes together: float ``[rows, d]``."""
        if self.attention is None:
            return _means(state, edge_index, rows)
        gathered: Tensor = self.attention(state, edge_index, rows, kind)
        return gathered

    def _put(self, state: Tensor, rows: Tensor, kind: Tensor, value: Tensor) -> Tensor:
        """Write the states of some virtual nodes: their value, and what is learned about it."""
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
